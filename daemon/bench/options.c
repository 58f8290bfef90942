/* The command line of convolved-bench. */
#include "bench/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/jpeg.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static const char help[] =
    "Usage: convolved-bench [OPTION]... [IMAGE]\n"
    "Times every applicable kernel of convolved and checks its result.\n"
    "\n"
    "  -p, --platform N        number of the OpenCL platform (any)\n"
    "  -t, --type TYPE         device type: all, cpu, gpu, acc or default (GPUs, else the rest)\n"
    "  -d, --device NAME       number among the devices of platform and type, or part of the name\n"
    "                          of a device (all)\n"
    "  -W, --width N           width in pixels (256, 512, 2048, 4096 and 8192 in turn)\n"
    "  -H, --height N          height in pixels (the width)\n"
    "  -i, --iterations N      timed runs (50)\n"
    "      --warmup N          untimed runs before them (10)\n"
    "      --budget SECONDS    maximum time for a variant, but at least 3 runs (10)\n"
    "      --filter CHAIN      a filter or chain as in a request, e.g. gaussian=sigma=2, or "
    "chains\n"
    "                          for luma and chroma: luma=CHAIN&chroma=CHAIN (14); or\n"
    "                          jpeg: decoding and encoding JPEGs, of u8 and u8x3\n"
    "      --pixels TYPE       u8, u16 or f32, with bands: u8x4 (u8, u8x4 and f32;\n"
    "                          u8x3 for luma and chroma)\n"
    "      --variant NAMES     only these, separated by commas (all)\n"
    "      --source-roi X,Y,W,H  pixels to read; those outside are replicated\n"
    "      --target-roi X,Y,W,H  where to write the result, of the same size\n"
    "      --padding X,Y       pixels that the host adds to the source of published kernels, left\n"
    "                          and right, above and below (16,1 for sobel_*, 0,0 for others)\n"
    "      --verify            compare all pixels with the reference, not only windows\n"
    "  -o, --output FILE       write the fastest right result; requires one filter (--filter) and\n"
    "                          one image (IMAGE, or both --pixels and --width)\n"
    "      --kernel-dir DIR    read kernel sources from DIR\n"
    "      --cache-dir DIR     store compiled kernels in DIR\n"
    "      --json              print one JSON object per device\n"
    "      --list              list the variants and exit\n"
    "      --help, --version\n"
    "\n"
    "IMAGE is a file that libvips can read (random pixels). Times are by the device's clock, over\n"
    "buffers used in turn. All variants of a filter run in turn.\n";

enum {
	OPTION_WARMUP = 256,
	OPTION_BUDGET,
	OPTION_FILTER,
	OPTION_PIXELS,
	OPTION_VARIANT,
	OPTION_SOURCE_ROI,
	OPTION_TARGET_ROI,
	OPTION_PADDING,
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
    {"padding", required_argument, NULL, OPTION_PADDING},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {"output", required_argument, NULL, 'o'},
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

static struct area parse_area(const char *option, const char *text)
{
	struct area area;

	if (!area_parse(text, &area))
		refuse(option, text, "expected X,Y,WIDTH,HEIGHT in pixels, e.g. 0,0,640,480");
	return area;
}

static void parse_padding(struct bench_options *o, const char *text)
{
	enum { MOST = 1024 };
	struct padding *p = &o->padding;
	char rest;

	if (strspn(text, "0123456789,") != strlen(text) ||
	    sscanf(text, "%6u,%6u%c", &p->x, &p->y, &rest) != 2 || p->x > MOST || p->y > MOST)
		refuse("--padding", text, "expected X,Y in pixels, each from 0 to 1024, e.g. 16,1");
	o->padding_given = true;
}

/* True if the first `length` bytes of `list` are this name. */
static bool is_name(const char *list, size_t length, const char *name)
{
	return strlen(name) == length && !strncmp(list, name, length);
}

/* Rows that are no kernels. */
static const struct {
	const char *name, *text;
} others[] = {
    {"table", "several launches: the kernels that a service begins with"},
    {"processor", "plain C with floats, on 1, 4 and 8 threads"},
    {"reference", "plain C in double precision, one thread"},
    {"jpeg decode", "all of its kernels together"},
    {"jpeg encode", "all of its kernels together"},
};

enum { OTHERS = sizeof others / sizeof *others, DIRECTIONS = 2 };

static const struct jpeg_direction *const directions[DIRECTIONS] = {&jpeg_decode_direction,
                                                                    &jpeg_encode_direction};

static bool is_variant(const char *name, size_t length)
{
	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernel_row(k)->operations && is_name(name, length, kernel_name(k)))
			return true;
	for (size_t i = 0; i < OTHERS; i++)
		if (is_name(name, length, others[i].name))
			return true;
	for (size_t d = 0; d < DIRECTIONS; d++)
		for (uint32_t i = 0; i < directions[d]->stage_count; i++)
			if (is_name(name, length, directions[d]->stages[i].name))
				return true;
	return false;
}

