/* convolved-bench: times and checks every applicable kernel on any OpenCL device, without the
 * service. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bench/measure.h"
#include "bench/picture.h"
#include "common/log.h"
#include "common/signals.h"
#include "common/wire.h"
#include "device/environment.h"

/* The standard set of filters. The matrices are not separable. */
static char matrix5[256], matrix15[2048];

static const struct {
	const char *name, *chain;
} filters[] = {
    {"gaussian 3x3", "gaussian=size=3"},
    {"gaussian 5x5", "gaussian=sigma=1.1:size=5"},
    {"gaussian 31x31", "gaussian=sigma=5"},
    {"matrix 5x5", matrix5},
    {"matrix 15x15", matrix15},
    {"sobel", "sobel"},
    {"bilateral 9x9", "bilateral=radius=4:sigma_space=5:sigma_range=0.1176"},
};

static const char *const pixel_types[] = {"u8", "u8x4", "f32"};
static const uint32_t sides[] = {256, 512, 2048, 4096, 8192};

enum {
	FILTERS_STANDARD = sizeof filters / sizeof *filters,
	PIXELS_STANDARD = sizeof pixel_types / sizeof *pixel_types,
	SIDES_STANDARD = sizeof sides / sizeof *sides,
};

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

/* A device under test and its results. */
struct session {
	const struct bench_options *options;
	struct device device;
	struct programs *programs;
	json_t *results;
	double copy; /* GB/s of a copy in the last case */
};

static void print_head(const struct session *s, const char *filter, const struct bench_case *c,
                       const struct bench_result *result)
{
	printf("\n%s, %s x%u, %ux%u on %s: copy %.3f ms, %.1f GB/s\n", filter,
	       pixel_type_name(c->image.type), c->image.bands, c->image.width, c->image.height,
	       s->device.name, result->copy_ms, result->copy_gb_per_s);
	printf("  %-20s %-18s %5s %11s %9s %8s %10s %10s  %s\n", "variant", "shape", "runs", "ms",
	       "GB/s", "of copy", "slowest x", "reference x", "verified");
}

static double slowest(const struct bench_result *result)
{
	double ms = 0;

	for (uint32_t i = 0; i < result->count; i++)
		if (strcmp(result->measured[i].variant, "reference"))
			ms = fmax(ms, result->measured[i].median_ms);
	return ms;
}

static double reference_ms(const struct bench_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (!strcmp(result->measured[i].variant, "reference"))
			return result->measured[i].median_ms;
	return NAN;
}

static void print_row(const struct measured *m, const struct bench_result *result)
{
	char shape[32] = "";

	if (m->shape.x)
		snprintf(shape, sizeof shape, "%ux%u by %ux%u", m->shape.x, m->shape.y,
		         m->shape.group_x, m->shape.group_y);
	printf("  %-20s %-18s %5u %11.3f %9.1f %8.3f %10.1f %10.1f  %s, %.3g\n", m->variant, shape,
	       m->runs, m->median_ms, m->gb_per_s, m->share_of_copy, slowest(result) / m->median_ms,
	       reference_ms(result) / m->median_ms, m->mismatches ? "WRONG" : "right",
	       m->max_difference);
}

static void print_result(const struct session *s, const char *filter, const struct bench_case *c,
                         const struct bench_result *result)
{
	print_head(s, filter, c, result);
	if (!result->count)
		puts("  none: this filter needs several kernels, and only single kernels are "
		     "timed");
	for (uint32_t i = 0; i < result->count; i++)
		print_row(&result->measured[i], result);
	fflush(stdout);
}

static void add_result(const struct session *s, const char *filter, const struct bench_case *c,
                       const struct measured *m)
{
	json_array_append_new(
	    s->results,
	    json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:b, s:f, s:i, s:I, "
	              "s:[i,i,i,i]}",
	              "variant", m->variant, "filter", filter, "type",
	              pixel_type_name(c->image.type), "bands", (int)c->image.bands, "width",
	              (int)c->image.width, "height", (int)c->image.height, "taps", (int)c->taps,
	              "median_seconds", m->median_ms * 1e-3, "bytes_per_second", m->gb_per_s * 1e9,
	              "share_of_copy", m->share_of_copy, "verified", m->verified && !m->mismatches,
	              "max_difference", m->max_difference, "runs", (int)m->runs, "verified_samples",
	              (json_int_t)m->verified, "shape", (int)m->shape.x, (int)m->shape.y,
	              (int)m->shape.group_x, (int)m->shape.group_y));
}

/* Parses exactly one filter; false, with a message, on failure. */
static bool parse_filter(const char *text, struct bench_case *c)
{
	struct problem problem = {.detail = "expected one filter"};
	struct operation op;

	chain_init(&c->chain);
	if (chain_parse(&c->chain, text, &problem) || chain_check(&c->chain, &problem) ||
	    c->chain.count != 1) {
		fprintf(stderr, "convolved-bench: --filter '%s': %s\n", text, problem.detail);
		return false;
	}
	if (filter_lower(&c->chain.call[0], c->chain.coefficient, &op))
		return false;
	c->taps = (2.0 * op.radius_x + 1) * (2.0 * op.radius_y + 1);
	operation_fini(&op);
	return true;
}

static enum error run_case(struct session *s, const char *name, const char *chain,
                           struct bench_case *c, bool *right)
{
	struct bench_result result;
	enum error e;

