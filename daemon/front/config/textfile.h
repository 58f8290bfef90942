/* Secrets in files: tokens and the key of TLS. They come no other way, since a command line and an
 * environment can be seen by others. */
#ifndef FRONT_CONFIG_TEXTFILE_H
#define FRONT_CONFIG_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* The file of a secret: the option's value, or, if that is empty, the credential of this name that
 * systemd has passed. NULL if there is neither; the caller's, for free(). */
char *secret_path(const char *option, const char *credential);

/* Reads a whole file. One that is private must not be readable by others. NULL, and the log says
 * why, naming the option: it cannot be read. Otherwise a text, the caller's, for textfile_free().
 */
char *textfile_read(const char *option, const char *path, bool is_private, size_t *size) MUST_CHECK;
void textfile_free(char *text, size_t size);

#endif
