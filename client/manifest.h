/* The record of a directory of results: DIRECTORY/.convolve.jsonl. Its first line identifies it;
 * each further line is JSON about one result: the input that it was made from (path, size, time),
 * the request, and the result's own size and time. It is a file, not extended attributes, because
 * network file systems, FAT and archives lose those. Lines are only appended, after the result has
 * taken its place: a crash between the two costs one more run of that image. A file without the
 * first line, or a symbolic link, is not ours and is never written to. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct manifest;

/* Opens the directory's manifest; creates both if necessary. Returns NULL after printing what is
 * wrong. */
struct manifest *manifest_open(const char *directory);
void manifest_close(struct manifest *manifest);

/* True if the result exists as this request made it from this input; `result` is then its
 * status. */
bool manifest_has(const struct manifest *manifest, const char *output, struct stat *result,
                  const char *input, const struct stat *info, const char *request);

/* True if a result was once made at the output's place. */
bool manifest_knows(const struct manifest *manifest, const char *output);

/* Records that a result was made. Returns NULL, or why that failed. */
const char *manifest_add(struct manifest *manifest, const char *output, const struct stat *result,
                         const char *input, const struct stat *info, const char *request);
