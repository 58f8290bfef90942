/* What a folder of results is known to hold: FOLDER/.convolve.jsonl has a first line that says what
 * it is, and then a line of JSON for each result, with the input that it was made from (path, size,
 * time), the request, and the result's own size and time. A file rather than extended attributes,
 * which network file systems, FAT and archives lose. Lines are only appended, after the result has
 * taken its place: whatever happens between the two costs one more run of that image. A file
 * without that first line, or a link, is somebody else's and is never written to. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct manifest;

/* Opens the folder's manifest, makes both if need be. NULL if it has said what is wrong. */
struct manifest *manifest_open(const char *folder);
void manifest_close(struct manifest *manifest);

/* Whether the result is there, as it was made from this input by this request; `result` is what is
 * known of it then. */
bool manifest_has(const struct manifest *manifest, const char *output, struct stat *result,
                  const char *input, const struct stat *info, const char *request);

/* Whether the output's place is that of a result which was made here once. */
bool manifest_knows(const struct manifest *manifest, const char *output);

/* Notes that a result was made. Returns NULL, or why it could not. */
const char *manifest_add(struct manifest *manifest, const char *output, const struct stat *result,
                         const char *input, const struct stat *info, const char *request);
