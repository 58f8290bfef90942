/* The pixels that are benchmarked. */
#ifndef BENCH_PICTURE_H
#define BENCH_PICTURE_H

#include "common/error.h"
#include "common/image.h"

/* Fills a packed image with random pixels: of floats, from -1 to 1. */
void picture_random(const struct image *image, void *pixels);

/* Reads a file as an image of one of our types; *pixels is packed and the caller's. Says on
 * standard error why it cannot be read: ERR_NOT_AN_IMAGE. */
enum error picture_read(const char *path, struct image *image, void **pixels) MUST_CHECK;

#endif
