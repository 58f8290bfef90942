/* convolved-bench: times and checks every applicable kernel on any OpenCL device, without the
 * service. */
#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>
#include <vips/vips.h>

#include "base/log.h"
#include "bench/bench.h"
#include "device/cl/environment.h"
#include "process/start.h"

/* The standard set of filters. The matrices are not separable. */
static char matrix5[256], matrix15[2048];

static const struct {
	const char *name, *chain;
	const char *pixels; /* only for these; NULL: for the standard types */
} filters[] = {
    {"gaussian 3x3", "gaussian=size=3", NULL},
    {"gaussian 5x5", "gaussian=sigma=1.1:size=5", NULL},
    {"gaussian 31x31", "gaussian=sigma=5", NULL},
    {"matrix 5x5", matrix5, NULL},
    {"matrix 15x15", matrix15, NULL},
    {"sobel", "sobel", NULL},
    {"bilateral 9x9", "bilateral=radius=4:sigma_space=5:sigma_range=0.1176", NULL},
    {"median 3x3", "median", NULL},
    {"median 5x5", "median=radius=2", NULL},
    {"median 11x11", "median=radius=5", NULL},
    {"erode 3x3", "erode", NULL},
    {"erode 31x31", "erode=size=31", NULL},
    {"threshold", "threshold", NULL},
    {"canny", "canny=sigma=0", NULL},
    {"luma 5x5, chroma 3x3", "luma=gaussian=sigma=1.1:size=5&chroma=gaussian=size=3", "u8x3"},
};

static const char *const pixel_types[] = {"u8", "u8x4", "f32", "u8x3"};
static const uint32_t sides[] = {256, 512, 2048, 4096, 8192};

/* Writes "convolve=kernel=…" with a matrix of small integers. */
static void write_matrix(char *text, size_t size, int side)
{
	size_t used = (size_t)snprintf(text, size, "convolve=kernel=");

	for (int i = 0; i < side * side; i++)
		used += (size_t)snprintf(text + used, size - used, "%d%s", 1 + i * i % 7,
		                         i == side * side - 1   ? ""
		                         : i % side == side - 1 ? ";"
		                                                : " ");
}

/* ---- pictures of files, by libvips ---- */

static const VipsBandFormat formats[PIXEL_TYPES] = {
    [PIXEL_U8] = VIPS_FORMAT_UCHAR,
    [PIXEL_U16] = VIPS_FORMAT_USHORT,
    [PIXEL_F32] = VIPS_FORMAT_FLOAT,
};

