/* The command line of convolved-bench. */
#include "bench/bench.h"

#include <err.h>
#include <getopt.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "device/jpeg.h"

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

struct row {
	const char *name;
	int letter; /* 0: it has none */
	enum { FLAG, TEXT, VALUE, AREA, PADDING, VARIANTS } takes;
	size_t member;
	struct value_kind kind; /* a VALUE's */
};

static void refuse(const char *option, const char *value, const char *valid)
{
	errx(2, "--%s '%s': %s", option, value, valid);
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

/* Returns true if this is the wanted variant; lists it if none is wanted. */
static bool is_it(const char *wanted, const char *name, const char *text)
{
	if (!wanted)
		printf("%-26s %s\n", name, text);
	return wanted && !strcmp(name, wanted);
}

/* Looks for a variant; NULL: lists all. */
static bool find_variant(const char *wanted)
{
	bool found = false;

	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernel_row(k)->operations)
			found |= is_it(wanted, kernel_name(k), kernel_row(k)->text);
	for (size_t i = 0; i < OTHERS; i++)
		found |= is_it(wanted, others[i].name, others[i].text);
	for (size_t d = 0; d < DIRECTIONS; d++)
		for (uint32_t i = 0; i < directions[d]->stage_count; i++)
			found |= is_it(wanted, directions[d]->stages[i].name,
			               directions[d]->stages[i].file);
	return found;
}

bool bench_options_want(const struct bench_options *options, const char *variant)
{
	return !options->variants ||
	       g_strv_contains((const char *const *)options->variants, variant);
}

/* The words of --type in the order of enum device_type, then that of TYPE_DEFAULT. */
static const char types[] = "all|cpu|gpu|acc|default";

#define AT(to) .member = offsetof(struct bench_options, to)
static const struct row rows[] = {
    {"platform", 'p', VALUE, AT(platform), .kind = {VALUE_INTEGER, 0, 1000, NULL}},
    {"type", 't', VALUE, AT(device_type), .kind = {VALUE_WORD, .unit = types}},
    {"device", 'd', TEXT, AT(device)},
    {"width", 'W', VALUE, AT(width), .kind = {VALUE_INTEGER, 1, 65536, NULL}},
    {"height", 'H', VALUE, AT(height), .kind = {VALUE_INTEGER, 1, 65536, NULL}},
    {"iterations", 'i', VALUE, AT(iterations), .kind = {VALUE_INTEGER, 1, 10000, NULL}},
    {"warmup", 0, VALUE, AT(warmup), .kind = {VALUE_INTEGER, 0, 10000, NULL}},
    {"budget", 0, VALUE, AT(budget), .kind = {VALUE_NUMBER, 0.001, 86400, "seconds"}},
    {"filter", 0, TEXT, AT(filter)},
    {"pixels", 0, TEXT, AT(pixels)},
    {"variant", 0, VARIANTS, AT(variants)},
    {"source-roi", 0, AREA, AT(source_roi)},
    {"target-roi", 0, AREA, AT(target_roi)},
    {"padding", 0, PADDING, AT(padding)},
    {"verify", 0, FLAG, AT(verify)},
    {"output", 'o', TEXT, AT(output)},
    {"kernel-dir", 0, TEXT, AT(kernel_dir)},
    {"cache-dir", 0, TEXT, AT(cache_dir)},
    {"json", 0, FLAG, AT(json)},
    {"list", 0, FLAG, AT(list)},
    {"help", 0, FLAG, AT(help)},
    {"version", 0, FLAG, AT(version)},
};
#undef AT

enum { ROWS = sizeof rows / sizeof *rows };

