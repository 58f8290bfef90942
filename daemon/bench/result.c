/* The reference is much slower than any kernel. Unless everything is to be checked, it computes the
 * corners and some windows at random places, which are the same for every kernel. */
#include "bench/bench.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "base/sort.h"

enum { WINDOWS = 24, WINDOW_SIDE = 96, BAND_ROWS = 64 };

void *bench_alloc(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		errx(1, "out of memory");
	return memory;
}

void bench_must(enum error e)
{
	if (e == ERR_MEMORY)
		errx(1, "out of memory");
	if (e)
		exit(e == ERR_BAD_PARAMETER ? 2 : 1);
}

void bench_check(cl_int code, const char *what)
{
	if (code)
		errx(1, "%s: %s", what, opencl_error_name(code));
}

void check_window(const struct case_pixels *p, const struct window *w, const char *from,
                  size_t pitch, struct measured *m)
{
	const struct view *tile = &p->source_view[FORM_TILE][0];
	struct difference difference = {0};
	struct reference reference;

	bench_must(
	    reference_window(&p->c->chain, &p->part, w, case_first(p, w), tile->pitch, &reference));
	difference_add(&difference, &reference, from, pitch);
	reference_fini(&reference);
	m->verified += difference.samples;
	m->mismatches += difference.mismatches;
	m->max_difference = fmax(m->max_difference, difference.largest);
}

/* Counts the bytes that are not poison. */
static uint64_t count_changed(const char *from, const char *end)
{
	uint64_t count = 0;

	for (; from < end; from++)
		count += (uint8_t)*from != POISON;
	return count;
}

void check_target(const struct case_pixels *p, bool all, const char *target, struct measured *m)
{
	const size_t pixel = image_pixel_size(&p->area), pitch = p->area.width * pixel;
	const char *first = target + case_target(p, FORM_TILE, 0)->origin, *free = target;
	const uint32_t width = p->result.width, height = p->result.height;
	const uint32_t across = MIN(width, WINDOW_SIDE), down = MIN(height, WINDOW_SIDE);

	for (uint32_t i = 0; all ? i * BAND_ROWS < height : i < WINDOWS; i++) {
		const uint64_t hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		struct window w = {i % 2 ? width - across : 0, i / 2 % 2 ? height - down : 0,
		                   across, down};

		if (i >= 4) { /* the corners come first */
			w.x0 = (uint32_t)((hash >> 32) % (width - across + 1));
			w.y0 = (uint32_t)((hash & UINT32_MAX) % (height - down + 1));
		}
		if (all)
			w = (struct window){0, i * BAND_ROWS, width,
			                    MIN(height - i * BAND_ROWS, BAND_ROWS)};
		check_window(p, &w, first + w.y0 * pitch + w.x0 * pixel, pitch, m);
	}
	for (uint32_t y = 0; y < p->target.height; y++) {
		const char *row = first + y * pitch;

		m->outside += count_changed(free, row);
		free = row + p->target.width * pixel;
	}
	m->outside += count_changed(free, target + p->target_size);
}

bool measured_is_right(const struct measured *m)
{
	return !m->mismatches && !m->outside;
}

/* GB/s of reading an image and writing another in this time. */
static double speed(const struct image *in, const struct image *out, double ms)
{
	return (double)(image_size(in) + image_size(out)) / ms * 1e-6;
}

void result_begin(struct bench_result *result, const struct image *source,
                  const struct image *image, double *copy_ms, uint32_t runs, uint32_t warmup)
{
	uint32_t copies;

	result->source = *source;
	result->image = *image;
	result->copy = times_of_runs(copy_ms, runs, warmup, &copies);
	result->copy_gb_per_s = speed(source, source, result->copy.median);
}

void result_add(struct bench_result *result, const struct measured *m)
{
	struct measured *slot = result->measured;

	while (slot < result->measured + result->count && strcmp(slot->variant, m->variant) != 0)
		slot++;
	if (slot == result->measured + MEASURED_MAX)
		return;
	if (slot == result->measured + result->count)
		result->count++;
	else if (measured_is_right(m) &&
	         (!measured_is_right(slot) || slot->times.median <= m->times.median))
		return;
	*slot = *m;
	slot->gb_per_s = speed(&result->source, &result->image, m->times.median);
	slot->share_of_copy = result->copy.median / m->times.median;
}

struct times times_of_runs(double *ms, uint32_t runs, uint32_t warmup, uint32_t *timed)
{
	const uint32_t skip = runs > 2 * warmup ? warmup : runs > 1;
	struct times times = {NAN, NAN};

	*timed = runs - skip;
	if (!*timed)
		return times;
	ms += skip;
	sort_doubles(ms, *timed);
	times = (struct times){.median = ms[*timed / 2]};
	for (size_t i = 0; i < *timed; i++)
		times.mean += ms[i] / *timed;
	return times;
}

double times_now(void)
{
	return (double)now_ns() * 1e-6;
}

double times_of_event(cl_event event, cl_int *code)
{
	uint64_t ns = 0;

	if (!*code)
		*code = opencl_time_between(event, event, &ns);
	if (event)
		clReleaseEvent(event);
	return (double)ns * 1e-6;
}
