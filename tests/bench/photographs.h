/* Files for measurements of JPEG: a photograph, enlarged, with noise; and how fast libjpeg-turbo is
 * with them. Any failure ends the process. */
#ifndef TESTS_PHOTOGRAPHS_H
#define TESTS_PHOTOGRAPHS_H

#include "jpegs.h"

/* Reads a file. Free it. */
uint8_t *photograph_file(const char *path, size_t *size);

/* Reads a photograph of RGB. Free its samples. */
struct jpegs_picture photograph_read(const char *path);

/* Enlarges it, linearly, and adds noise, about Gaussian, of this deviation. Free the samples. */
struct jpegs_picture photograph_enlarge(const struct jpegs_picture *from, uint32_t width,
                                        uint32_t height, float deviation, uint32_t seed);

/* The steps of libjpeg-turbo's work with files: enum values may be added up. */
enum { TURBO_DECODE = 1, TURBO_ENCODE = 2 };

/* Returns the images a second of this many processes that work for some seconds, each on all files
 * in turn. */
double turbo_rate(uint8_t *const *file, const size_t *size, uint32_t count,
                  const struct jpegs_wish *wish, int what, unsigned processes, unsigned seconds);

#endif