static void set(struct bench_options *o, const struct row *row, const char *text)
{
	enum { PADDING_MAX = 1024 };
	struct padding *p = &o->padding;
	void *member = (char *)o + row->member;
	char valid[96] = "expected ", rest;
	double number;

	switch (row->takes) {
	case FLAG:
		*(bool *)member = true;
		break;
	case TEXT:
		*(const char **)member = text;
		break;
	case VALUE:
		if (!value_read(&row->kind, text, &number)) {
			value_describe(&row->kind, valid + strlen(valid),
			               sizeof valid - strlen(valid));
			refuse(row->name, text, valid);
		}
		if (row->kind.type == VALUE_NUMBER)
			*(double *)member = number;
		else
			*(uint32_t *)member = (uint32_t)number;
		break;
	case AREA:
		if (!area_parse(text, member))
			refuse(row->name, text,
			       "expected X,Y,WIDTH,HEIGHT in pixels, e.g. 0,0,640,480");
		break;
	case PADDING:
		if (strspn(text, "0123456789,") != strlen(text) ||
		    sscanf(text, "%6u,%6u%c", &p->x, &p->y, &rest) != 2 || p->x > PADDING_MAX ||
		    p->y > PADDING_MAX)
			refuse(row->name, text,
			       "expected X,Y in pixels, each from 0 to 1024, e.g. 16,1");
		o->padding_given = true;
		break;
	case VARIANTS:
		g_strfreev(o->variants);
		o->variants = g_strsplit(text, ",", -1);
		if (!*o->variants)
			refuse(row->name, text, "no such variant; see --list");
		for (char **name = o->variants; *name; name++)
			if (!find_variant(*name))
				refuse(row->name, *name, "no such variant; see --list");
		break;
	}
}

void bench_options_parse(struct bench_options *o, int argc, char **argv)
{
	enum { FIRST = 256 }; /* above all letters */
	struct option flags[ROWS + 1] = {0};
	int c, i;

	*o = (struct bench_options){.platform = -1,
	                            .device_type = TYPE_DEFAULT,
	                            .iterations = 50,
	                            .warmup = 10,
	                            .budget = 10,
	                            .argc = argc,
	                            .argv = argv};
	for (i = 0; i < ROWS; i++)
		flags[i] = (struct option){rows[i].name, rows[i].takes != FLAG, NULL, FIRST + i};
	while ((c = getopt_long(argc, argv, "p:t:d:W:H:i:o:", flags, NULL)) != -1) {
		for (i = 0; i < ROWS && c != rows[i].letter && c != FIRST + i;)
			i++;
		if (i == ROWS)
			exit(2);
		set(o, &rows[i], optarg);
	}
	if (o->list)
		find_variant(NULL);
	if (o->help)
		fputs(help, stdout);
	if (o->version)
		puts("convolved-bench " PACKAGE_VERSION);
	if (o->list || o->help || o->version)
		exit(0);
	if (optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		errx(2, "%s: expected one image at most", argv[optind]);
	/* Options that do not fit together, and those that others imply. */
	if (!o->width != !o->height)
		o->width = o->height = o->width + o->height;
	if (o->output && (!o->filter || (!o->file && (!o->pixels || !o->width))))
		refuse("output", o->output,
		       "requires --filter, and IMAGE or both --pixels and --width");
	if (o->target_roi.width && !o->source_roi.width)
		refuse("target-roi", "", "requires --source-roi");
	if (o->source_roi.width && !o->target_roi.width)
		o->target_roi = o->source_roi;
	if (o->target_roi.width != o->source_roi.width ||
	    o->target_roi.height != o->source_roi.height)
		refuse("target-roi", "", "must have the size of --source-roi");
}

/* True if --platform and --type allow the device. */
static bool is_allowed(const struct bench_options *o, const struct message_device *m)
{
	return (o->platform < 0 || m->platform == (unsigned)o->platform) &&
	       (!o->device_type || o->device_type == TYPE_DEFAULT || m->type == o->device_type);
}

size_t bench_options_choose(const struct bench_options *o, const struct message_device *list,
                            size_t count, bool *chosen)
{
	char *end = NULL;
	unsigned long wanted = o->device ? strtoul(o->device, &end, 10) : 0;
	const bool named = o->device && (*end || end == o->device);
	bool only_gpus = false;
	size_t number = 0, found = 0;

	for (size_t i = 0; i < count && o->device_type == TYPE_DEFAULT && !named; i++)
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
