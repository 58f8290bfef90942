/* Damage is never ignored, because frames build on each other.
 *
 * Each frame is decoded by the loader of still images and put on a canvas as large as the image;
 * pixels that a frame hides for a time are kept behind it. */
#include "codec/formats/apng.h"

#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/formats/png_metadata.h"
#include "codec/formats/vips_reader.h"

enum {
	HEADER_SIZE = 13,
	CONTROL_SIZE = 26,
	NUMBER_SIZE = 4,
	PALETTE_MAX = 256 * 3,
	TRANSPARENCY_MAX = 256
};

/* The state of the walk through the chunks. */
struct walk {
	struct apng *apng;
	uint32_t promised, sequence;
	struct apng_frame *frame; /* the last; NULL: none yet */
	bool open;                /* its data may come: nothing has come between them */
	bool pixels;              /* the image that others show has begun */
	bool shown;               /* it is the first frame */
	const char *wrong;
};

static const char disorder[] = "its chunks are not in order";
static const char other_count[] = "its frames are not as many as it says";

static uint32_t number(const struct png_chunk *c, size_t at)
{
	return (uint32_t)bytes_number(c->data + at, 4, true);
}

static bool fail(struct walk *w, const char *wrong)
{
	w->wrong = wrong;
	return false;
}

static bool check_number(struct walk *w, const struct png_chunk *c)
{
	return number(c, 0) == w->sequence++ || fail(w, disorder);
}

static bool read_control(struct walk *w, const struct png_chunk *c)
{
	enum { WIDTH = 4, HEIGHT = 8, X = 12, Y = 16, DELAY = 20, DISPOSE = 24, BLEND = 25 };
	const uint8_t *at = c->data;
	struct apng *a = w->apng;
	struct apng_frame *f = a->frames + a->count;
	uint32_t parts;
	bool fits, covers;

	if (!a->header || c->size != CONTROL_SIZE || at[DISPOSE] >= DISPOSALS ||
	    at[BLEND] >= BLENDS)
		return fail(w, "a chunk fcTL is wrong");
	if (!check_number(w, c))
		return false;
	if (a->count == w->promised || (w->frame && !w->frame->data))
		return fail(w, other_count);
	w->shown |= !a->count && !w->pixels;
	/* Seconds as a fraction; a denominator of 0 stands for 100. */
	parts = (uint32_t)bytes_number(at + DELAY + 2, 2, true);
	parts = parts ? parts : 100;
	*f = (struct apng_frame){
	    .x = number(c, X),
	    .y = number(c, Y),
	    .width = number(c, WIDTH),
	    .height = number(c, HEIGHT),
	    .delay = ((uint32_t)bytes_number(at + DELAY, 2, true) * 1000 + parts / 2) / parts,
	    .dispose = (enum apng_dispose)at[DISPOSE],
	    .blend = (enum apng_blend)at[BLEND]};
	fits = f->width && f->height && f->width <= a->width && f->height <= a->height &&
	       f->x <= a->width - f->width && f->y <= a->height - f->height;
	covers = f->width == a->width && f->height == a->height;
	if (!fits || (!w->pixels && !covers))
		return fail(w, "a frame does not lie within the image");
	if (!a->count && f->dispose == DISPOSE_PREVIOUS)
		f->dispose = DISPOSE_BACKGROUND;
	a->transparent |= f->dispose == DISPOSE_BACKGROUND || (!a->count && !covers);
	a->count++;
	w->frame = f;
	w->open = true;
	return true;
}

static bool add_data(struct walk *w, const struct png_chunk *c, size_t size)
{
	if (!w->frame->data)
		w->frame->data = c->name - 4;
	w->frame->size += size;
	return w->frame->size <= INT32_MAX || fail(w, "a frame is too large");
}

/* Each frame's file has a copy. */
static bool keep(struct walk *w, const uint8_t **kept, const struct png_chunk *c, uint32_t most)
{
	if (w->pixels || c->size > most)
		return fail(w, "its palette is wrong");
	*kept = c->name - 4;
	return true;
}

