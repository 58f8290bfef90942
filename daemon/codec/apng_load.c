/* Each frame is decoded by the loader of still images, and put on a canvas that is as large as the
 * image; another canvas keeps what a frame hides for a time. libvips asks for rows in one thread at
 * a time, but not in the same one always: hence the lock. */
#include "codec/apng_load.h"

#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/apng.h"
#include "codec/vips_reader.h"

struct animation {
	struct apng *apng;
	uint32_t first; /* of the frames that are read */
	struct image image;
	bool adds_alpha; /* which the file does not have */
	GMutex lock;
	uint8_t *canvas, *kept; /* NULL until needed; kept: unless no frame asks for it */
	uint32_t shown;         /* frames that have been put on the canvas */
};

static size_t row_size(const struct animation *a)
{
	return image_row_size(&a->image);
}

/* Clears an area of the canvas, or (from) copies it. */
static void put_area(const struct animation *a, const struct apng_frame *f, uint8_t *to,
                     const uint8_t *from)
{
	const size_t pixel = image_pixel_size(&a->image), size = f->width * pixel;

	for (uint32_t y = f->y; y < f->y + f->height; y++) {
		size_t at = y * row_size(a) + f->x * pixel;

		if (from)
			memcpy(to + at, from + at, size);
		else
			memset(to + at, 0, size);
	}
}

static VipsImage *load_frame(const struct animation *a, const struct apng_frame *f,
                             const uint8_t *file, size_t size)
{
	VipsSource *source = vips_source_new_from_memory(file, size);
	VipsImage *loaded = NULL, *vips = NULL;

	if (source && !vips_call(format_row(FORMAT_PNG)->loader, source, &loaded, "access",
	                         VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL)) {
		if (!a->adds_alpha)
			vips = g_object_ref(loaded);
		else if (vips_addalpha(loaded, &vips, NULL))
			vips = NULL;
	}
	/* It is put on the canvas as it is, but for alpha. */
	if (vips && (vips->Xsize != (int)f->width || vips->Ysize != (int)f->height ||
	             (uint32_t)vips_reader_type(vips) != a->image.type ||
	             vips->Bands != (int)a->image.bands)) {
		vips_error("png", "a frame has other pixels than the image");
		g_clear_object(&vips);
	}
	g_clear_object(&loaded);
	g_clear_object(&source);
	return vips;
}

/* Its first pixel in the region. */
static uint8_t *row_of(const VipsRegion *region, int y)
{
	return VIPS_REGION_ADDR_TOPLEFT(region) +
	       (size_t)(y - region->valid.top) * (size_t)VIPS_REGION_LSKIP(region);
}

static bool blend_rows(const struct animation *a, const struct apng_frame *f, VipsImage *vips)
{
	enum { STEP = 64 };
	VipsRegion *region = vips_region_new(vips);
	uint8_t *to = a->canvas + f->y * row_size(a) + f->x * image_pixel_size(&a->image);
	bool there = region;

	for (int y = 0; there && y < vips->Ysize; y += STEP) {
		const VipsRect rows = {0, y, vips->Xsize,
		                       y + STEP < vips->Ysize ? STEP : vips->Ysize - y};

		there = !vips_region_prepare(region, &rows);
		for (int i = 0; there && i < rows.height; i++, to += row_size(a))
			apng_blend_row(to, row_of(region, y + i), f->width, &a->image, f->blend);
	}
	g_clear_object(&region);
	return there;
}

/* Puts the next frame on the canvas. */
static bool show_next(struct animation *a)
{
	const struct apng_frame *f = a->apng->frames + a->shown;
	VipsImage *vips = NULL;
	uint8_t *file;
	size_t size;
	bool there;

	/* First undoes what the frame before asks to be undone. */
	if (a->shown && f[-1].dispose != DISPOSE_NONE)
		put_area(a, f - 1, a->canvas, f[-1].dispose == DISPOSE_PREVIOUS ? a->kept : NULL);
	if (f->dispose == DISPOSE_PREVIOUS)
		put_area(a, f, a->kept, a->canvas);
	file = apng_frame_file(a->apng, a->shown, &size);
	if (file)
		vips = load_frame(a, f, file, size);
	else
		vips_error("png", "no memory for a frame");
	there = vips && blend_rows(a, f, vips);
	a->shown += there;
	g_clear_object(&vips);
	free(file);
	return there;
}

