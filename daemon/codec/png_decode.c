/* Chunks, the inflated stream, filters undone (W3C, Portable Network Graphics, chapters 5, 9 and
 * 10). Pixels that are not exactly as the standard says are left to libvips, which has words for
 * them. */
#include "codec/png_decode.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "codec/png_metadata.h"
#include "image/formats.h"

enum { HEADER_SIZE = 13, WINDOW_MAX = 32 << 10 };

struct png_file {
	struct image image;
	bool plain;            /* for png_decode() */
	const uint8_t *stream; /* the first of its chunks */
	size_t stream_chunks, stream_size;
	struct file_metadata metadata;
	struct png_reading reading;
};

/* Returns false if png_decode() does not decode such an image. */
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
	return image_valid(image) && image_size(image) <= PNG_PIXELS_MAX;
}

/* Chunks of the stream follow each other; the one after the last must be sound, too. */
static void read_chunk(struct png_file *png, const struct png_chunk *c, bool follows)
{
	const bool data = png_chunk_is(c, "IDAT");
	const bool other = !data && (png_chunk_is(c, "tRNS") || png_chunk_is(c, "acTL") ||
	                             (*c->name < 'a' && !png_chunk_is(c, "IEND")));

	if (data) {
		png->plain &= !png->reading.pixels || follows;
		png->stream = png->stream ? png->stream : c->name - 4;
		png->stream_chunks++;
		png->stream_size += c->size;
		png->reading.pixels = true;
	}
	png->plain &= !other && ((!data && !follows) || (png->plain && png_chunk_is_sound(c)));
	if (!data)
		png_metadata_read(&png->reading, c);
}

static void read_file(struct png_file *png, const uint8_t *at, const uint8_t *end)
{
	bool data = false, ended = false;
	struct png_chunk c;

	if (!png_chunk_next(&at, end, &c))
		return;
	png->plain = png_chunk_is_sound(&c) && read_header(&png->image, &c);
	png->reading.colour = c.size == HEADER_SIZE && c.data[9] & 2;
	while (!ended && png_chunk_next(&at, end, &c)) {
		read_chunk(png, &c, data);
		ended = png_chunk_is(&c, "IEND");
		data = png_chunk_is(&c, "IDAT");
	}
	png->plain &= png->stream && !data;
}

struct png_file *png_open(const uint8_t *file, size_t size)
{
	/* 72 pixels an inch, in whole pixels a metre. */
	static const struct resolution usual = {2.834, 2.834, PER_INCH};
	struct png_file *png = calloc(1, sizeof *png);

	if (!png)
		return NULL;
	png->reading.metadata = &png->metadata;
	png->metadata.resolution = usual;
	read_file(png, file + PNG_SIGNATURE, file + size);
	if (!png_metadata_end(&png->reading))
		png_close(&png);
	else
		png->plain &= file_metadata_upright(&png->metadata);
	return png;
}

void png_close(struct png_file **png)
{
	if (*png)
		file_metadata_free(&(*png)->metadata);
	free(*png);
	*png = NULL;
}

bool png_is_plain(const struct png_file *png, struct image *image)
{
	if (png->plain)
		*image = png->image;
	return png->plain;
}

struct file_metadata *png_metadata(struct png_file *png)
{
	return &png->metadata;
}

const struct file_part *png_exif(const struct png_file *png)
{
	return &png->reading.exif;
}

uint32_t png_lost(const struct png_file *png)
{
	return png->reading.lost ? 1u << LOSS_METADATA : 0;
}

/* Inflates a stream of exactly this size. */
static bool inflate(const uint8_t *stream, size_t size, uint8_t *to, size_t inflated)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	/* libdeflate does not check that distances keep within the window that the stream names. */
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

/* The filters. Each adds to a sample what it expects from those to the left, above, and above to
 * the left, which are 0 outside the image. `pixel` is a constant wherever they are inlined. */
#define FILTER static inline __attribute__((always_inline)) void

FILTER undo_none(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	(void)row, (void)above, (void)size, (void)pixel;
}

