/* The mask of a batch: a second image, which goes with each one. The file is copied once, so that
 * all images get the same bytes, whatever becomes of it. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "client/hash.h"
#include "client/options.h"

struct mask {
	char *name; /* for messages, as in "would overwrite …"; NULL: there is no mask */
	int copy;
	int64_t size;
	struct stat info;         /* the file's */
	char digits[HASH_DIGITS]; /* hash of its bytes */
};

/* Reads the mask that the options name, if they do. Returns EXIT_DONE, or EXIT_USAGE after printing
 * the error. */
enum exit_code mask_open(struct mask *mask, const struct options *options);
void mask_close(struct mask *mask);
