/* Rows are collected in blocks. How a block is filtered and deflated is tried on a sample of it:
 * drawings are smaller as they are, photographs with filters, and what is close to noise if nothing
 * but runs is looked for. A small image is one block, which libdeflate takes as a whole, three
 * times as fast as zlib does a large one's. Runs in the job's encoding thread. */
#include "codec/png_encode.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>

#include "codec/convert.h"
#include "codec/png_decode.h"
#include "codec/png_filter.h"
#include "codec/png_metadata.h"
#include "common/file.h"

/* BLOCK_SIZE: of an image of several; a sample is STRIPS times one in SAMPLED of a block's rows. */
enum {
	DEFAULT_LEVEL = 6,
	BLOCK_SIZE = 1 << 20,
	STRIPS = 4,
	SAMPLED = 48,
	STRIP_MIN = 4096,
	DELAY_USUAL = 100
};
/* Bytes before deflated ones: a chunk's head, and the number that those of a frame have. */
enum { ROOM = PNG_CHUNK_HEAD + 4 };

struct way {
	bool filtered;
	int strategy;
};

struct encoding {
	const struct output_format *output;
	const struct file_metadata *metadata; /* NULL: none */
	answer_row *next;
	void *context;
	int file, level;
	uint64_t at;   /* in the file */
	size_t row;    /* bytes */
	uint32_t rows; /* of a block */
	bool whole;    /* a block is a page */
	uint8_t *raw;  /* a block's rows, behind the one above */
	uint8_t *filtered, *trial, *packed, *tried;
	size_t packed_size; /* after ROOM */
	uint16_t *wide;     /* a row of 16 bits a sample, before it is written byte by byte */
	struct libdeflate_compressor *compressor[2]; /* by struct way's `filtered` */
	z_stream stream;
	uint32_t page, numbers;
};

static enum error no_memory(struct problem *problem)
{
	return problem_set(problem, ERR_MEMORY, "no memory to encode");
}

static bool put(struct encoding *e, const void *bytes, size_t size)
{
	bool done = file_write(e->file, bytes, size, e->at);

	e->at += size;
	return done;
}

/* Writes a chunk whose data are there. */
static bool put_chunk(struct encoding *e, uint8_t *chunk, const char *name, size_t size)
{
	memcpy(chunk + 4, name, 4);
	png_chunk_seal(chunk, (uint32_t)size);
	return put(e, chunk, PNG_CHUNK_FRAME + size);
}

/* Writes the packed bytes. Those of frames after the first have numbers. */
static bool put_packed(struct encoding *e, size_t size)
{
	if (!e->page)
		return put_chunk(e, e->packed + ROOM - PNG_CHUNK_HEAD, "IDAT", size);
	png_put_number(e->packed + PNG_CHUNK_HEAD, e->numbers++);
	return put_chunk(e, e->packed, "fdAT", size + 4);
}

/* Writes what the stream has become so far. */
static bool put_stream(struct encoding *e)
{
	bool done = put_packed(e, e->packed_size - e->stream.avail_out);

	e->stream.next_out = e->packed + ROOM;
	e->stream.avail_out = (uInt)e->packed_size;
	return done;
}

/* Deflates what the stream has been given. The last chunk of a page has what is left. */
static bool deflate_on(struct encoding *e, bool last)
{
	z_stream *s = &e->stream;
	int status = Z_OK;

	while (last ? status != Z_STREAM_END : s->avail_in > 0) {
		if (!s->avail_out && !put_stream(e))
			return false;
		status = deflate(s, last ? Z_FINISH : Z_NO_FLUSH);
		if (status != Z_OK && status != Z_STREAM_END)
			return false;
	}
	return !last || put_stream(e);
}

/* Deflates all of it at once, to packed_size bytes at most; 0: no memory, or no room. */
static size_t pack(struct encoding *e, const struct way *way, const uint8_t *from, size_t size,
                   uint8_t *to)
{
	z_stream s = {.next_in = (Bytef *)(uintptr_t)from,
	              .avail_in = (uInt)size,
	              .next_out = to,
	              .avail_out = (uInt)e->packed_size};
	int status;

	if (e->whole && way->strategy == Z_DEFAULT_STRATEGY)
		return libdeflate_zlib_compress(e->compressor[way->filtered], from, size, to,
		                                e->packed_size);
	if (deflateInit2(&s, e->level, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL, way->strategy) != Z_OK)
		return 0;
	status = deflate(&s, Z_FINISH);
	deflateEnd(&s);
	return status == Z_STREAM_END ? s.total_out : 0;
}

/* The first `size` bytes of a block's row, with the number of their filter. */
static uint8_t *filter_row(struct encoding *e, uint32_t y, size_t size, bool filtered, uint8_t *to)
{
	const uint8_t *above = e->raw + y * e->row, *row = above + e->row;

	if (filtered) {
		png_filter_row(to, row, above, size, image_pixel_size(&e->output->image), e->trial);
	} else {
		*to = 0;
		memcpy(to + 1, row, size);
	}
	return to + 1 + size;
}

