/* Reads small text files: the configuration, and secrets (tokens, the TLS key). Secrets are
 * accepted only in files, since other users can see a command line and an environment. */
#ifndef FRONT_CONFIG_TEXTFILE_H
#define FRONT_CONFIG_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The path of a secret's file: the option's value, or, if that is empty, the systemd credential of
 * this name. NULL if there is neither. The caller frees it. */
char *secret_path(const char *option, const char *credential);

/* Reads a whole file, up to 1 MB. A private file must not be readable by others. Returns a
 * terminated text that the caller frees with textfile_free(), and its size in bytes; on failure
 * returns NULL and logs the reason with the option's name. */
char *textfile_read(const char *option, const char *path, bool is_private, size_t *size) MUST_CHECK;
void textfile_free(char *text, size_t size);

#endif