static bool read_chunk(struct walk *w, const struct png_chunk *c)
{
	struct apng *a = w->apng;

	if (png_chunk_is(c, "IDAT")) {
		w->pixels = true;
		if (!w->frame)
			return true;
		if (!w->shown || a->count > 1 || !w->open)
			return fail(w, disorder);
		return add_data(w, c, c->size);
	}
	if (png_chunk_is(c, "fdAT")) {
		if (!w->pixels || !w->open || (w->shown && a->count == 1) || c->size < NUMBER_SIZE)
			return fail(w, disorder);
		return check_number(w, c) && add_data(w, c, c->size - NUMBER_SIZE);
	}
	if (w->frame && w->frame->data)
		w->open = false;
	if (png_chunk_is(c, "IHDR")) {
		if (a->header || c->size != HEADER_SIZE)
			return fail(w, "its header is wrong");
		a->header = c->name - 4;
		a->width = number(c, 0);
		a->height = number(c, 4);
	} else if (png_chunk_is(c, "acTL")) {
		if (c->size != 8 || number(c, 0) != w->promised)
			return fail(w, "its chunk acTL is wrong");
		a->plays = number(c, 4);
	} else if (png_chunk_is(c, "fcTL")) {
		return read_control(w, c);
	} else if (png_chunk_is(c, "PLTE")) {
		return keep(w, &a->palette, c, PALETTE_MAX);
	} else if (png_chunk_is(c, "tRNS")) {
		return keep(w, &a->transparency, c, TRANSPARENCY_MAX);
	}
	return true;
}

static bool read_all(struct walk *w, const uint8_t *file, size_t size)
{
	const uint8_t *at = file + PNG_SIGNATURE, *end = file + size;
	struct png_chunk c;

	do {
		if (!png_chunk_next(&at, end, &c) || !png_chunk_is_sound(&c))
			return fail(w, "it is truncated or damaged");
		if (!read_chunk(w, &c))
			return false;
	} while (!png_chunk_is(&c, "IEND"));
	return (w->apng->count == w->promised && w->frame->data) || fail(w, other_count);
}

enum error apng_open(struct apng *a, const uint8_t *file, size_t size, uint32_t count,
                     struct problem *problem)
{
	struct walk w = {.apng = a, .promised = count};

	*a = (struct apng){.count = 0};
	/* A frame takes two chunks. */
	if (size < PNG_SIGNATURE || count > size / (PNG_CHUNK_FRAME + CONTROL_SIZE)) {
		fail(&w, other_count);
	} else {
		a->frames = calloc(count, sizeof *a->frames);
		if (a->frames && read_all(&w, file, size))
			return ERR_OK;
	}
	apng_close(a);
	return w.wrong ? problem_set(problem, ERR_UNDECODABLE, "the animation cannot be read: %s",
	                             w.wrong)
	               : no_memory(problem, "for the frames");
}

void apng_close(struct apng *a)
{
	g_clear_pointer(&a->frames, free);
}

/* A frame as a file ---------------------------------------------------------------------------- */

static size_t chunk_size(const uint8_t *chunk)
{
	return chunk ? PNG_CHUNK_FRAME + (size_t)bytes_number(chunk, 4, true) : 0;
}

static uint8_t *put_chunk(uint8_t *to, const uint8_t *chunk)
{
	size_t size = chunk_size(chunk);

	if (size)
		memcpy(to, chunk, size);
	return to + size;
}