/* Bytes that a sample of the block has become; SIZE_MAX: it cannot be told. */
static size_t try_way(struct encoding *e, const struct way *way, uint32_t rows)
{
	const uint32_t strips = rows < STRIPS ? rows : STRIPS, step = rows / strips,
	               least = (uint32_t)(STRIP_MIN / e->row) + rows / SAMPLED + 1,
	               some = least < step ? least : step;
	const size_t pixel = image_pixel_size(&e->output->image),
	             most = BLOCK_SIZE / SAMPLED / pixel * pixel,
	             size = e->row < most || some > 1 ? e->row : most;
	uint8_t *to = e->filtered;
	size_t packed;

	for (uint32_t strip = 0; strip < strips; strip++)
		for (uint32_t y = 0; y < some; y++)
			to = filter_row(e, strip * step + y, size, way->filtered, to);
	packed = pack(e, way, e->filtered, (size_t)(to - e->filtered), e->tried);
	return packed ? packed : SIZE_MAX;
}

static struct way choose_way(struct encoding *e, uint32_t rows)
{
	static const struct way ways[] = {
	    {false, Z_DEFAULT_STRATEGY}, {true, Z_DEFAULT_STRATEGY}, {true, Z_RLE}};
	size_t best = 0, least = SIZE_MAX;

	for (size_t i = 0; e->level && i < sizeof ways / sizeof *ways; i++) {
		size_t size = try_way(e, &ways[i], rows);

		if (size < least) {
			least = size;
			best = i;
		}
	}
	return ways[best];
}

static bool put_block(struct encoding *e, uint32_t rows, bool last)
{
	const size_t all = rows * (e->row + 1);
	const struct way way = choose_way(e, rows);
	uint8_t *to = e->filtered;
	size_t size;
	int status;

	for (uint32_t y = 0; y < rows; y++)
		to = filter_row(e, y, e->row, way.filtered, to);
	memcpy(e->raw, e->raw + rows * e->row, e->row);
	if (e->whole) {
		size = pack(e, &way, e->filtered, all, e->packed + ROOM);
		return size && put_packed(e, size);
	}
	/* The rows before are deflated first, in their own way; there may be no room for them.
	 */
	while ((status = deflateParams(&e->stream, e->level, way.strategy)) == Z_BUF_ERROR)
		if (!put_stream(e))
			return false;
	if (status != Z_OK)
		return false;
	e->stream.next_in = e->filtered;
	e->stream.avail_in = (uInt)all;
	return deflate_on(e, last);
}

/* The more significant of two bytes comes first. */
static void put_row(struct encoding *e, uint8_t *to, const uint8_t *row)
{
	const struct image *image = &e->output->image;
	enum pixel_type from = e->output->to_srgb ? image->type : e->output->result.type;
	size_t samples = (size_t)image->width * image->bands;

	if (!e->wide) {
		convert_samples(to, PIXEL_U8, row, from, samples);
		return;
	}
	convert_samples(e->wide, PIXEL_U16, row, from, samples);
	for (size_t i = 0; i < samples; i++) {
		to[2 * i] = (uint8_t)(e->wide[i] >> 8);
		to[2 * i + 1] = (uint8_t)e->wide[i];
	}
}

/* Sets *ended if the rows end too early. */
static bool put_page(struct encoding *e, bool *ended)
{
	const uint32_t height = e->output->image.height, top = e->page * height;
	uint32_t rows;

	memset(e->raw, 0, e->row);
	for (uint32_t y = 0; y < height; y += rows) {
		rows = height - y < e->rows ? height - y : e->rows;
		for (uint32_t i = 0; i < rows; i++) {
			const uint8_t *row = e->next(e->context, top + y + i);

			*ended = !row;
			if (*ended)
				return true;
			put_row(e, e->raw + (1 + i) * e->row, row);
		}
		if (!put_block(e, rows, y + rows == height))
			return false;
	}
	return true;
}

/* A frame covers all of the image, and replaces it. */
static bool put_control(struct encoding *e)
{
	enum { WIDTH = 4, HEIGHT = 8, DELAY = 20, SIZE = 26, DELAYS_MAX = 65535 };
	uint8_t chunk[PNG_CHUNK_FRAME + SIZE] = {0}, *data = chunk + PNG_CHUNK_HEAD;
	const struct file_metadata *m = e->metadata;
	int delay = m && (int)e->page < m->delay_count ? m->delays[e->page] : DELAY_USUAL;
	const bool seconds = delay > DELAYS_MAX;

	delay = seconds ? delay / 1000 : delay;
	delay = delay < 0 ? 0 : delay < DELAYS_MAX ? delay : DELAYS_MAX;
	png_put_number(data, e->numbers++);
	png_put_number(data + WIDTH, e->output->image.width);
	png_put_number(data + HEIGHT, e->output->image.height);
	png_put_number(data + DELAY, (uint32_t)delay << 16 | (seconds ? 1 : 1000));
	return put_chunk(e, chunk, "fcTL", SIZE);
}

