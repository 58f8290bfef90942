/* The rate of libjpeg-turbo with a file. Any failure ends the process. */
#ifndef TESTS_TURBO_H
#define TESTS_TURBO_H

#include "codec/jpeg_header.h"
#include "jpegs.h"

/* A file of RGB, 4:2:0. */
struct jpeg_file {
	uint8_t *bytes;
	size_t size;
	struct jpegs_wish wish; /* as it is encoded again: at quality 85 */
	bool for_devices;
	struct jpeg_scan scan; /* if it is */
};

void jpeg_file_read(struct jpeg_file *file, const char *path);

/* The steps of libjpeg-turbo's work with a file: enum values may be added up. */
enum { TURBO_DECODE = 1, TURBO_ENCODE = 2 };

/* Returns the images a second of this many processes that work for some seconds. */
double turbo_rate(const struct jpeg_file *file, int what, unsigned processes, unsigned seconds);

#endif
