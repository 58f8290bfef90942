/* Decodes PNGs without libvips, which takes two to three times as long: the stream of a small image
 * is inflated as a whole (W3C, Portable Network Graphics, chapters 5, 9 and 10). Pixels that
 * violate the standard are left to libvips, which has messages for them; so are images that are
 * large, interlaced or animated, palettes, fewer than 8 bits a sample, and transparent colours. */
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <vips/vips.h>

#include "codec/formats/apng.h"
#include "codec/formats/png_metadata.h"
#include "codec/formats/row.h"

/* Bytes of pixels, without a row's extra one. Larger images are better decoded row by row. */
enum { PIXELS_MAX = 4 << 20 };
enum { HEADER_SIZE = 13, WINDOW_MAX = 32 << 10 };

struct png_file {
	struct image image;
	bool plain;            /* its pixels are for find_pixels() */
	const uint8_t *stream; /* the first of its chunks */
	size_t stream_chunks, stream_size;
	uint32_t frames; /* as the file says; 0: it says nothing */
	struct file_metadata metadata;
	struct png_reading reading;
	uint8_t *pixels; /* in rows without gaps; NULL until found */
};

/* Returns false for images that find_pixels() does not decode. */
static bool read_header(struct image *image, const struct png_chunk *c)
{
	static const uint8_t bands[] = {1, 0, 3, 0, 2, 0, 4}, plain[] = {0, 0, 0};
	const uint8_t *at = c->data;

	if (!png_chunk_is(c, "IHDR") || c->size != HEADER_SIZE || (at[8] != 8 && at[8] != 16) ||
	    at[9] >= sizeof bands || memcmp(at + 10, plain, sizeof plain) != 0)
		return false;
	*image = (struct image){.width = (uint32_t)bytes_number(at, 4, true),
	                        .height = (uint32_t)bytes_number(at + 4, 4, true),
	                        .bands = bands[at[9]],
	                        .type = at[8] == 8 ? PIXEL_U8 : PIXEL_U16,
	                        .alpha = at[9] > 3};
	return image_valid(image) && image_size(image) <= PIXELS_MAX;
}

static void read_file(struct png_file *png, const uint8_t *at, const uint8_t *end)
{
	bool data = false, ended = false, follows, other;
	struct png_chunk c;

	if (!png_chunk_next(&at, end, &c))
		return;
	png->plain = png_chunk_is_sound(&c) && read_header(&png->image, &c);
	png->reading.colour = c.size == HEADER_SIZE && c.data[9] & 2;
	/* The stream's chunks are adjacent; the chunk after them must be sound, too. */
	while (!ended && png_chunk_next(&at, end, &c)) {
		follows = data;
		data = png_chunk_is(&c, "IDAT");
		ended = png_chunk_is(&c, "IEND");
		other = !data && (png_chunk_is(&c, "tRNS") || png_chunk_is(&c, "acTL") ||
		                  (*c.name < 'a' && !ended));
		if (data) {
			png->plain &= !png->reading.pixels || follows;
			png->stream = png->stream ? png->stream : c.name - 4;
			png->stream_chunks++;
			png->stream_size += c.size;
			png->reading.pixels = true;
		}
		if (png_chunk_is(&c, "acTL") && c.size >= 4 && !png->reading.pixels && !png->frames)
			png->frames = (uint32_t)bytes_number(c.data, 4, true);
		png->plain &=
		    !other && ((!data && !follows) || (png->plain && png_chunk_is_sound(&c)));
		if (!data)
			png_metadata_read(&png->reading, &c);
	}
	png->plain &= png->stream && !data;
}

/* Reads all but the pixels. Damaged chunks are left out, or reported by others. */
static enum error open_file(void *state, struct decoded *decoded, const struct body *body,
                            struct problem *problem)
{
	/* 72 pixels an inch, in whole pixels a metre. */
	static const struct resolution usual = {2.834, 2.834, PER_INCH};
	struct png_file *png = state;
	struct file_metadata *m = &png->metadata;

