/* The command line of convolved-bench. */
#include "bench/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static const char help[] =
    "Usage: convolved-bench [OPTION]... [IMAGE]\n"
    "Times every applicable kernel of convolved and checks its result.\n"
    "\n"
    "  -p, --platform N        number of the OpenCL platform (any)\n"
    "  -t, --type TYPE         device type: all, cpu, gpu, acc or default (GPUs, else the rest)\n"
    "  -d, --device NAME       number or part of the name of a device (all of the type)\n"
    "  -W, --width N           width in pixels (256, 512, 2048, 4096 and 8192 in turn)\n"
    "  -H, --height N          height in pixels (the width)\n"
    "  -i, --iterations N      timed runs (50)\n"
    "      --warmup N          untimed runs before them (10)\n"
    "      --budget SECONDS    maximum time for a variant, but at least 3 runs (10)\n"
    "      --filter CHAIN      one filter as in a request, e.g. gaussian=sigma=2 (seven)\n"
    "      --pixels TYPE       u8, u16 or f32, with bands: u8x4 (u8, u8x4 and f32)\n"
    "      --variant NAME      only this one (all)\n"
    "      --source-roi X,Y,W,H  pixels to read; those outside are replicated\n"
    "      --target-roi X,Y,W,H  where to write the result, of the same size\n"
    "      --verify            compare all pixels with the reference, not only windows\n"
    "      --kernel-dir DIR    read kernel sources from DIR\n"
    "      --cache-dir DIR     store compiled kernels in DIR\n"
    "      --json              print one JSON object per device\n"
    "      --list              list the variants and exit\n"
    "      --help, --version\n"
    "\n"
    "IMAGE is a file that libvips can read (random pixels). Times are by the device's clock:\n"
    "medians of the runs, over buffers used in turn. All variants of a filter run in turn.\n";

enum {
	OPTION_WARMUP = 256,
	OPTION_BUDGET,
	OPTION_FILTER,
	OPTION_PIXELS,
	OPTION_VARIANT,
	OPTION_SOURCE_ROI,
	OPTION_TARGET_ROI,
	OPTION_VERIFY,
	OPTION_KERNEL_DIR,
	OPTION_CACHE_DIR,
	OPTION_JSON,
	OPTION_LIST,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct option long_options[] = {
    {"platform", required_argument, NULL, 'p'},
    {"type", required_argument, NULL, 't'},
    {"device", required_argument, NULL, 'd'},
    {"width", required_argument, NULL, 'W'},
    {"height", required_argument, NULL, 'H'},
    {"iterations", required_argument, NULL, 'i'},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"filter", required_argument, NULL, OPTION_FILTER},
    {"pixels", required_argument, NULL, OPTION_PIXELS},
    {"variant", required_argument, NULL, OPTION_VARIANT},
    {"source-roi", required_argument, NULL, OPTION_SOURCE_ROI},
    {"target-roi", required_argument, NULL, OPTION_TARGET_ROI},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"kernel-dir", required_argument, NULL, OPTION_KERNEL_DIR},
    {"cache-dir", required_argument, NULL, OPTION_CACHE_DIR},
    {"json", no_argument, NULL, OPTION_JSON},
    {"list", no_argument, NULL, OPTION_LIST},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

static void refuse(const char *option, const char *value, const char *valid)
{
	fprintf(stderr, "convolved-bench: %s '%s': %s\n", option, value, valid);
	exit(2);
}

static uint32_t parse_count(const char *option, const char *text, uint32_t min, uint32_t max)
{
	char valid[64], *end;
	unsigned long number = strtoul(text, &end, 10);

	snprintf(valid, sizeof valid, "expected an integer from %u to %u", min, max);
	if (!*text || *text == '-' || *end || number < min || number > max)
		refuse(option, text, valid);
	return (uint32_t)number;
}

static double parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (!*text || *end || !(seconds > 0))
		refuse("--budget", text, "expected a number of seconds above 0");
	return seconds;
}

static struct rectangle parse_rectangle(const char *option, const char *text)
{
	struct rectangle r;
	char rest;

