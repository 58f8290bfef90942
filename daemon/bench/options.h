/* What convolved-bench was asked to do. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/image.h"
#include "common/kernels.h"

/* A rectangle of pixels; width 0: not given. */
struct rectangle {
	uint32_t x, y, width, height;
};

struct bench_options {
	int platform;         /* index, -1: any */
	uint32_t device_type; /* enum device_type; DEVICE_NONE: any */
	bool type_given;      /* else: all GPUs, or what there is without one */
	const char *device;   /* number or part of a name; NULL: any */
	const char *filter;   /* a chain of one filter, NULL: the standard set */
	const char *pixels;   /* "u8", "u8x4", …; NULL: the standard set */
	const char *variant;  /* NULL: all that apply */
	const char *file;     /* an image; NULL: random pixels */
	const char *kernel_dir, *cache_dir;
	uint32_t width, height; /* 0: the standard set */
	uint32_t iterations, warmup;
	double budget; /* seconds that the runs of one variant may take */
	struct rectangle source_roi, target_roi;
	bool verify; /* every pixel, not windows */
	bool json;
};

/* Reads the command line; ends the program for --help, --version, and with a message for what is
 * not valid. */
void bench_options_parse(struct bench_options *options, int argc, char **argv);

#endif