static bool make_canvases(struct animation *a)
{
	bool keeps = false;

	for (uint32_t i = 0; i < a->apng->count; i++)
		keeps |= a->apng->frames[i].dispose == DISPOSE_PREVIOUS;
	a->canvas = malloc(image_size(&a->image));
	a->kept = keeps ? malloc(image_size(&a->image)) : NULL;
	if (a->canvas && (a->kept || !keeps))
		return true;
	free(a->canvas);
	free(a->kept);
	a->canvas = a->kept = NULL;
	vips_error("png", "no memory for the frames");
	return false;
}

/* Makes the canvas that of a frame. */
static bool show(struct animation *a, uint32_t frame)
{
	bool there = true;

	if (!a->canvas && !make_canvases(a))
		return false;
	if (a->shown > frame + 1)
		a->shown = 0;
	if (!a->shown)
		memset(a->canvas, 0, image_size(&a->image));
	while (there && a->shown <= frame)
		there = show_next(a);
	return there;
}

static int generate(VipsRegion *out, void *sequence, void *from, void *b, gboolean *stop)
{
	struct animation *a = from;
	const VipsRect *r = &out->valid;
	const size_t pixel = image_pixel_size(&a->image);
	const uint32_t height = a->image.height;
	bool there = true;

	(void)sequence, (void)b, (void)stop;
	g_mutex_lock(&a->lock);
	for (int y = r->top; there && y < r->top + r->height; y++) {
		there = show(a, a->first + (uint32_t)y / height);
		if (there)
			memcpy(row_of(out, y),
			       a->canvas + (uint32_t)y % height * row_size(a) +
			           (uint32_t)r->left * pixel,
			       (uint32_t)r->width * pixel);
	}
	g_mutex_unlock(&a->lock);
	return there ? 0 : -1;
}

static void animation_free(void *data)
{
	struct animation *a = data;

	apng_close(&a->apng);
	free(a->canvas);
	free(a->kept);
	g_mutex_clear(&a->lock);
	free(a);
}

static bool describe(VipsImage *to, const struct animation *a, uint32_t pages)
{
	enum { PLAYS_MAX = 65535 }; /* that other formats know of */
	const uint32_t plays = a->apng->plays;
	int *delays = calloc(a->apng->count, sizeof *delays);

	if (!delays)
		return false;
	for (uint32_t i = 0; i < a->apng->count; i++)
		delays[i] = (int)a->apng->frames[i].delay;
	vips_image_set_array_int(to, "delay", delays, (int)a->apng->count);
	vips_image_set_int(to, "loop", plays < PLAYS_MAX ? (int)plays : PLAYS_MAX);
	vips_image_set_int(to, VIPS_META_N_PAGES, (int)a->apng->count);
	vips_image_set_int(to, VIPS_META_PAGE_HEIGHT, (int)a->image.height);
	free(delays);
	to->Ysize = (int)(a->image.height * pages);
	to->Bands = (int)a->image.bands;
	return true;
}

static enum error no_memory(struct problem *problem)
{
	return problem_set(problem, ERR_MEMORY, "no memory for the frames");
}

enum error apng_load(VipsImage **image, const struct part *part, struct problem *problem)
{
	struct animation *a = calloc(1, sizeof *a);
	VipsImage *out;
	enum error e;

	if (!a)
		return no_memory(problem);
	g_mutex_init(&a->lock);
	a->first = part->page;
	a->image = (struct image){.width = (uint32_t)(*image)->Xsize,
	                          .height = (uint32_t)(*image)->Ysize,
	                          .bands = (uint32_t)(*image)->Bands,
	                          .type = vips_reader_type(*image),
	                          .alpha = vips_image_hasalpha(*image) != 0};
	e = apng_open(&a->apng, part->body->at, part->body->size, part->frames, problem);
	if (e) {
		animation_free(a);
		return e;
	}
	a->adds_alpha = a->apng->transparent && !a->image.alpha;
	a->image.bands += a->adds_alpha;
	a->image.alpha |= a->adds_alpha;
	out = vips_image_new();
	/* The animation, which owns its frames, goes with the new image. */
	g_object_set_data_full(G_OBJECT(out), "animation", a, animation_free);
	if (vips_image_pipelinev(out, VIPS_DEMAND_STYLE_THINSTRIP, *image, NULL) ||
	    !describe(out, a, part->all ? part->frames : 1) ||
	    vips_image_generate(out, NULL, generate, NULL, a, NULL)) {
		g_object_unref(out);
		return no_memory(problem);
	}
	g_object_unref(*image);
	*image = out;
	return ERR_OK;
}