/* Reads a file as an image of a supported type. The caller frees the pixels, which are packed. */
static void *picture_read(const char *path, struct image *image)
{
	VipsImage *from = vips_image_new_from_file(path, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
	void *pixels;
	size_t size;

	if (!from)
		errx(1, "%s: %s", path, vips_error_buffer());
	*image = (struct image){.width = (uint32_t)vips_image_get_width(from),
	                        .height = (uint32_t)vips_image_get_height(from),
	                        .bands = (uint32_t)vips_image_get_bands(from)};
	while (image->type < PIXEL_TYPES && formats[image->type] != vips_image_get_format(from))
		image->type++;
	if (!image_valid(image) || image_planes(image) > 1)
		errx(1, "%s: expected 1 to 4 bands of 8-bit or 16-bit integers or floats", path);
	pixels = vips_image_write_to_memory(from, &size);
	if (!pixels)
		errx(1, "%s: %s", path, vips_error_buffer());
	g_object_unref(from);
	return pixels;
}

/* ---- report: a table for people, rows of JSON for programs ---- */

static void print_row(const struct measured *m, const struct bench_result *result)
{
	char shape[32] = "", wrong[64] = "right", times_reference[32] = "-";
	double slowest = 0, reference = NAN;

	for (uint32_t i = 0; i < result->count; i++) {
		const struct measured *other = &result->measured[i];

		if (!other->threads)
			slowest = fmax(slowest, other->times.median);
		if (!strcmp(other->variant, "reference"))
			reference = other->times.median;
	}
	if (m->shape.x)
		snprintf(shape, sizeof shape, "%ux%u by %ux%u", m->shape.x, m->shape.y,
		         m->shape.group_x, m->shape.group_y);
	else if (m->launches > 1)
		snprintf(shape, sizeof shape, "%u launches", m->launches);
	if (m->mismatches)
		snprintf(wrong, sizeof wrong, "WRONG");
	else if (m->outside)
		snprintf(wrong, sizeof wrong, "WRONG: %" PRIu64 " bytes outside the target",
		         m->outside);
	if (isfinite(reference))
		snprintf(times_reference, sizeof times_reference, "%.1f",
		         reference / m->times.median);
	printf("  %-24s %-18s %-15s %5u %11.3f %11.3f %9.1f %8.3f %10.1f %11s  %s, %.3g\n",
	       m->variant, shape, m->form, m->runs, m->times.median, m->times.mean, m->gb_per_s,
	       m->share_of_copy, slowest / m->times.median, times_reference, wrong,
	       m->max_difference);
}

/* Makes the object of a row. chain: what --filter would take. */
static json_t *row_json(const char *filter, const char *chain, const struct bench_case *c,
                        const struct measured *m, const struct bench_result *result)
{
	json_t *row = json_pack(
	    "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:[i,i]}", "variant", m->variant, "filter",
	    filter, "chain", chain, "type", pixel_type_rows[c->image.type].name, "bands",
	    (int)c->image.bands, "width", (int)c->image.width, "height", (int)c->image.height,
	    "taps", (int)c->taps, "roi", (int)result->image.width, (int)result->image.height);

	json_object_update_new(
	    row, json_pack("{s:s, s:s, s:i, s:i, s:i, s:[i,i,i,i]}", "origin", m->origin, "form",
	                   m->form, "launches", (int)m->launches, "threads", (int)m->threads,
	                   "runs", (int)m->runs, "shape", (int)m->shape.x, (int)m->shape.y,
	                   (int)m->shape.group_x, (int)m->shape.group_y));
	json_object_update_new(row, json_pack("{s:f, s:f, s:f, s:f, s:f}", "median_seconds",
	                                      m->times.median * 1e-3, "mean_seconds",
	                                      m->times.mean * 1e-3, "bytes_per_second",
	                                      m->gb_per_s * 1e9, "share_of_copy", m->share_of_copy,
	                                      "copy_seconds", result->copy.median * 1e-3));
	json_object_update_new(row, json_pack("{s:b, s:I, s:I, s:I, s:f}", "verified",
	                                      m->verified && measured_is_right(m),
	                                      "verified_samples", (json_int_t)m->verified,
	                                      "wrong_samples", (json_int_t)m->mismatches,
	                                      "bytes_outside", (json_int_t)m->outside,
	                                      "max_difference", m->max_difference));
	return row;
}

static json_t *device_json(const struct session *s)
{
	const struct bench_options *o = s->options;
	json_t *command = json_array();
	char date[32] = "";
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (int i = 0; i < o->argc; i++)
		json_array_append_new(command, json_string(o->argv[i]));
	return json_pack("{s:s, s:s, s:o, s:s, s:s, s:f, s:i, s:i, s:f, s:b, s:s, s:o}", "version",
	                 PACKAGE_VERSION, "date", date, "command", command, "device",
	                 s->device.name, "driver", s->device.driver, "copy_bytes_per_second",
	                 s->copy * 1e9, "iterations", (int)o->iterations, "warmup", (int)o->warmup,
	                 "budget_seconds", o->budget, "verify_all", o->verify, "clock",
	                 "of the device; rows with threads: the processor's", "results",
	                 s->results);
}

/* ---- cases ---- */

/* Replaces percentages in a case's chain by pixels. */
static enum error size_chain(struct bench_case *c, const struct area *roi, struct problem *problem)
{
	const bool whole = !roi->width;
	struct chain *sized;
	enum error e = chain_size_to(&c->chain, whole ? c->image.width : roi->width,
	                             whole ? c->image.height : roi->height, &sized, problem);

	if (e)
		return e;
	memcpy(&c->chain, sized, chain_size(sized));
	free(sized);
	return ERR_OK;
}

/* Parses a filter or chain, or several with & between, also "luma=CHAIN" and "chroma=CHAIN". */
static void parse_filter(const struct session *s, const char *text, struct bench_case *c)
{
	struct problem problem = {.detail = "expected a filter"};
	char *copy = strdup(text), *rest = copy, *part;
	enum error e = copy ? ERR_OK : ERR_MEMORY;

	c->taps = 0;
	while (!e && (part = strsep(&rest, "&"))) {
		if (g_str_has_prefix(part, "luma="))
			e = chain_parse_for(&c->chain, CHANNELS_LUMA, "luma",
			                    part + strlen("luma="), &problem);
		else if (g_str_has_prefix(part, "chroma="))
			e = chain_parse_for(&c->chain, CHANNELS_CHROMA, "chroma",
			                    part + strlen("chroma="), &problem);
		else
			e = chain_parse(&c->chain, part, &problem);
	}
	if (!e)
		e = chain_check(&c->chain, &problem);
	if (!e && chain_has_shares(&c->chain))
		e = size_chain(c, &s->options->source_roi, &problem);
	free(copy);
	if (e)
		errx(2, "--filter '%s': %s", text, problem.detail);
	for (uint32_t i = 0; i < c->chain.count; i++) {
		uint32_t x, y;

		if (filter_gathers(&c->chain.call[i]) == GATHER_TILES)
			errx(2,
			     "--filter '%s': method=clahe needs the tables of an image's tiles, "
			     "which only the service makes; expected another filter",
			     text);
		filter_radius(&c->chain.call[i], &x, &y);
		c->taps += (2.0 * x + 1) * (2.0 * y + 1);
	}
}

static void write_output(const struct session *s, const struct bench_result *result)
{
	const char *path = s->options->output;
	const struct image *image = &result->image;
	const bool wide = image->type == PIXEL_U16, grey = image->bands < 3;
	const VipsInterpretation meaning = /* some formats ask for it */
	    grey ? (wide ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_B_W)
	         : (wide ? VIPS_INTERPRETATION_RGB16 : VIPS_INTERPRETATION_sRGB);
	VipsImage *bare, *all = NULL;

	if (!result->best)
		errx(1, "--output '%s': no result is right", path);
	bare =
	    vips_image_new_from_memory(result->pixels, image_size(image), (int)image->width,
	                               (int)image->height, (int)image->bands, formats[image->type]);
	if (!bare || vips_copy(bare, &all, "interpretation", meaning, NULL) ||
	    vips_image_write_to_file(all, path, NULL))
		errx(1, "%s: %s", path, vips_error_buffer());
	if (!s->options->json)
		printf("  %s: by %s\n", path, result->best);
	g_object_unref(all);
	g_object_unref(bare);
}

/* True for the value of --filter that is no chain. */
static bool is_jpeg(const char *filter)
{
	return filter && !strcmp(filter, "jpeg");
}

static void run_case(struct session *s, const char *name, const char *chain, struct bench_case *c)
{
	struct bench_result result = {0};

	chain_init(&c->chain);
	if (is_jpeg(chain)) {
		jpeg_measure(s, c, &result);
	} else {
		parse_filter(s, chain, c);
		measure_case(s, c, &result);
	}
	s->copy = result.copy_gb_per_s;
	if (!s->options->json) {
		printf("\n%s, %s x%u, %ux%u on %s: copy %.3f ms, %.1f GB/s\n", name,
		       pixel_type_rows[c->image.type].name, c->image.bands, c->image.width,
		       c->image.height, s->device.name, result.copy.median, result.copy_gb_per_s);
		printf("  %-24s %-18s %-15s %5s %11s %11s %9s %8s %10s %11s  %s\n", "variant",
		       "shape", "form", "runs", "median ms", "mean ms", "GB/s", "of copy",
		       "slowest x", "reference x", "verified");
		if (!result.count)
			puts("  none: no variant that was asked for applies");
	}
	for (uint32_t i = 0; i < result.count; i++) {
		const struct measured *m = &result.measured[i];

		if (!s->options->json)
			print_row(m, &result);
		json_array_append_new(s->results, row_json(name, chain, c, m, &result));
		s->wrong |= !measured_is_right(m);
	}
	fflush(stdout);
	if (s->options->output)
		write_output(s, &result);
	free(result.pixels);
}

/* Runs the requested filters. pixels: the standard type of this image; NULL: the user's image, or a
 * file's, for all filters. */
static void run_filters(struct session *s, struct bench_case *c, const char *pixels)
{
	if (s->options->filter) {
		run_case(s, s->options->filter, s->options->filter, c);
		return;
	}
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		if (!pixels || (filters[i].pixels ? !strcmp(filters[i].pixels, pixels)
		                                  : strcmp(pixels, "u8x3") != 0))
			run_case(s, filters[i].name, filters[i].chain, c);
}

/* Runs random pixels of a type: "u8", "u16x3", "f32x4" and so on; floats are from -1 to 1. */
static void run_random(struct session *s, struct bench_case *c, const char *pixels, uint32_t width,
                       uint32_t height)
{
	const char *bands = strchr(pixels, 'x');
	uint64_t state = 1;
	uint32_t full;
	char whole[64];
	void *memory;

	snprintf(whole, sizeof whole, "%ux%ux%s:%.*s", width, height, bands ? bands + 1 : "1",
	         (int)strcspn(pixels, "x"), pixels);
	if (!image_parse(whole, &c->image) || image_planes(&c->image) > 1)
		errx(2, "--pixels '%s': expected u8, u16 or f32, x1 to x4", pixels);
	if (!s->options->pixels && is_jpeg(s->options->filter) && !jpeg_measures(&c->image))
		return;
	memory = bench_alloc(image_size(&c->image));
	full = (uint32_t)pixel_type_rows[c->image.type].full_scale;
	for (size_t i = 0; i < (size_t)c->image.width * c->image.height * c->image.bands; i++) {
		uint32_t r;

		/* A linear congruential generator (D. E. Knuth's MMIX). */
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		r = (uint32_t)(state >> 33);
		image_put_sample(memory, i, c->image.type,
		                 c->image.type == PIXEL_F32 ? (float)r * 0x1p-30f - 1
		                                            : (float)(r >> 8 & full));
	}
	c->pixels = memory;
	run_filters(s, c, s->options->pixels ? NULL : pixels);
	free(memory);
}

/* Runs all requested cases. Returns true if all results are right. */
static bool run_device(const struct bench_options *options, const struct message_device *m)
{
	const size_t types = options->pixels ? 1 : sizeof pixel_types / sizeof *pixel_types;
	const size_t sizes = options->width ? 1 : sizeof sides / sizeof *sides;
	struct session s = {.options = options, .results = json_array()};
	struct bench_case *c = bench_alloc(sizeof *c);
	void *memory;
	json_t *all;

	bench_must(device_open(&s.device, m->platform, m->device));
	bench_must(programs_new(&s.programs, &s.device, options->kernel_dir, options->cache_dir, 0,
	                        SPECIALS_MANY, -1));
	programs_hurry(s.programs);
	s.queue = device_queue(&s.device, CL_QUEUE_PROFILING_ENABLE);
	bench_must(s.queue ? ERR_OK : ERR_DEVICE);
	if (s.device.in_place)
		bench_must(pool_new(&s.device, -1, &s.pool));
	if (options->file) {
		c->pixels = memory = picture_read(options->file, &c->image);
		run_filters(&s, c, NULL);
		free(memory);
	}
	for (size_t i = 0; !options->file && i < types * sizes; i++)
		run_random(&s, c, options->pixels ? options->pixels : pixel_types[i / sizes],
		           options->width ? options->width : sides[i % sizes],
		           options->width ? options->height : sides[i % sizes]);
	free(c);
	all = device_json(&s);
	if (options->json) {
		json_dumpf(all, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(all);
	pool_free(&s.pool);
	object_release(OBJECT_QUEUE, s.queue);
	programs_free(&s.programs);
	device_close(&s.device);
	return !s.wrong;
}

int main(int argc, char **argv)
{
	enum { ROOM = 64 };
	struct message_device list[ROOM];
	static struct bench_options options;
	size_t count;
	bool chosen[ROOM], right = true;

	bench_options_parse(&options, argc, argv);
	signals_reset();
	log_init("convolved-bench", LOG_LEVEL_WARNING, LOG_FORMAT_AUTO);
	if ((options.file || options.output || is_jpeg(options.filter)) &&
	    VIPS_INIT("convolved-bench"))
		errx(1, "%s", vips_error_buffer());
	if (options.output && !vips_foreign_find_save(options.output))
		errx(2,
		     "--output '%s': expected the name of a file that libvips can write, e.g. "
		     "out.png",
		     options.output);
	write_matrix(matrix5, sizeof matrix5, 5);
	write_matrix(matrix15, sizeof matrix15, 15);
	environment_set(options.cache_dir);
	count = device_list(list, ROOM);
	if (!bench_options_choose(&options, list, count, chosen))
		errx(1, "no such OpenCL device; clinfo -l lists them");
	for (size_t i = 0; i < count; i++)
		if (chosen[i])
			right &= run_device(&options, &list[i]);
	return !right;
}