	png->reading.metadata = m;
	m->resolution = usual;
	read_file(png, body->at + PNG_SIGNATURE, body->at + body->size);
	if (!png_metadata_end(&png->reading))
		return no_memory(problem, "to decode");
	decoded->plain = png->plain && file_metadata_upright(m);
	decoded->whole = png->image;
	decoded->any_order = true;
	decoded->file_pages = png->frames ? png->frames : 1;
	/* A profile has precedence over every other description but cICP. */
	decoded->colours =
	    m->colours.at && (!m->profile.at || memmem(m->colours.at, m->colours.size, "cICP", 4));
	decoded->lost = png->reading.lost ? 1u << LOSS_METADATA : 0;
	return ERR_OK;
}

/* Inflates a stream of exactly this size. */
static bool inflate(const uint8_t *stream, size_t size, uint8_t *to, size_t inflated)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	/* libdeflate does not check distances against the window that the stream declares. */
	const size_t window = size ? (size_t)1 << (8 + (*stream >> 4)) : 0;
	const bool fits = window == WINDOW_MAX || (window < WINDOW_MAX && inflated <= window);
	size_t used, got;
	bool done;

	done = d && fits &&
	       libdeflate_zlib_decompress_ex(d, stream, size, to, inflated, &used, &got) ==
	           LIBDEFLATE_SUCCESS &&
	       used == size && got == inflated;
	libdeflate_free_decompressor(d);
	return done;
}

static bool inflate_file(const struct png_file *png, uint8_t *to, size_t inflated)
{
	const uint8_t *at = png->stream;
	uint8_t *joined, *end;
	bool done;

	if (png->stream_chunks == 1)
		return inflate(png->stream + PNG_CHUNK_HEAD, png->stream_size, to, inflated);
	joined = malloc(png->stream_size + 1);
	if (!joined)
		return false;
	end = joined;
	for (size_t i = 0; i < png->stream_chunks; i++) {
		const size_t some = bytes_number(at, 4, true);

		memcpy(end, at + PNG_CHUNK_HEAD, some);
		end += some;
		at += PNG_CHUNK_FRAME + some;
	}
	done = inflate(joined, png->stream_size, to, inflated);
	free(joined);
	return done;
}

/* The filters. Each adds to a sample a prediction from the samples to the left, above, and above to
 * the left, which are 0 outside the image. `pixel` is a constant wherever they are inlined. */
#define INLINED static inline __attribute__((always_inline))
enum { SUB = 1, UP, AVERAGE, PAETH };

INLINED void undo_sub(uint8_t *row, size_t size, size_t pixel)
{
	for (size_t i = pixel; i < size; i++)
		row[i] = (uint8_t)(row[i] + row[i - pixel]);
}

INLINED void undo_up(uint8_t *restrict row, const uint8_t *restrict above, size_t size)
{
	for (size_t i = 0; i < size; i++)
		row[i] = (uint8_t)(row[i] + above[i]);
}

INLINED void undo_average(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	for (size_t i = 0; i < pixel; i++)
		row[i] = (uint8_t)(row[i] + above[i] / 2);
	for (size_t i = pixel; i < size; i++)
		row[i] = (uint8_t)(row[i] + (row[i - pixel] + above[i]) / 2);
}

/* Returns left, above or corner: the first that is nearest to left + above - corner. */
INLINED int nearest(int left, int above, int corner)
{
	int to_left = abs(above - corner), to_above = abs(left - corner),
	    to_corner = abs(left + above - 2 * corner);
	int near = to_above <= to_corner ? above : corner;

	return to_left <= to_above && to_left <= to_corner ? left : near;
}

