/* Where a result goes. It is written to a temporary file and takes its place when it is complete:
 * there is never half a result, and what was there before stays until then. */
#pragma once

#include "client/guard.h"

struct output {
	int fd;          /* to write to; -1: not open */
	char *place;     /* the file that the result becomes; NULL: it is copied to `stream` */
	char *temporary; /* or NULL, if it has no name */
	int stream;
};

/* Opens a temporary file for the result; makes the folders on the way to it. "-" is standard
 * output; what is there and not a plain file (a pipe, a device) is written to when the result is
 * complete. Returns 0 or an errno. */
int output_open(struct output *output, const char *path);

/* The result is complete: it is on the disk when it takes its place, and `info` becomes that of the
 * file. Returns 0 or an errno: EEXIST if a guarded file, whose name is `guarded` then, has the
 * place. Either way the output is closed and no temporary file is left. */
int output_commit(struct output *output, const struct guard *guard, const char **guarded,
                  struct stat *info);

/* Where the result will be: its folder, which the caller frees; NULL if it is copied. */
char *output_folder(const struct output *output);

/* What has been renamed into the folder is on the disk afterwards. Returns 0 or an errno. */
int output_sync_folder(const char *folder);

/* There is no result. */
void output_discard(struct output *output);

/* A file without a name, in $TMPDIR or /tmp; -1 and errno if it cannot be made. */
int output_nameless(void);

/* Copies all that is left to read of one file to another. Returns 0, or an errno (EINTR after a
 * signal). */
int output_copy(int from, int to);

/* Makes the folders that a path lies in (the path is as it was afterwards). Returns 0 or an errno.
 */
int output_make_folders(char *path);
