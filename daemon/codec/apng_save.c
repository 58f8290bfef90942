/* libvips's encoder writes each frame as a file: the first of them, with the two chunks that make
 * it an animation, is the beginning of the answer, and of the others there are the pixels. */
#include "codec/apng_save.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/png_metadata.h"

enum { SIGNATURE = 8, DELAY_USUAL = 100, DELAYS_MAX = 65535 };

struct saving {
	VipsTarget *target;
	VipsImage *image;
	uint32_t pages, height; /* of a page */
	uint32_t sequence;
};

static bool put(const struct saving *s, const uint8_t *bytes, size_t size)
{
	return !vips_target_write(s->target, bytes, size);
}

/* Writes a chunk of which the data are there. */
static bool put_sealed(const struct saving *s, uint8_t *chunk, const char *name, uint32_t size)
{
	memcpy(chunk + 4, name, 4);
	png_chunk_seal(chunk, size);
	return put(s, chunk, PNG_CHUNK_FRAME + size);
}

static bool put_animation(const struct saving *s)
{
	uint8_t chunk[PNG_CHUNK_FRAME + 8];
	int loops = 0;

	if (vips_image_get_typeof(s->image, "loop") && vips_image_get_int(s->image, "loop", &loops))
		return false;
	png_put_number(chunk + PNG_CHUNK_HEAD, s->pages);
	png_put_number(chunk + PNG_CHUNK_HEAD + 4, loops > 0 ? (uint32_t)loops : 0);
	return put_sealed(s, chunk, "acTL", 8);
}

/* Milliseconds. */
static uint32_t delay_of(const struct saving *s, uint32_t page)
{
	int *delays, count;

	if (!vips_image_get_typeof(s->image, "delay") ||
	    vips_image_get_array_int(s->image, "delay", &delays, &count) || (int)page >= count)
		return DELAY_USUAL;
	return delays[page] > 0 ? (uint32_t)delays[page] : 0;
}

/* The frame covers all of the image, and replaces it. */
static bool put_control(struct saving *s, uint32_t page)
{
	enum { WIDTH = 4, HEIGHT = 8, DELAY = 20, SIZE = 26 };
	uint8_t chunk[PNG_CHUNK_FRAME + SIZE] = {0}, *data = chunk + PNG_CHUNK_HEAD;
	uint32_t delay = delay_of(s, page);
	const bool seconds = delay > DELAYS_MAX;

	delay = seconds ? delay / 1000 : delay;
	delay = delay < DELAYS_MAX ? delay : DELAYS_MAX;
	png_put_number(data, s->sequence++);
	png_put_number(data + WIDTH, (uint32_t)s->image->Xsize);
	png_put_number(data + HEIGHT, s->height);
	png_put_number(data + DELAY, delay << 16 | (seconds ? 1 : 1000));
	return put_sealed(s, chunk, "fcTL", SIZE);
}

static bool put_data(struct saving *s, const struct png_chunk *c)
{
	uint8_t *chunk = malloc(PNG_CHUNK_FRAME + 4 + (size_t)c->size);
	bool done;

	if (!chunk) {
		vips_error("png", "no memory for a frame");
		return false;
	}
	png_put_number(chunk + PNG_CHUNK_HEAD, s->sequence++);
	memcpy(chunk + PNG_CHUNK_HEAD + 4, c->name + 4, c->size);
	done = put_sealed(s, chunk, "fdAT", c->size + 4);
	free(chunk);
	return done;
}

/* The end comes once, behind the last. */
static bool put_chunk(struct saving *s, uint32_t page, const struct png_chunk *c)
{
	if (png_chunk_is(c, "IEND") && page + 1 < s->pages)
		return true;
	if (page && png_chunk_is(c, "IDAT"))
		return put_data(s, c);
	return (page && !png_chunk_is(c, "IEND")) || put(s, c->name - 4, PNG_CHUNK_FRAME + c->size);
}

static bool put_file(struct saving *s, uint32_t page, const uint8_t *file, size_t size)
{
	const uint8_t *at = file + SIGNATURE, *end = file + size;
	bool begun = false, done = page || put(s, file, SIGNATURE);
	struct png_chunk c;

	while (done && at < end) {
		if (!png_chunk_next(&at, end, &c)) {
			vips_error("png", "the encoder wrote no PNG");
			return false;
		}
		if (!begun && png_chunk_is(&c, "IDAT")) {
			begun = true;
			done = (page || put_animation(s)) && put_control(s, page);
		}
		done = done && put_chunk(s, page, &c);
	}
	return done;
}

static bool save_page(struct saving *s, uint32_t page, int compression)
{
	VipsTarget *memory = vips_target_new_to_memory();
	VipsImage *area = NULL;
	VipsBlob *file = NULL;
	const void *bytes;
	size_t size;
	bool done = false;

	if (memory &&
	    !vips_extract_area(s->image, &area, 0, (int)(page * s->height), s->image->Xsize,
	                       (int)s->height, NULL) &&
	    !vips_pngsave_target(area, memory, "compression", compression, NULL))
		g_object_get(memory, "blob", &file, NULL);
	if (file) {
		bytes = vips_blob_get(file, &size);
		done = put_file(s, page, bytes, size);
		vips_area_unref(VIPS_AREA(file));
	}
	g_clear_object(&area);
	g_clear_object(&memory);
	return done;
}

int apng_save(VipsImage *image, uint32_t pages, int compression, VipsTarget *target)
{
	struct saving s = {target, image, pages, (uint32_t)image->Ysize / pages, 0};

	for (uint32_t page = 0; page < pages; page++)
		if (!save_page(&s, page, compression))
			return -1;
	return vips_target_end(target);
}
