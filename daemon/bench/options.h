/* The options of convolved-bench. */
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
	bool type_given;      /* if not: all GPUs, or without any all devices */
	const char *device;   /* number or part of a name; NULL: any */
	const char *filter;   /* a chain of one filter, NULL: the standard set */
	const char *pixels;   /* "u8", "u8x4", …; NULL: the standard set */
	const char *variant;  /* NULL: all that apply */
	const char *file;     /* an image; NULL: random pixels */
	const char *kernel_dir, *cache_dir;
	uint32_t width, height; /* 0: the standard set */
	uint32_t iterations, warmup;
	double budget; /* seconds for the runs of one variant */
	struct rectangle source_roi, target_roi;
	bool verify; /* all pixels, not windows */
	bool json;
};

/* Parses the command line. Ends the program for --help and --version, and with a message for
 * invalid arguments. */
void bench_options_parse(struct bench_options *options, int argc, char **argv);

#endif