INLINED void undo_paeth(uint8_t *restrict row, const uint8_t *restrict above, size_t size,
                        size_t pixel)
{
	int left[8] = {0}, corner[8] = {0};

	for (size_t i = 0; i < size; i += pixel)
		for (size_t b = 0; b < pixel; b++) {
			int up = above[i + b];

			left[b] = (uint8_t)(row[i + b] + nearest(left[b], up, corner[b]));
			row[i + b] = (uint8_t)left[b];
			corner[b] = up;
		}
}

/* Undoes the filters and closes the gaps that the filter numbers leave. A row of zeros behind the
 * rows serves as the row above the first. */
INLINED bool undo_filters(uint8_t *rows, uint32_t height, size_t size, size_t pixel)
{
	const uint8_t *from = rows, *above = rows + height * (size + 1);
	uint8_t *to = rows;

	for (uint32_t y = 0; y < height; y++) {
		uint8_t filter = *from;

		memmove(to, from + 1, size);
		if (filter == SUB)
			undo_sub(to, size, pixel);
		else if (filter == UP)
			undo_up(to, above, size);
		else if (filter == AVERAGE)
			undo_average(to, above, size, pixel);
		else if (filter == PAETH)
			undo_paeth(to, above, size, pixel);
		else if (filter)
			return false;
		above = to;
		to += size;
		from += size + 1;
	}
	return true;
}

static bool undo_all(const struct image *image, uint8_t *rows)
{
	const size_t size = image_row_size(image);

	switch (image_pixel_size(image)) {
	case 1:
		return undo_filters(rows, image->height, size, 1);
	case 2:
		return undo_filters(rows, image->height, size, 2);
	case 3:
		return undo_filters(rows, image->height, size, 3);
	case 4:
		return undo_filters(rows, image->height, size, 4);
	case 6:
		return undo_filters(rows, image->height, size, 6);
	default:
		return undo_filters(rows, image->height, size, 8);
	}
}

/* Decodes all pixels. Fails if they are damaged or memory is short. */
static enum error find_pixels(void *state, struct problem *problem)
{
	struct png_file *png = state;
	size_t row = image_row_size(&png->image), all = png->image.height * (row + 1);
	uint16_t *samples;

	png->pixels = malloc(all + row);
	if (png->pixels)
		memset(png->pixels + all, 0, row);
	if (!png->pixels || !inflate_file(png, png->pixels, all) ||
	    !undo_all(&png->image, png->pixels)) {
		g_clear_pointer(&png->pixels, free);
		return problem_set(problem, ERR_UNDECODABLE, "the PNG decoder failed");
	}
	/* The more significant byte comes first. */
	samples = (uint16_t *)(void *)png->pixels;
	for (size_t i = 0; png->image.type == PIXEL_U16 && i < image_size(&png->image) / 2; i++)
		samples[i] = __builtin_bswap16(samples[i]);
	return ERR_OK;
}

static enum error read_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *)
{
	const struct png_file *png = state;
	const size_t pixel = image_pixel_size(&png->image), row = image_row_size(&png->image);

	for (uint32_t i = 0; i < area->height; i++)
		memcpy(to + i * pitch, png->pixels + (area->y + i) * row + area->x * pixel,
		       area->width * pixel);
	return ERR_OK;
}

/* Tells libvips the orientation, and gives it the frames: its loader reads only the first. */
static enum error amend(VipsImage **image, const struct part *part, struct problem *problem)
{
	struct png_file *png = part->state;
	enum error e = ERR_OK;

	if (png->metadata.exif)
		vips_image_set_int(*image, VIPS_META_ORIENTATION,
		                   exif_block_orientation(png->metadata.exif));
	if (part->frames)
		e = apng_load(image, part, problem);
	if (!e && part->frames)
		file_metadata_read_frames(&png->metadata, *image);
	return e;
}

const struct reader png_reader = {
    .size = sizeof(struct png_file),
    .block = offsetof(struct png_file, pixels),
    .metadata = offsetof(struct png_file, metadata),
    .open = open_file,
    .find = find_pixels,
    .tries = true,
    .rows = read_rows,
    .amend = amend,
};
