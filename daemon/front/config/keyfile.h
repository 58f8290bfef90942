/* Strict reading of key files (GLib's format: [SECTION], KEY=VALUE, # comments), line by line, so
 * that whatever is wrong can be named with its line. */
#ifndef FRONT_CONFIG_KEYFILE_H
#define FRONT_CONFIG_KEYFILE_H

#include <stdbool.h>

#include "common/error.h"

struct keyfile_entry {
	const char *where;   /* FILE:LINE */
	const char *section; /* of the key, or that begins here */
	const char *key;     /* NULL: a section begins */
	const char *value;   /* unescaped, without spaces around it */
};

/* Calls `see` for every section and key of a text, which is the file's; the entry is good during
 * the call. False if that returned false for one, or if a line is malformed or a section or key
 * there twice, of which the log says where. All lines are read in any case. */
bool keyfile_read(const char *file, const char *text,
                  bool (*see)(void *context, const struct keyfile_entry *entry),
                  void *context) MUST_CHECK;

#endif
