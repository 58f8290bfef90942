/* Where a result goes. It is written to a temporary file, which takes its place when it is
 * complete: no partial result is ever visible, and the file that was there before stays until
 * then. */
#pragma once

#include "client/guard.h"

struct output {
	int fd;      /* the descriptor to write to; -1: not open */
	char *place; /* the file that the result becomes; NULL: the result is copied to `stream` */
	char *temporary; /* of the temporary file; NULL if it has none */
	int stream;
};

/* Opens a temporary file for the result and creates the missing directories of its path. "-" is
 * standard output. An existing file that is not a plain one (a pipe, a device) is written to when
 * the result is complete. Returns 0 or an errno. */
int output_open(struct output *output, const char *path);

/* Completes the result: syncs it to disk and moves it to its place; `info` becomes its status.
 * Returns 0 or an errno: EEXIST if a guarded file is in the place, with its name in `guarded`.
 * Closes the output in either case and leaves no temporary file. */
int output_commit(struct output *output, const struct guard *guard, const char **guarded,
                  struct stat *info);

/* The directory that the result goes to, which the caller frees; NULL if it is copied to a
 * stream. */
char *output_directory(const struct output *output);

/* Syncs the directory, so that renames into it are on disk. Returns 0 or an errno. */
int output_sync_directory(const char *directory);

/* Discards the result. */
void output_discard(struct output *output);

/* Opens a file without a name, in $TMPDIR or /tmp; -1 and errno on failure. */
int output_nameless(void);

/* Copies the rest of one file to another. Returns 0, or an errno (EINTR after a signal). */
int output_copy(int from, int to);

/* Creates the directories of a path (which is modified, and restored). Returns 0 or an errno. */
int output_make_directories(char *path);