static bool put_animation(struct encoding *e)
{
	uint8_t chunk[PNG_CHUNK_FRAME + 8];
	int plays = e->metadata ? e->metadata->plays : 0;

	png_put_number(chunk + PNG_CHUNK_HEAD, e->output->pages);
	png_put_number(chunk + PNG_CHUNK_HEAD + 4, plays > 0 ? (uint32_t)plays : 0);
	return put_chunk(e, chunk, "acTL", 8);
}

static bool put_head(struct encoding *e, GByteArray *head)
{
	static const uint8_t colours[] = {[1] = 0, [2] = 4, [3] = 2, [4] = 6};
	enum { BITS = 8, COLOUR = 9, SIZE = 13 };
	const struct image *image = &e->output->image;
	uint8_t chunk[PNG_CHUNK_FRAME + SIZE] = {0}, *data = chunk + PNG_CHUNK_HEAD;

	png_put_number(data, image->width);
	png_put_number(data + 4, image->height);
	data[BITS] = image->type == PIXEL_U8 ? 8 : 16;
	data[COLOUR] = colours[image->bands];
	return put(e, png_signature, PNG_SIGNATURE) && put_chunk(e, chunk, "IHDR", SIZE) &&
	       put(e, head->data, head->len) && (e->output->pages == 1 || put_animation(e));
}

static enum error put_pages(struct encoding *e, struct problem *problem)
{
	uint8_t end[PNG_CHUNK_FRAME];
	bool done = true, ended = false;

	for (; done && !ended && e->page < e->output->pages; e->page++) {
		e->stream.next_out = e->packed + ROOM;
		e->stream.avail_out = (uInt)e->packed_size;
		done = (e->whole || deflateReset(&e->stream) == Z_OK) &&
		       (e->output->pages == 1 || put_control(e)) && put_page(e, &ended);
	}
	if (done && (ended || put_chunk(e, end, "IEND", 0)))
		return ERR_OK;
	return problem_set(problem, ERR_IO, "cannot write the answer");
}

static bool allocate(struct encoding *e)
{
	const size_t all = e->rows * (e->row + 1);
	enum { PACKED_SIZE = 256 << 10 };

	/* Drawings gain by a level more, and take hardly longer. */
	for (int i = 0; i < 2; i++)
		e->compressor[i] =
		    libdeflate_alloc_compressor(e->level + (!i && e->level && e->level < 9));
	if (!e->compressor[0] || !e->compressor[1] ||
	    (!e->whole && deflateInit(&e->stream, e->level) != Z_OK))
		return false;
	e->packed_size =
	    e->whole ? libdeflate_zlib_compress_bound(e->compressor[0], all) : PACKED_SIZE;
	e->raw = malloc((e->rows + 1) * e->row);
	e->filtered = malloc(all);
	e->trial = malloc(e->row);
	e->packed = malloc(ROOM + e->packed_size + 4);
	e->tried = malloc(e->packed_size);
	e->wide = e->output->image.type == PIXEL_U16 ? malloc(e->row) : NULL;
	return e->raw && e->filtered && e->trial && e->packed && e->tried &&
	       (e->wide || e->output->image.type == PIXEL_U8);
}

enum error png_encode(const struct output_format *output, const struct file_metadata *metadata,
                      answer_row *row, void *context, int file, struct problem *problem)
{
	const struct image *image = &output->image;
	const enum compression c = output->coding.compression;
	struct encoding e = {.output = output,
	                     .metadata = metadata,
	                     .next = row,
	                     .context = context,
	                     .file = file,
	                     .level = c == COMPRESSION_DEFAULT ? DEFAULT_LEVEL
	                                                       : (int)(c - COMPRESSION_LEVEL),
	                     .row = image_row_size(image),
	                     .whole = image_size(image) <= PNG_PIXELS_MAX};
	GByteArray *head = g_byte_array_new();
	enum error error = ERR_OK;

	e.rows = e.whole ? image->height : (uint32_t)(BLOCK_SIZE / e.row + 1);
	if (!allocate(&e) || !png_metadata_write(metadata, output->strip, image, head))
		error = no_memory(problem);
	else if (!put_head(&e, head))
		error = problem_set(problem, ERR_IO, "cannot write the answer");
	else
		error = put_pages(&e, problem);
	deflateEnd(&e.stream);
	libdeflate_free_compressor(e.compressor[0]);
	libdeflate_free_compressor(e.compressor[1]);
	free(e.raw);
	free(e.filtered);
	free(e.trial);
	free(e.packed);
	free(e.tried);
	free(e.wide);
	g_byte_array_unref(head);
	return error;
}
