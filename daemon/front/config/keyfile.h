/* A strict reader of key files (GLib's format: [SECTION], KEY=VALUE, # comments). It works line by
 * line, so that every error is reported with its line. */
#ifndef FRONT_CONFIG_KEYFILE_H
#define FRONT_CONFIG_KEYFILE_H

#include <stdbool.h>

#include "base/error.h"

struct keyfile_entry {
	const char *where;   /* FILE:LINE */
	const char *section; /* the key's, or the one that begins here */
	const char *key;     /* NULL: a section begins */
	const char *value;   /* unescaped and stripped of surrounding spaces */
};

/* Calls `see` for every section and key of `text`, the content of `file`; the entry is valid during
 * the call. Returns false if `see` did for any entry, or after logging a malformed line or a
 * duplicate section or key with its line. Reads all lines in any case. */
bool keyfile_read(const char *file, const char *text,
                  bool (*see)(void *context, const struct keyfile_entry *entry),
                  void *context) MUST_CHECK;

#endif
