/* The place of a result. It is written to a temporary file, which takes that place when it is
 * complete: no partial result is ever visible, and the file that was there before stays until
 * then. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct output {
	int fd;          /* the descriptor to write to; -1: not open */
	char *place;     /* final path of the result; NULL: the result is copied to `stream` */
	char *temporary; /* path of the temporary file; NULL if it has none */
	int lock;        /* holds the temporary file's lock, so that no other run removes it */
	mode_t mode;     /* mode of the finished result */
	/* status of the file in its place when this was opened; st_nlink is 0 if there was none */
	struct stat replaced;
	bool differs; /* its size and time shall not both be those of that file */
	int stream;
};

/* Opens a temporary file for the result and creates the missing directories of its path. "-" is
 * standard output. An existing file that is not a plain one (a pipe, a device) is written to when
 * the result is complete. The temporary file has a name of its own for each result: the next run
 * removes those of a killed one. The result gets mode, owner and access list of the file that it
 * replaces, as far as this user may give it these. Returns 0 or an
 * errno (EBUSY: another run makes the same result). */
int output_open(struct output *output, const char *path);

/* Gives the result another place in its directory. */
void output_rename(struct output *output, const char *path);

/* Completes the result: copies it to its stream, or syncs it to disk; `info` becomes its status.
 * Returns 0 or an errno. */
int output_finish(struct output *output, struct stat *info);

/* Moves the finished result to its place, unless that is a stream; `replace`: an existing file may
 * be replaced. Returns 0 or an errno, EEXIST if a file has appeared there. */
int output_take_place(struct output *output, bool replace);

/* Returns the result's directory, which the caller frees; NULL if it is copied to a stream. */
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
