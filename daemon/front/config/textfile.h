/* Reads small text files: the configuration, and secrets (tokens, the TLS key). Secrets are
 * accepted only in files, because other users can see a command line and an environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Returns the path of a secret's file: the option's value or, if that is empty, the systemd
 * credential of this name. NULL if there is neither. The caller frees it. */
char *textfile_secret(const char *option, const char *credential);

/* Reads a whole file, up to 1 MB; other users must not be able to read a private one. Returns a
 * terminated text for textfile_free(), and its size; NULL after logging the reason with the
 * option's name. */
char *textfile_read(const char *option, const char *path, bool is_private, size_t *size) MUST_CHECK;
void textfile_free(char *text, size_t size);

struct textfile_entry {
	const char *where;   /* FILE:LINE */
	const char *section; /* the key's, or the one that begins here */
	const char *key;     /* NULL: a section begins */
	const char *value;   /* unescaped and stripped of surrounding spaces */
};

/* Reads a file of keys (GLib's format: [SECTION], KEY=VALUE, # comments), and calls `see` for every
 * section and key; the entry is valid during the call. Reads all lines in any case; returns false
 * if `see` did once, or after logging the reason why the file, or a line of it, is invalid. */
bool textfile_read_keys(const char *option, const char *path, bool is_private,
                        bool (*see)(void *context, const struct textfile_entry *entry),
                        void *context) MUST_CHECK;
