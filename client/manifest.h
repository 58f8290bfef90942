/* The record of a directory of results: DIRECTORY/.convolve.jsonl. Its first line identifies it;
 * each further line is JSON about one result: the input that it was made from (path, size, time; or
 * address and version), the request, and the result's own size and time. It is a file, not extended
 * attributes, because network file systems, FAT and archives lose those. Lines are only appended,
 * before a result takes its place: a crash between the two costs one more run of that image. The
 * line of one that replaces another result comes after it. A file without the first line, or a
 * symbolic link, is not ours and is never written to. Memory holds only the places of the lines, in
 * up to 48 bytes each.
 *
 * A result that replaces its input is the only copy of an image, and must not be filtered twice.
 * Its line is written, and is on the disk, before it takes its place: if the file is the input
 * still, as the line has it, the run was killed between the two. Such a line names the file in
 * another member, so that no other run takes the file for a result that it may replace. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct manifest;

/* The origin of a result. */
struct making {
	const char *input;       /* its path or, as place_shown() has it, its address */
	const struct stat *info; /* hash of its bytes; NULL: not read yet */
	/* version of a file elsewhere, as store_version() has it; or NULL */
	const char *version;
	const char *request;
	bool in_place; /* the result replaces the input */
};

/* Opens the directory's manifest; creates both if necessary. `run` identifies this run, and
 * outlives the manifest. Returns NULL after printing the error. */
struct manifest *manifest_open(const char *directory, const char *run);
/* Tells whether the directory has one. */
bool manifest_exists(const char *directory);
void manifest_close(struct manifest *manifest);

/* Tells whether the result exists as it was made so; `result` is then its status. If the input has
 * not been read, *version becomes its recorded version, or NULL; the caller frees it. */
bool manifest_has(const struct manifest *manifest, const char *output, const struct making *making,
                  struct stat *result, char **version);

/* Tells whether the file with this status is the result that was made at the output's place, as it
 * was made: its size and time are those recorded. One that has replaced its input is none. */
bool manifest_knows(const struct manifest *manifest, const char *output, const struct stat *there);

/* The state of a file that a result is to replace, by the record. */
enum in_place {
	IN_PLACE_NEW,    /* nothing: it is an input */
	IN_PLACE_MADE,   /* it is the result of the same request */
	IN_PLACE_CHANGED /* it was that, and has been changed since */
};

enum in_place manifest_in_place(const struct manifest *manifest, const char *path,
                                const struct making *making);

/* Reads what other processes have recorded meanwhile. Returns NULL, or why that failed. */
const char *manifest_refresh(struct manifest *manifest);

/* Tells whether a result of this name would be a manifest, in any letter case. */
bool manifest_is_place(const char *output);

/* Returns the input from which this run made the output, or NULL; the caller frees it. */
char *manifest_made_from(const struct manifest *manifest, const char *output);

/* Records that a result was made; one that replaces its input is recorded before, and on the disk.
 * Returns NULL, or why that failed. */
const char *manifest_add(struct manifest *manifest, const char *output, const struct making *making,
                         const struct stat *result);
