/* The options of convolved-bench, and the devices that they mean. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filters/kernels.h"
#include "image/image.h"
#include "wire/wire.h"

/* Pixels on each side: left and right, above and below. */
struct padding {
	uint32_t x, y;
};

struct bench_options {
	int platform;         /* index, -1: any */
	uint32_t device_type; /* enum device_type; DEVICE_NONE: any */
	bool type_given;      /* if not: all GPUs, or without any all devices */
	const char *device;   /* number or part of a name; NULL: any */
	const char *filter;   /* a chain, NULL: the standard set */
	const char *pixels;   /* "u8", "u8x4", …; NULL: the standard set */
	char **variants;      /* all valid, the last one NULL; NULL: all that apply */
	const char *file;     /* an image; NULL: random pixels */
	const char *output;   /* a file for the result; NULL: none */
	const char *kernel_dir, *cache_dir;
	uint32_t width, height; /* 0: the standard set */
	uint32_t iterations, warmup;
	double budget;                      /* seconds for the runs of one variant */
	struct area source_roi, target_roi; /* width 0: the whole image */
	struct padding padding;             /* of the published kernels' source */
	bool padding_given;                 /* if not: what the studies do */
	bool verify;                        /* all pixels, not windows */
	bool json;
	bool list, help, version;
	int argc; /* the command line */
	char **argv;
};

/* Parses the command line. Ends the program for --help and --version, and with a message for
 * invalid arguments. */
void bench_options_parse(struct bench_options *options, int argc, char **argv);

/* True if the variant is to be measured. */
bool bench_options_want(const struct bench_options *options, const char *variant);

/* Sets chosen[i] for each of `count` devices that the options mean, and returns their number.
 * --platform and --type limit the devices; without a type, to the GPUs, if there are any among
 * them. A number in --device counts those that are left; a name also finds devices that are no
 * GPUs. */
size_t bench_options_choose(const struct bench_options *options, const struct message_device *list,
                            size_t count, bool *chosen);

#endif