static void check_variants(const char *list)
{
	for (const char *at = list;; at++) {
		const size_t length = strcspn(at, ",");
		char name[64];

		snprintf(name, sizeof name, "%.*s", (int)length, at);
		if (!is_variant(at, length))
			refuse("--variant", name, "no such variant; see --list");
		at += length;
		if (!*at)
			return;
	}
}

bool bench_options_want(const struct bench_options *options, const char *variant)
{
	if (!options->variants)
		return true;
	for (const char *at = options->variants;; at++) {
		const size_t length = strcspn(at, ",");

		if (is_name(at, length, variant))
			return true;
		at += length;
		if (!*at)
			return false;
	}
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
			printf("%-26s %s\n", kernel_name(k), kernel_row(k)->text);
	for (size_t i = 0; i < OTHERS; i++)
		printf("%-26s %s\n", others[i].name, others[i].text);
	for (size_t d = 0; d < DIRECTIONS; d++)
		for (uint32_t i = 0; i < directions[d]->stage_count; i++)
			printf("%-26s %s\n", directions[d]->stages[i].name,
			       directions[d]->stages[i].file);
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
		check_variants(optarg);
		o->variants = optarg;
		break;
	case OPTION_SOURCE_ROI:
		o->source_roi = parse_area("--source-roi", optarg);
		break;
	case OPTION_TARGET_ROI:
		o->target_roi = parse_area("--target-roi", optarg);
		break;
	case OPTION_PADDING:
		parse_padding(o, optarg);
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
	case 'o':
		o->output = optarg;
		break;
	default:
		parse_long(o, c);
		break;
	}
}

/* Refuses options that do not fit together; completes those that others imply. */
static void check_together(struct bench_options *o)
{
	if (!o->width != !o->height)
		o->width = o->height = o->width + o->height;
	if (o->output && (!o->filter || (!o->file && (!o->pixels || !o->width))))
		refuse("--output", o->output,
		       "requires --filter, and IMAGE or both --pixels and --width");
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

void bench_options_parse(struct bench_options *o, int argc, char **argv)
{
	int c;

	*o = (struct bench_options){.platform = -1,
	                            .iterations = 50,
	                            .warmup = 10,
	                            .budget = 10,
	                            .argc = argc,
	                            .argv = argv};
	while ((c = getopt_long(argc, argv, "p:t:d:W:H:i:o:", long_options, NULL)) != -1)
		parse_short(o, c);
	if (optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		refuse("argument", argv[optind], "expected one image at most");
	check_together(o);
}

/* True if --platform and --type allow the device. */
static bool is_allowed(const struct bench_options *o, const struct message_device *m)
{
	return (o->platform < 0 || m->platform == (unsigned)o->platform) &&
	       (!o->type_given || !o->device_type || m->type == o->device_type);
}

size_t bench_options_choose(const struct bench_options *o, const struct message_device *list,
                            size_t count, bool *chosen)
{
	char *end = NULL;
	unsigned long wanted = o->device ? strtoul(o->device, &end, 10) : 0;
	const bool named = o->device && (*end || end == o->device);
	bool only_gpus = false;
	size_t number = 0, found = 0;

	for (size_t i = 0; i < count && !o->type_given && !named; i++)
		only_gpus |= is_allowed(o, &list[i]) && list[i].type == DEVICE_GPU;
	for (size_t i = 0; i < count; i++) {
		chosen[i] = is_allowed(o, &list[i]) && (!only_gpus || list[i].type == DEVICE_GPU);
		if (named)
			chosen[i] = chosen[i] && strcasestr(list[i].name, o->device);
		else if (chosen[i] && o->device)
			chosen[i] = number++ == wanted;
		found += chosen[i];
	}
	return found;
}
