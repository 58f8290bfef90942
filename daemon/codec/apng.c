/* Damage is never passed over: frames build on each other. */
#include "codec/apng.h"

#include <stdlib.h>
#include <string.h>

#include "codec/bytes.h"
#include "codec/png_metadata.h"

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

enum error apng_open(struct apng **apng, const uint8_t *file, size_t size, uint32_t count,
                     struct problem *problem)
{
	struct apng *a = calloc(1, sizeof *a);
	struct walk w = {.apng = a, .promised = count};

	*apng = a;
	/* A frame takes two chunks. */
	if (size < PNG_SIGNATURE || count > size / (PNG_CHUNK_FRAME + CONTROL_SIZE)) {
		fail(&w, other_count);
	} else if (a) {
		a->frames = calloc(count, sizeof *a->frames);
		if (a->frames && read_all(&w, file, size))
			return ERR_OK;
	}
	apng_close(apng);
	return w.wrong ? problem_set(problem, ERR_UNDECODABLE, "the animation cannot be read: %s",
	                             w.wrong)
	               : problem_set(problem, ERR_MEMORY, "no memory for the frames");
}

void apng_close(struct apng **apng)
{
	if (*apng)
		free((*apng)->frames);
	free(*apng);
	*apng = NULL;
}

/* A frame as a file -----------------------------------------------------------------------------
 */

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

static uint8_t *put_data(uint8_t *to, const struct apng_frame *f)
{
	const size_t number = memcmp(f->data + 4, "fdAT", 4) ? 0 : NUMBER_SIZE;
	const uint8_t *from = f->data;
	uint8_t *at = to + PNG_CHUNK_HEAD, *end = at + f->size;

	memcpy(to + 4, "IDAT", 4);
	while (at < end) {
		size_t size = (size_t)bytes_number(from, 4, true);

		memcpy(at, from + PNG_CHUNK_HEAD + number, size - number);
		at += size - number;
		from += PNG_CHUNK_FRAME + size;
	}
	png_chunk_seal(to, (uint32_t)f->size);
	return to + PNG_CHUNK_FRAME + f->size;
}

uint8_t *apng_frame_file(const struct apng *a, uint32_t i, size_t *size)
{
	const struct apng_frame *f = a->frames + i;
	uint8_t *file, *head, *to;

	*size = PNG_SIGNATURE + chunk_size(a->header) + chunk_size(a->palette) +
	        chunk_size(a->transparency) + PNG_CHUNK_FRAME + f->size + PNG_CHUNK_FRAME;
	file = malloc(*size);
	if (!file)
		return NULL;
	memcpy(file, png_signature, PNG_SIGNATURE);
	head = file + PNG_SIGNATURE;
	to = put_chunk(head, a->header);
	png_put_number(head + PNG_CHUNK_HEAD, f->width);
	png_put_number(head + PNG_CHUNK_HEAD + 4, f->height);
	png_chunk_seal(head, HEADER_SIZE);
	to = put_chunk(to, a->palette);
	to = put_chunk(to, a->transparency);
	to = put_data(to, f);
	memcpy(to + 4, "IEND", 4);
	png_chunk_seal(to, 0);
	return file;
}

/* The canvas ------------------------------------------------------------------------------------
 */

/* One pixel over another, neither multiplied by its alpha, which is the last band. */
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
