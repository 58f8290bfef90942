/* The reference is much slower than any kernel. Unless everything is to be checked, it computes the
 * corners and some windows at random places, which are the same for every kernel. */
#include "bench/check.h"

#include "base/clock.h"
#include "base/sort.h"

enum { WINDOWS = 24, WINDOW_SIDE = 96 };

enum error check_window(const struct bench_case *c, const struct case_pixels *p,
                        const struct window *w, const char *from, size_t pitch,
                        struct difference *difference)
{
	const struct view *tile = &p->source_view[FORM_TILE][0];
	const char *source = p->tile + tile->origin + (size_t)w->y0 * tile->pitch +
	                     w->x0 * image_pixel_size(&p->part);
	struct reference reference;
	enum error e = reference_window(&c->chain, &p->part, w, source, tile->pitch, &reference);

	if (e)
		return e;
	difference_add(difference, &reference, from, pitch);
	reference_fini(&reference);
	return ERR_OK;
}

/* The i-th window: the corners first, then random places. With `all`, bands of rows. */
static bool window_get(const struct image *image, bool all, uint32_t i, struct window *w)
{
	const uint32_t width = image->width, height = image->height;
	const uint32_t side = WINDOW_SIDE, rows = 64;
	uint64_t hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (all) {
		*w = (struct window){0, i * rows, width, rows};
		if (w->y0 >= height)
			return false;
		w->height = height - w->y0 < rows ? height - w->y0 : rows;
		return true;
	}
	w->width = width < side ? width : side;
	w->height = height < side ? height : side;
	w->x0 = i % 2 ? width - w->width : 0;
	w->y0 = i / 2 % 2 ? height - w->height : 0;
	if (i >= 4) {
		w->x0 = (uint32_t)((hash >> 32) % (width - w->width + 1));
		w->y0 = (uint32_t)((hash & UINT32_MAX) % (height - w->height + 1));
	}
	return i < WINDOWS;
}

enum error check_target(const struct bench_case *c, const struct case_pixels *p, bool all,
                        const char *target, struct difference *difference)
{
	const size_t pixel = image_pixel_size(&p->area), pitch = p->area.width * pixel;
	const char *first = target + case_target(p, FORM_TILE, 0)->origin;
	struct window w;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && window_get(&p->part, all, i, &w); i++)
		e = check_window(c, p, &w, first + w.y0 * pitch + w.x0 * pixel, pitch, difference);
	return e;
}

static uint64_t count_changed(const char *from, const char *end)
{
	uint64_t count = 0;

	for (; from < end; from++)
		count += (uint8_t)*from != POISON;
	return count;
}

uint64_t check_outside(const struct case_pixels *p, const char *target)
{
	const size_t pixel = image_pixel_size(&p->area), pitch = p->area.width * pixel;
	const char *row = target + case_target(p, FORM_TILE, 0)->origin, *free = target;
	uint64_t count = 0;

	for (uint32_t y = 0; y < p->target.height; y++, row += pitch) {
		count += count_changed(free, row);
		free = row + p->target.width * pixel;
	}
	return count + count_changed(free, target + p->target_size);
}

struct times times_summarize(double *ms, size_t count)
{
	struct times times = {0};

	sort_doubles(ms, count);
	times.median = ms[count / 2];
	for (size_t i = 0; i < count; i++)
		times.mean += ms[i] / (double)count;
	return times;
}

double times_now(void)
{
	return (double)now_ns() * 1e-6;
}