	if (!parse_filter(chain, c))
		return ERR_BAD_PARAMETER;
	e = measure_case(s->programs, s->options, c, &result);
	if (e)
		return e;
	s->copy = result.copy_gb_per_s;
	if (!s->options->json)
		print_result(s, name, c, &result);
	for (uint32_t i = 0; i < result.count; i++) {
		*right &= !result.measured[i].mismatches;
		add_result(s, name, c, &result.measured[i]);
	}
	return ERR_OK;
}

static enum error run_filters(struct session *s, struct bench_case *c, bool *right)
{
	enum error e = ERR_OK;

	if (s->options->filter)
		return run_case(s, s->options->filter, s->options->filter, c, right);
	for (size_t i = 0; !e && i < FILTERS_STANDARD; i++)
		e = run_case(s, filters[i].name, filters[i].chain, c, right);
	return e;
}

/* Parses "u8", "u16x3", "f32x4" and so on. */
static bool parse_pixels(const char *text, struct image *image)
{
	char whole[64];

	snprintf(whole, sizeof whole, "1x1x%s:%.*s",
	         strchr(text, 'x') ? strchr(text, 'x') + 1 : "1", (int)strcspn(text, "x"), text);
	if (image_parse(whole, image))
		return true;
	fprintf(stderr, "convolved-bench: --pixels '%s': expected u8, u16 or f32, x1 to x4\n",
	        text);
	return false;
}

static enum error run_random(struct session *s, struct bench_case *c, const char *pixels,
                             uint32_t width, uint32_t height, bool *right)
{
	void *memory;
	enum error e;

	if (!parse_pixels(pixels, &c->image))
		return ERR_BAD_PARAMETER;
	c->image.width = width;
	c->image.height = height;
	memory = malloc(image_size(&c->image));
	if (!memory)
		return ERR_MEMORY;
	picture_random(&c->image, memory);
	c->pixels = memory;
	e = run_filters(s, c, right);
	free(memory);
	return e;
}

static enum error run_file(struct session *s, struct bench_case *c, bool *right)
{
	void *memory = NULL;
	enum error e = picture_read(s->options->file, &c->image, &memory);

	c->pixels = memory;
	if (!e)
		e = run_filters(s, c, right);
	free(memory);
	return e;
}

/* Runs all requested cases. */
static enum error run_cases(struct session *s, bool *right)
{
	const struct bench_options *o = s->options;
	struct bench_case *c = calloc(1, sizeof *c);
	enum error e = c ? ERR_OK : ERR_MEMORY;

	if (!e && o->file) {
		e = run_file(s, c, right);
	} else {
		for (size_t p = 0; !e && p < (o->pixels ? 1 : PIXELS_STANDARD); p++)
			for (size_t i = 0; !e && i < (o->width ? 1 : SIDES_STANDARD); i++)
				e = run_random(s, c, o->pixels ? o->pixels : pixel_types[p],
				               o->width ? o->width : sides[i],
				               o->width ? o->height : sides[i], right);
	}
	free(c);
	return e;
}

static enum error run_device(const struct bench_options *options, const struct message_device *m,
                             bool *right)
{
	struct session s = {.options = options, .results = json_array()};
	json_t *all;
	enum error e = device_open(&s.device, m->platform, m->device);

	if (!e)
		e = programs_new(&s.programs, &s.device, options->kernel_dir, options->cache_dir, 0,
		                 -1);
	if (!e)
		e = run_cases(&s, right);
	all = json_pack("{s:s, s:s, s:f, s:o}", "device", s.device.name, "driver", s.device.driver,
	                "copy_bytes_per_second", s.copy * 1e9, "results", s.results);
	if (!e && options->json) {
		json_dumpf(all, stdout, JSON_COMPACT);
		putchar('\n');
	}
	json_decref(all);
	programs_free(&s.programs);
	device_close(&s.device);
	return e;
}

static bool device_wanted(const struct bench_options *o, const struct message_device *m,
                          size_t number, bool any_gpu)
{
	char *end;
	unsigned long wanted;

	if (o->platform >= 0 && m->platform != (unsigned)o->platform)
		return false;
	if (o->type_given && o->device_type && m->type != o->device_type)
		return false;
	if (o->device) {
		wanted = strtoul(o->device, &end, 10);
		return *end ? strcasestr(m->name, o->device) != NULL : wanted == number;
	}
	return o->type_given || !any_gpu || m->type == DEVICE_GPU;
}

int main(int argc, char **argv)
{
	enum { ROOM = 64 };
	struct message_device list[ROOM];
	struct bench_options options;
	size_t count, number = 0, done = 0;
	bool any_gpu = false, right = true;
	enum error e = ERR_OK;

	bench_options_parse(&options, argc, argv);
	signals_reset();
	log_init("convolved-bench", LOG_LEVEL_WARNING, LOG_FORMAT_AUTO);
	write_matrix(matrix5, sizeof matrix5, 5);
	write_matrix(matrix15, sizeof matrix15, 15);
	environment_set(options.cache_dir);
	count = device_list(list, ROOM);
	for (size_t i = 0; i < count; i++)
		any_gpu |= list[i].type == DEVICE_GPU;
	for (size_t i = 0; !e && i < count; i++) {
		if (options.platform >= 0 && list[i].platform != (unsigned)options.platform)
			continue;
		if (!device_wanted(&options, &list[i], number++, any_gpu))
			continue;
		e = run_device(&options, &list[i], &right);
		done++;
	}
	if (!e && !done) {
		fputs("convolved-bench: no such OpenCL device; clinfo -l lists them\n", stderr);
		return 1;
	}
	if (e == ERR_BAD_PARAMETER)
		return 2;
	return e || !right ? 1 : 0;
}