FILTER undo_sub(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	(void)above;
	for (size_t i = pixel; i < size; i++)
		row[i] = (uint8_t)(row[i] + row[i - pixel]);
}

FILTER undo_up(uint8_t *restrict row, const uint8_t *restrict above, size_t size, size_t pixel)
{
	(void)pixel;
	for (size_t i = 0; i < size; i++)
		row[i] = (uint8_t)(row[i] + above[i]);
}

FILTER undo_average(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
	for (size_t i = 0; i < pixel; i++)
		row[i] = (uint8_t)(row[i] + above[i] / 2);
	for (size_t i = pixel; i < size; i++)
		row[i] = (uint8_t)(row[i] + (row[i - pixel] + above[i]) / 2);
}

/* Returns left, above or corner: the first that is nearest to left + above - corner. */
static inline __attribute__((always_inline)) int nearest(int left, int above, int corner)
{
	int to_left = abs(above - corner), to_above = abs(left - corner),
	    to_corner = abs(left + above - 2 * corner);
	int near = to_above <= to_corner ? above : corner;

	return to_left <= to_above && to_left <= to_corner ? left : near;
}

FILTER undo_paeth(uint8_t *restrict row, const uint8_t *restrict above, size_t size, size_t pixel)
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

#define FILTERS(pixel)                                                                             \
	{                                                                                          \
		undo_none_##pixel, undo_sub_##pixel, undo_up_##pixel, undo_average_##pixel,        \
		    undo_paeth_##pixel                                                             \
	}
#define CONSTANT(filter, pixel)                                                                    \
	static void filter##_##pixel(uint8_t *row, const uint8_t *above, size_t size)              \
	{                                                                                          \
		filter(row, above, size, pixel);                                                   \
	}
#define CONSTANTS(pixel)                                                                           \
	CONSTANT(undo_none, pixel)                                                                 \
	CONSTANT(undo_sub, pixel)                                                                  \
	CONSTANT(undo_up, pixel) CONSTANT(undo_average, pixel) CONSTANT(undo_paeth, pixel)

CONSTANTS(1)
CONSTANTS(2)
CONSTANTS(3)
CONSTANTS(4)
CONSTANTS(6)
CONSTANTS(8)

enum { FILTER_COUNT = 5 };

/* By the bytes of a pixel. */
static void (*const filters[][FILTER_COUNT])(uint8_t *row, const uint8_t *above, size_t size) = {
    [1] = FILTERS(1), [2] = FILTERS(2), [3] = FILTERS(3),
    [4] = FILTERS(4), [6] = FILTERS(6), [8] = FILTERS(8),
};

/* Undoes the filters and closes the gaps that their numbers leave. Behind the rows there is one of
 * zeros, for the first. */
static bool undo_filters(const struct image *image, uint8_t *rows)
{
	size_t size = image_row_size(image), pixel = image_pixel_size(image);
	const uint8_t *from = rows, *above = rows + image->height * (size + 1);
	uint8_t *to = rows;

	for (uint32_t y = 0; y < image->height; y++) {
		uint8_t filter = *from;

		if (filter >= FILTER_COUNT)
			return false;
		memmove(to, from + 1, size);
		filters[pixel][filter](to, above, size);
		above = to;
		to += size;
		from += size + 1;
	}
	return true;
}

uint8_t *png_decode(const struct png_file *png)
{
	size_t row = image_row_size(&png->image), all = png->image.height * (row + 1);
	uint8_t *pixels = malloc(all + row);
	uint16_t *samples;

	if (!pixels)
		return NULL;
	memset(pixels + all, 0, row);
	if (!inflate_file(png, pixels, all) || !undo_filters(&png->image, pixels)) {
		free(pixels);
		return NULL;
	}
	/* The more significant byte comes first. */
	samples = (uint16_t *)(void *)pixels;
	for (size_t i = 0; png->image.type == PIXEL_U16 && i < image_size(&png->image) / 2; i++)
		samples[i] = __builtin_bswap16(samples[i]);
	return pixels;
}