uint8_t *apng_frame_file(const struct apng *a, uint32_t i, size_t *size)
{
	const struct apng_frame *f = a->frames + i;
	const size_t number = memcmp(f->data + 4, "fdAT", 4) ? 0 : NUMBER_SIZE;
	const uint8_t *from = f->data;
	uint8_t *file, *head, *to, *at, *end;

	*size = PNG_SIGNATURE + chunk_size(a->header) + chunk_size(a->palette) +
	        chunk_size(a->transparency) + PNG_CHUNK_FRAME + f->size + PNG_CHUNK_FRAME;
	file = malloc(*size);
	if (!file)
		return NULL;
	memcpy(file, png_signature, PNG_SIGNATURE);
	head = file + PNG_SIGNATURE;
	to = put_chunk(head, a->header);
	bytes_put(head + PNG_CHUNK_HEAD, f->width, 4, true);
	bytes_put(head + PNG_CHUNK_HEAD + 4, f->height, 4, true);
	png_chunk_seal(head, HEADER_SIZE);
	to = put_chunk(to, a->palette);
	to = put_chunk(to, a->transparency);
	memcpy(to + 4, "IDAT", 4);
	at = to + PNG_CHUNK_HEAD;
	end = at + f->size;
	while (at < end) {
		const size_t some = (size_t)bytes_number(from, 4, true);

		memcpy(at, from + PNG_CHUNK_HEAD + number, some - number);
		at += some - number;
		from += PNG_CHUNK_FRAME + some;
	}
	png_chunk_seal(to, (uint32_t)f->size);
	to += PNG_CHUNK_FRAME + f->size;
	memcpy(to + 4, "IEND", 4);
	png_chunk_seal(to, 0);
	return file;
}

/* The canvas ----------------------------------------------------------------------------------- */

/* Puts one pixel over another. Neither is multiplied by its alpha, the last band. */
#define OVER(name, type, full)                                                                     \
	static void name(void *row, const void *above, uint32_t pixels, uint32_t bands)            \
	{                                                                                          \
		type *to = row;                                                                    \
		const type *from = above;                                                          \
                                                                                                   \
		for (uint32_t i = 0; i < pixels; i++, to += bands, from += bands) {                \
			uint64_t alpha = from[bands - 1];                                          \
			uint64_t of_from = alpha * (full);                                         \
			uint64_t of_to = ((full)-alpha) * to[bands - 1];                           \
			uint64_t sum = of_from + of_to;                                            \
                                                                                                   \
			for (uint32_t b = 0; alpha && b < bands - 1; b++)                          \
				to[b] =                                                            \
				    (type)((from[b] * of_from + to[b] * of_to + sum / 2) / sum);   \
			to[bands - 1] = (type)((sum + (full) / 2) / (full));                       \
		}                                                                                  \
	}

OVER(over_u8, uint8_t, 255)
OVER(over_u16, uint16_t, 65535)

void apng_blend_row(uint8_t *to, const uint8_t *from, uint32_t pixels, const struct image *image,
                    enum apng_blend blend)
{
	if (blend == BLEND_SOURCE || !image->alpha)
		memcpy(to, from, pixels * image_pixel_size(image));
	else if (image->type == PIXEL_U8)
		over_u8(to, from, pixels, image->bands);
	else
		over_u16(to, from, pixels, image->bands);
}

/* The image ------------------------------------------------------------------------------------ */

struct animation {
	struct apng apng;
	uint32_t first; /* the first frame that is read */
	struct image image;
	bool adds_alpha; /* the file has none */
	uint8_t *canvas; /* NULL until needed */
	uint8_t *kept;   /* the canvas below a frame that asks to be undone */
	uint32_t shown;  /* frames that have been put on the canvas */
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

	if (source &&
	    !vips_call(format_rows[FORMAT_PNG].loader, source, &loaded, "access",
	               VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL) &&
	    (a->adds_alpha ? vips_addalpha(loaded, &vips, NULL) : vips_copy(loaded, &vips, NULL)))
		vips = NULL;
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
			apng_blend_row(to, vips_reader_pixel(region, 0, y + i), f->width, &a->image,
			               f->blend);
	}
	g_clear_object(&region);
	return there;
}

