/* What a folder of results is known to hold: FOLDER/.convolve.jsonl has a line of JSON for each
 * result, with the input that it was made from (path, size, time), the request, and the result's
 * own size and time. A file rather than extended attributes, which network file systems, FAT and
 * archives lose. Lines are only appended, after the result has taken its place: whatever happens
 * between the two costs one more run of that image. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct manifest;

/* Opens the folder's manifest, makes both if need be. NULL, with errno, if that fails. */
struct manifest *manifest_open(const char *folder);
void manifest_close(struct manifest *manifest);

/* Whether the result is there, as it was made from this input by this request. */
bool manifest_has(const struct manifest *manifest, const char *output, const char *input,
                  const struct stat *info, const char *request);

/* Notes that a result was made. Returns 0 or an errno. */
int manifest_add(struct manifest *manifest, const char *output, const struct stat *result,
                 const char *input, const struct stat *info, const char *request);
