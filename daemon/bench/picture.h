/* Making the pixels to filter. */
#ifndef BENCH_PICTURE_H
#define BENCH_PICTURE_H

#include <stdbool.h>

#include "base/error.h"
#include "image/image.h"

/* Fills a packed image with random pixels; floats are from -1 to 1. */
void picture_random(const struct image *image, void *pixels);

/* Reads a file as an image of a supported type. The caller frees *pixels, which are packed.
 * ERR_NOT_AN_IMAGE if it cannot be read, reported on standard error. */
enum error picture_read(const char *path, struct image *image, void **pixels) MUST_CHECK;

/* True if the file's name says a format that can be written; else says so on standard error. */
bool picture_can_write(const char *path);
/* Writes packed pixels to a file. ERR_IO if that fails, reported on standard error. */
enum error picture_write(const char *path, const struct image *image,
                         const void *pixels) MUST_CHECK;

#endif
