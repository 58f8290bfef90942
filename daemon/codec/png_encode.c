/* Rows are not filtered, as libvips does not by default. Runs in the job's encoding thread. */
#include "codec/png_encode.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "codec/convert.h"
#include "codec/png_decode.h"
#include "codec/png_metadata.h"
#include "common/file.h"

enum { DEFAULT_LEVEL = 6 };

struct encoding {
	const struct output_format *output;
	uint8_t *rows;  /* each with the number of its filter */
	uint16_t *wide; /* a row of 16 bits a sample, before it is written byte by byte */
	size_t rows_size;
	GByteArray *head; /* the file up to its pixels */
	uint8_t *tail;    /* pixels, and the end */
	size_t tail_size;
};

bool png_encodes(const struct output_format *output, const struct file_metadata *metadata)
{
	return output->format == FORMAT_PNG && output->pages <= 1 && !output->to_srgb &&
	       output->image.bands == output->result.bands &&
	       image_size(&output->image) <= PNG_PIXELS_MAX &&
	       png_metadata_fits(metadata, &output->image);
}

/* Of 16 bits the more significant byte comes first. */
static void put_row(struct encoding *e, uint8_t *to, const uint8_t *row)
{
	size_t samples = (size_t)e->output->image.width * e->output->image.bands;

	if (!e->wide) {
		convert_samples(to, PIXEL_U8, row, e->output->result.type, samples);
		return;
	}
	convert_samples(e->wide, PIXEL_U16, row, e->output->result.type, samples);
	for (size_t i = 0; i < samples; i++) {
		to[2 * i] = (uint8_t)(e->wide[i] >> 8);
		to[2 * i + 1] = (uint8_t)e->wide[i];
	}
}

/* Returns false if the rows end too early. */
static bool take_rows(struct encoding *e, answer_row *next, void *context)
{
	const struct image *image = &e->output->image;
	size_t size = image_row_size(image);
	uint8_t *to = e->rows;

	for (uint32_t y = 0; y < image->height; y++, to += size) {
		const uint8_t *row = next(context, y);

		if (!row)
			return false;
		*to++ = 0;
		put_row(e, to, row);
	}
	return true;
}

static bool write_head(struct encoding *e, const struct file_metadata *metadata)
{
	static const uint8_t colours[] = {[1] = 0, [2] = 4, [3] = 2, [4] = 6};
	const struct image *image = &e->output->image;
	uint8_t start[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
	                   0,    'I', 'H', 'D', 'R',  0,    0,    0,    0, 0, 0,
	                   0,    0,   0,   0,   0,    0,    0,    0,    0, 0, 0};
	enum { CHUNK = 8, WIDTH = 16, HEIGHT = 20, BITS = 24, COLOUR = 25, SIZE = 13 };

	png_put_number(start + WIDTH, image->width);
	png_put_number(start + HEIGHT, image->height);
	start[BITS] = image->type == PIXEL_U8 ? 8 : 16;
	start[COLOUR] = colours[image->bands];
	png_chunk_seal(start + CHUNK, SIZE);
	g_byte_array_append(e->head, start, sizeof start);
	return png_metadata_write(metadata, e->output->strip, image, e->head);
}

static bool write_tail(struct encoding *e)
{
	enum compression compression = e->output->coding.compression;
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(
	    compression == COMPRESSION_DEFAULT ? DEFAULT_LEVEL
	                                       : (int)(compression - COMPRESSION_LEVEL));
	size_t most = libdeflate_zlib_compress_bound(c, e->rows_size), size = 0;
	uint8_t *end;

	e->tail = malloc(most + 2 * PNG_CHUNK_FRAME);
	if (c && e->tail)
		size = libdeflate_zlib_compress(c, e->rows, e->rows_size, e->tail + PNG_CHUNK_HEAD,
		                                most);
	libdeflate_free_compressor(c);
	if (!size)
		return false;
	memcpy(e->tail + 4, "IDAT", 4);
	png_chunk_seal(e->tail, (uint32_t)size);
	end = e->tail + PNG_CHUNK_FRAME + size;
	memcpy(end + 4, "IEND", 4);
	png_chunk_seal(end, 0);
	e->tail_size = size + 2 * PNG_CHUNK_FRAME;
	return true;
}

static enum error run(struct encoding *e, const struct file_metadata *metadata, answer_row *next,
                      void *context, int file, struct problem *problem)
{
	bool wide = e->output->image.type == PIXEL_U16;

	e->rows = malloc(e->rows_size);
	if (wide)
		e->wide = malloc(image_row_size(&e->output->image));
	if (!e->rows || (wide && !e->wide))
		return problem_set(problem, ERR_MEMORY, "no memory to encode");
	if (!take_rows(e, next, context))
		return ERR_OK;
	if (!write_head(e, metadata) || !write_tail(e))
		return problem_set(problem, ERR_MEMORY, "no memory to encode");
	if (!file_write(file, e->head->data, e->head->len, 0) ||
	    !file_write(file, e->tail, e->tail_size, e->head->len))
		return problem_set(problem, ERR_IO, "cannot write the answer");
	return ERR_OK;
}

enum error png_encode(const struct output_format *output, const struct file_metadata *metadata,
                      answer_row *row, void *context, int file, struct problem *problem)
{
	struct encoding e = {.output = output,
	                     .rows_size = (size_t)image_size(&output->image) + output->image.height,
	                     .head = g_byte_array_new()};
	enum error error = run(&e, metadata, row, context, file, problem);

	free(e.rows);
	free(e.wide);
	free(e.tail);
	g_byte_array_unref(e.head);
	return error;
}
