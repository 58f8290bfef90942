/* The reference is much slower than any kernel. Unless everything is to be checked, it computes the
 * corners and some windows at random places, which are the same for every kernel. */
#include "bench/check.h"

enum { WINDOWS = 24, WINDOW_SIDE = 96 };

/* Compares a window of the target with the reference. */
static enum error check_window(const struct bench_case *c, const struct case_pixels *p,
                               const struct window *w, const char *target,
                               struct difference *difference)
{
	const size_t pixel = image_pixel_size(&p->part);
	const char *from = p->padded + p->padded_view.origin +
	                   (size_t)w->y0 * p->padded_view.pitch + w->x0 * pixel;
	struct reference reference;
	enum error e =
	    reference_window(&c->chain, &p->part, w, from, p->padded_view.pitch, &reference);

	if (e)
		return e;
	difference_add(difference, &reference,
	               target + p->target_view.origin + (size_t)w->y0 * p->target_view.pitch +
	                   w->x0 * pixel,
	               p->target_view.pitch);
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

enum error check_target(const struct bench_case *c, const struct case_pixels *pixels, bool all,
                        const char *target, struct difference *difference)
{
	struct window w;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && window_get(&pixels->part, all, i, &w); i++)
		e = check_window(c, pixels, &w, target, difference);
	return e;
}