static bool show_next(struct animation *a)
{
	const struct apng_frame *f = a->apng.frames + a->shown;
	VipsImage *vips = NULL;
	uint8_t *file;
	size_t size;
	bool there;

	/* First disposes of the frame before as that frame asks. */
	if (a->shown && f[-1].dispose != DISPOSE_NONE)
		put_area(a, f - 1, a->canvas, f[-1].dispose == DISPOSE_PREVIOUS ? a->kept : NULL);
	if (f->dispose == DISPOSE_PREVIOUS)
		put_area(a, f, a->kept, a->canvas);
	file = apng_frame_file(&a->apng, a->shown, &size);
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

/* Makes the canvas that of a frame. */
static bool show(struct animation *a, uint32_t frame)
{
	const size_t size = image_size(&a->image);
	bool there = true;

	if (!a->canvas) {
		a->canvas = malloc(2 * size);
		if (!a->canvas) {
			vips_error("png", "no memory for the frames");
			return false;
		}
		a->kept = a->canvas + size;
	}
	if (a->shown > frame + 1)
		a->shown = 0;
	if (!a->shown)
		memset(a->canvas, 0, size);
	while (there && a->shown <= frame)
		there = show_next(a);
	return there;
}

static int generate(VipsRegion *out, void *, void *from, void *, gboolean *)
{
	struct animation *a = from;
	const VipsRect *r = &out->valid;
	const size_t pixel = image_pixel_size(&a->image);
	const uint32_t height = a->image.height;
	bool there = true;

	for (int y = r->top; there && y < r->top + r->height; y++) {
		there = show(a, a->first + (uint32_t)y / height);
		if (there)
			memcpy(vips_reader_pixel(out, r->left, y),
			       a->canvas + (uint32_t)y % height * row_size(a) +
			           (uint32_t)r->left * pixel,
			       (uint32_t)r->width * pixel);
	}
	return there ? 0 : -1;
}

static void animation_free(void *data)
{
	struct animation *a = data;

	apng_close(&a->apng);
	free(a->canvas);
	g_free(a);
}

enum error apng_load(VipsImage **image, const struct part *part, struct problem *problem)
{
	enum { PLAYS_MAX = 65535 }; /* other formats know no more */
	struct animation *a = g_new0(struct animation, 1);
	VipsImage *out = vips_image_new();
	int *delays;
	enum error e = apng_open(&a->apng, part->body->at, part->body->size, part->frames, problem);

	/* The animation, which owns its frames, goes with the new image. */
	g_object_set_data_full(G_OBJECT(out), "animation", a, animation_free);
	if (!e && vips_image_pipelinev(out, VIPS_DEMAND_STYLE_THINSTRIP, *image, NULL))
		e = no_memory(problem, "for the frames");
	if (!e) {
		a->first = part->page;
		a->image = (struct image){.width = (uint32_t)out->Xsize,
		                          .height = (uint32_t)out->Ysize,
		                          .bands = (uint32_t)out->Bands,
		                          .type = vips_reader_type(out),
		                          .alpha = vips_image_hasalpha(out) != 0};
		a->adds_alpha = a->apng.transparent && !a->image.alpha;
		a->image.bands += a->adds_alpha;
		a->image.alpha |= a->adds_alpha;
		out->Ysize = (int)(a->image.height * (part->all ? part->frames : 1));
		out->Bands = (int)a->image.bands;
		delays = g_new(int, a->apng.count);
		for (uint32_t i = 0; i < a->apng.count; i++)
			delays[i] = (int)a->apng.frames[i].delay;
		vips_image_set_array_int(out, "delay", delays, (int)a->apng.count);
		g_free(delays);
		vips_image_set_int(out, "loop", (int)MIN(a->apng.plays, PLAYS_MAX));
		vips_image_set_int(out, VIPS_META_N_PAGES, (int)a->apng.count);
		vips_image_set_int(out, VIPS_META_PAGE_HEIGHT, (int)a->image.height);
		if (vips_image_generate(out, NULL, generate, NULL, a, NULL))
			e = no_memory(problem, "for the frames");
	}
	if (e) {
		g_object_unref(out);
		return e;
	}
	g_object_unref(*image);
	*image = out;
	return ERR_OK;
}