	if (sscanf(text, "%7u,%7u,%7u,%7u%c", &r.x, &r.y, &r.width, &r.height, &rest) != 4 ||
	    !r.width || !r.height)
		refuse(option, text, "expected X,Y,WIDTH,HEIGHT in pixels, e.g. 0,0,640,480");
	return r;
}

static void parse_type(struct bench_options *o, const char *text)
{
	static const struct {
		const char *name;
		enum device_type type;
	} types[] = {{"all", DEVICE_NONE},
	             {"cpu", DEVICE_CPU},
	             {"gpu", DEVICE_GPU},
	             {"acc", DEVICE_ACCELERATOR}};

	if (!strcmp(text, "default"))
		return;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(text, types[i].name)) {
			o->device_type = types[i].type;
			o->type_given = true;
			return;
		}
	refuse("--type", text, "expected all, cpu, gpu, acc or default");
}

static void list_variants(void)
{
	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernel_row(k)->operations)
			printf("%-22s %s\n", kernel_name(k), kernel_row(k)->text);
	printf("%-22s %s\n", "reference", "plain C in double precision, one thread");
	exit(0);
}

static void parse_long(struct bench_options *o, int c)
{
	switch (c) {
	case OPTION_WARMUP:
		o->warmup = parse_count("--warmup", optarg, 0, 10000);
		break;
	case OPTION_BUDGET:
		o->budget = parse_seconds(optarg);
		break;
	case OPTION_FILTER:
		o->filter = optarg;
		break;
	case OPTION_PIXELS:
		o->pixels = optarg;
		break;
	case OPTION_VARIANT:
		if (kernel_parse(optarg) == KERNELS && strcmp(optarg, "reference"))
			refuse("--variant", optarg, "no such variant; see --list");
		o->variant = optarg;
		break;
	case OPTION_SOURCE_ROI:
		o->source_roi = parse_rectangle("--source-roi", optarg);
		break;
	case OPTION_TARGET_ROI:
		o->target_roi = parse_rectangle("--target-roi", optarg);
		break;
	case OPTION_VERIFY:
		o->verify = true;
		break;
	case OPTION_KERNEL_DIR:
		o->kernel_dir = optarg;
		break;
	case OPTION_CACHE_DIR:
		o->cache_dir = optarg;
		break;
	case OPTION_JSON:
		o->json = true;
		break;
	case OPTION_LIST:
		list_variants();
		break;
	case OPTION_HELP:
		fputs(help, stdout);
		exit(0);
	case OPTION_VERSION:
		puts("convolved-bench " PACKAGE_VERSION);
		exit(0);
	default:
		exit(2);
	}
}

static void parse_short(struct bench_options *o, int c)
{
	switch (c) {
	case 'p':
		o->platform = (int)parse_count("--platform", optarg, 0, 1000);
		break;
	case 't':
		parse_type(o, optarg);
		break;
	case 'd':
		o->device = optarg;
		break;
	case 'W':
		o->width = parse_count("--width", optarg, 1, 65536);
		break;
	case 'H':
		o->height = parse_count("--height", optarg, 1, 65536);
		break;
	case 'i':
		o->iterations = parse_count("--iterations", optarg, 1, 10000);
		break;
	default:
		parse_long(o, c);
		break;
	}
}

void bench_options_parse(struct bench_options *o, int argc, char **argv)
{
	int c;

	*o = (struct bench_options){.platform = -1, .iterations = 50, .warmup = 10, .budget = 10};
	while ((c = getopt_long(argc, argv, "p:t:d:W:H:i:", long_options, NULL)) != -1)
		parse_short(o, c);
	if (optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		refuse("argument", argv[optind], "expected one image at most");
	if (!o->width != !o->height)
		o->width = o->height = o->width + o->height;
	if (o->target_roi.width && !o->source_roi.width)
		refuse("--target-roi", "", "requires --source-roi");
	if (!o->source_roi.width)
		return;
	if (!o->target_roi.width)
		o->target_roi = o->source_roi;
	if (o->target_roi.width != o->source_roi.width ||
	    o->target_roi.height != o->source_roi.height)
		refuse("--target-roi", "", "must have the size of --source-roi");
}
