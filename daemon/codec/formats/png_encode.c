/* Rows are collected in blocks, and each block is deflated on its own, in the way that did best on
 * a sample of it. Drawings are smaller without filters, photographs with them. ISA-L is several
 * times as fast as other libraries, which are worth their time only for blocks that shrink a lot
 * and then take little of it. libdeflate cannot leave a stream open for another block, so images of
 * several blocks use zlib instead. The bytes do not depend on load, but ISA-L finds other matches
 * on other kinds of processors. */
#include <stdlib.h>
#include <string.h>

#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <zlib.h>

#include "base/file.h"
#include "base/vectorised.h"
#include "codec/formats/png_metadata.h"
#include "codec/formats/row.h"

/* BLOCK_SIZE applies to images above WHOLE_MAX, which have several blocks. A sample is STRIPS
 * strips, together one in SAMPLED of a block's rows. Drawings shrink to 1 / DRAWING or less. */
enum {
	FAST_LEVEL = 1,
	DRAWING_LEVEL = 6,
	DRAWING = 8,
	BLOCK_SIZE = 1 << 20,
	WHOLE_MAX = 4 << 20,
	STRIPS = 4,
	SAMPLED = 48,
	STRIP_MIN = 4096,
	DELAY_USUAL = 100
};
/* Bytes before the deflated ones: a chunk's head, a frame's sequence number, the stream's head. */
enum { STREAM_HEAD = 2, CHECKSUM = 4, ROOM = PNG_CHUNK_HEAD + 4 + STREAM_HEAD };

struct way {
	bool filtered, fast;
	int strategy;
};

struct encoding {
	const struct answer *answer;
	const struct image *image;
	bool chosen; /* the request sets the level */
	int level;
	uint64_t at;   /* in the file */
	size_t row;    /* bytes */
	uint32_t rows; /* rows per block */
	bool whole;    /* a block is a page */
	uint8_t *raw;  /* a block's rows, behind the one above */
	uint8_t *filtered, *trial, *packed;
	size_t packed_size; /* after ROOM, without the checksum */
	struct isal_zstream *fast;
	uint8_t *fast_memory;
	struct libdeflate_compressor *compressor[2]; /* by struct way's `filtered` */
	uint32_t page, numbers, checksum;
};

static bool put(struct encoding *e, const void *bytes, size_t size)
{
	bool done = file_write(e->answer->file, bytes, size, e->at);

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

/* Writes a block deflated to `size` bytes, with sequence numbers in frames after the first. */
static bool put_packed(struct encoding *e, size_t size, bool first, bool last)
{
	uint8_t *at = e->packed + ROOM;

	if (last) {
		bytes_put(at + size, e->checksum, 4, true);
		size += CHECKSUM;
	}
	if (first) {
		at -= STREAM_HEAD;
		size += STREAM_HEAD;
		memcpy(at, "\x78\x01", STREAM_HEAD); /* deflated, with distances up to 32 KB */
	}
	if (!e->page)
		return put_chunk(e, at - PNG_CHUNK_HEAD, "IDAT", size);
	bytes_put(at - 4, e->numbers++, 4, true);
	return put_chunk(e, at - 4 - PNG_CHUNK_HEAD, "fdAT", size + 4);
}

/* Deflates bytes that do not refer to any before them, to at most packed_size bytes. More of the
 * stream may follow unless these are its last. Returns 0 if memory or room is short. */
static size_t pack(struct encoding *e, const struct way *way, const uint8_t *from, size_t size,
                   bool last)
{
	uint8_t *to = e->packed + ROOM;
	z_stream s = {.next_in = (Bytef *)(uintptr_t)from,
	              .avail_in = (uInt)size,
	              .next_out = to,
	              .avail_out = (uInt)e->packed_size};
	struct libdeflate_compressor **c = &e->compressor[way->filtered];
	struct isal_zstream *fast = e->fast;
	int status;

	if (way->fast) {
		isal_deflate_stateless_init(fast); /* which leaves the window's size */
		fast->hist_bits = 0;
		fast->level = 2;
		fast->level_buf = e->fast_memory;
		fast->level_buf_size = ISAL_DEF_LVL2_DEFAULT;
		fast->flush = FULL_FLUSH;
		fast->end_of_stream = last;
		fast->next_in = (uint8_t *)(uintptr_t)from;
		fast->avail_in = (uint32_t)size;
		fast->next_out = to;
		fast->avail_out = (uint32_t)e->packed_size;
		return isal_deflate_stateless(fast) == COMP_OK && !fast->avail_in ? fast->total_out
		                                                                  : 0;
	}
	if (e->whole && way->strategy == Z_DEFAULT_STRATEGY) {
		/* Drawings gain from one level more, and take hardly longer. */
		const int more = !way->filtered && e->level && e->level < 9;

		if (!*c) /* the first time: photographs need none */
			*c = libdeflate_alloc_compressor(e->level + more);
		return *c ? libdeflate_deflate_compress(*c, from, size, to, e->packed_size) : 0;
	}
	if (deflateInit2(&s, e->level, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, way->strategy) !=
	    Z_OK)
		return 0;
	status = deflate(&s, last ? Z_FINISH : Z_FULL_FLUSH);
	deflateEnd(&s);
	return status == (last ? Z_STREAM_END : Z_OK) && s.avail_out ? s.total_out : 0;
}

/* Filters (W3C, Portable Network Graphics, chapter 9). Each leaves a byte's difference to a
 * prediction from the bytes to the left, above, and above to the left, which are 0 outside the
 * image. No result depends on another result, so all loops can be vectorised. */
enum { SUB = 1, UP, AVERAGE, PAETH, ROW_FILTERS };

/* Computes in 16 bits, because a vector holds twice as many of them as of 32. */
static inline __attribute__((always_inline)) uint8_t nearest(int16_t left, int16_t above,
                                                             int16_t corner)
{
	int16_t across = (int16_t)(above - corner), down = (int16_t)(left - corner),
	        both = (int16_t)(across + down);
	int16_t near;

	across = (int16_t)(across < 0 ? -across : across);
	down = (int16_t)(down < 0 ? -down : down);
	both = (int16_t)(both < 0 ? -both : both);
	near = down <= both ? above : corner;
	return (uint8_t)((across <= down && across <= both) ? left : near);
}

/* `left` and `corner` lie a pixel before `row` and `above`. */
VECTORISED static void filter_bytes(uint8_t *restrict to, const uint8_t *row, const uint8_t *above,
                                    const uint8_t *left, const uint8_t *corner, size_t size,
                                    int filter)
{
	if (filter == SUB)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - left[i]);
	else if (filter == UP)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - above[i]);
	else if (filter == AVERAGE)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - (left[i] + above[i]) / 2);
	else
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - nearest(left[i], above[i], corner[i]));
}

VECTORISED static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
	uint64_t sum = 0;

	while (size) {
		size_t some = size < 1 << 20 ? size : 1 << 20;
		uint32_t part = 0;

		for (size_t i = 0; i < some; i++)
			part += (uint32_t)abs((int8_t)bytes[i]);
		sum += part;
		bytes += some;
		size -= some;
	}
	return sum;
}

/* Writes the first `size` bytes of a block's row behind the number of its filter. filtered: by the
 * filter whose result has the least sum of absolute values. */
static uint8_t *filter_row(struct encoding *e, uint32_t y, size_t size, bool filtered, uint8_t *to)
{
	static const uint8_t outside[8] = {0};
	const uint8_t *above = e->raw + y * e->row, *row = above + e->row;
	const size_t pixel = image_pixel_size(e->image);
	uint64_t least = filtered ? sum_of(row, size) : 0;

	*to = 0;
	memcpy(to + 1, row, size);
	for (int filter = SUB; filtered && filter < ROW_FILTERS; filter++) {
		uint64_t sum;

		filter_bytes(e->trial, row, above, outside, outside, pixel, filter);
		filter_bytes(e->trial + pixel, row + pixel, above + pixel, row, above, size - pixel,
		             filter);
		sum = sum_of(e->trial, size);
		if (sum >= least)
			continue;
		least = sum;
		*to = (uint8_t)filter;
		memcpy(to + 1, e->trial, size);
	}
	return to + 1 + size;
}

/* Returns the deflated size of a sample of the block, *sample bytes; SIZE_MAX if unknown. */
static size_t try_way(struct encoding *e, const struct way *way, uint32_t rows, size_t *sample)
{
	const uint32_t strips = rows < STRIPS ? rows : STRIPS, step = rows / strips,
	               least = (uint32_t)(STRIP_MIN / e->row) + rows / SAMPLED + 1,
	               some = least < step ? least : step;
	const size_t pixel = image_pixel_size(e->image),
	             most = BLOCK_SIZE / SAMPLED / pixel * pixel,
	             size = e->row < most || some > 1 ? e->row : most;
	uint8_t *to = e->filtered;
	size_t packed;

	for (uint32_t strip = 0; strip < strips; strip++)
		for (uint32_t y = 0; y < some; y++)
			to = filter_row(e, strip * step + y, size, way->filtered, to);
	*sample = (size_t)(to - e->filtered);
	packed = pack(e, way, e->filtered, *sample, true);
	return packed ? packed : SIZE_MAX;
}

static struct way choose_way(struct encoding *e, uint32_t rows)
{
	static const struct way ways[] = {{.fast = true},
	                                  {.fast = true, .filtered = true},
	                                  {.strategy = Z_DEFAULT_STRATEGY},
	                                  {.filtered = true, .strategy = Z_DEFAULT_STRATEGY},
	                                  {.filtered = true, .strategy = Z_RLE}};
	size_t best = e->level ? 0 : 2, least = SIZE_MAX, sample = 0;

	for (size_t i = 0; e->level && i < sizeof ways / sizeof *ways; i++) {
		size_t size;

		if (e->chosen ? ways[i].fast != (e->level == FAST_LEVEL)
		              : !ways[i].fast && least > sample / DRAWING)
			continue;
		size = try_way(e, &ways[i], rows, &sample);
		if (size < least) {
			least = size;
			best = i;
		}
	}
	return ways[best];
}

/* The more significant of two bytes comes first. */
static void put_row(const struct encoding *e, uint8_t *to, const uint8_t *row)
{
	const uint16_t *samples = (const uint16_t *)(const void *)row;

	if (e->image->type == PIXEL_U8)
		memcpy(to, row, e->row);
	else
		for (size_t i = 0; i < e->row / 2; i++) {
			to[2 * i] = (uint8_t)(samples[i] >> 8);
			to[2 * i + 1] = (uint8_t)samples[i];
		}
}

static bool put_page(struct encoding *e)
{
	const uint32_t height = e->image->height, top = e->page * height;
	uint32_t rows;
	size_t size;

	memset(e->raw, 0, e->row);
	for (uint32_t y = 0; y < height; y += rows) {
		uint8_t *to = e->filtered;
		struct way way;
		bool last;

		rows = MIN(height - y, e->rows);
		last = y + rows == height;
		for (uint32_t i = 0; i < rows; i++) {
			const uint8_t *row = e->answer->row(e->answer->context, top + y + i);

			if (!row)
				return false;
			put_row(e, e->raw + (1 + i) * e->row, row);
		}
		way = choose_way(e, rows);
		for (uint32_t i = 0; i < rows; i++)
			to = filter_row(e, i, e->row, way.filtered, to);
		memcpy(e->raw, e->raw + rows * e->row, e->row);
		size = rows * (e->row + 1);
		e->checksum = libdeflate_adler32(y ? e->checksum : 1, e->filtered, size);
		size = pack(e, &way, e->filtered, size, last);
		if (!size || !put_packed(e, size, !y, last))
			return false;
	}
	return true;
}

/* A frame covers all of the image, and replaces it. */
static bool put_control(struct encoding *e)
{
	enum { WIDTH = 4, HEIGHT = 8, DELAY = 20, SIZE = 26, DELAYS_MAX = 65535 };
	uint8_t chunk[PNG_CHUNK_FRAME + SIZE] = {0}, *data = chunk + PNG_CHUNK_HEAD;
	const struct file_metadata *m = e->answer->metadata;
	int delay = (int)e->page < m->delay_count ? m->delays[e->page] : DELAY_USUAL;
	const bool seconds = delay > DELAYS_MAX;

	delay = seconds ? delay / 1000 : delay;
	delay = delay < 0 ? 0 : delay < DELAYS_MAX ? delay : DELAYS_MAX;
	bytes_put(data, e->numbers++, 4, true);
	bytes_put(data + WIDTH, e->image->width, 4, true);
	bytes_put(data + HEIGHT, e->image->height, 4, true);
	bytes_put(data + DELAY, (uint32_t)delay << 16 | (seconds ? 1 : 1000), 4, true);
	return put_chunk(e, chunk, "fcTL", SIZE);
}

static bool put_head(struct encoding *e, GByteArray *head)
{
	static const uint8_t colours[] = {[1] = 0, [2] = 4, [3] = 2, [4] = 6};
	enum { BITS = 8, COLOUR = 9, SIZE = 13 };
	const struct answer *a = e->answer;
	uint8_t chunk[PNG_CHUNK_FRAME + SIZE] = {0}, *data = chunk + PNG_CHUNK_HEAD;
	const int plays = a->metadata->plays;

	bytes_put(data, e->image->width, 4, true);
	bytes_put(data + 4, e->image->height, 4, true);
	data[BITS] = e->image->type == PIXEL_U8 ? 8 : 16;
	data[COLOUR] = colours[e->image->bands];
	if (!put(e, png_signature, PNG_SIGNATURE) || !put_chunk(e, chunk, "IHDR", SIZE) ||
	    !put(e, head->data, head->len))
		return false;
	bytes_put(data, a->output->pages, 4, true);
	bytes_put(data + 4, plays > 0 ? (uint32_t)plays : 0, 4, true);
	return a->output->pages == 1 || put_chunk(e, chunk, "acTL", 8);
}

/* Writes several pages as frames of full size, with delays. Allocates nothing for a row. */
static enum error write_png(const struct answer *answer, struct problem *problem)
{
	const struct output_format *output = answer->output;
	const struct image *image = &output->image;
	const enum compression c = output->coding.compression;
	struct encoding e = {.answer = answer,
	                     .image = image,
	                     .chosen = c != COMPRESSION_DEFAULT,
	                     .level = c == COMPRESSION_DEFAULT ? DRAWING_LEVEL
	                                                       : (int)(c - COMPRESSION_LEVEL),
	                     .row = image_row_size(image),
	                     .whole = image_size(image) <= WHOLE_MAX};
	GByteArray *head = g_byte_array_new();
	enum error error = ERR_OK;
	uint8_t end[PNG_CHUNK_FRAME];
	bool written;
	size_t all;

	e.rows = e.whole ? image->height : (uint32_t)(BLOCK_SIZE / e.row + 1);
	all = e.rows * (e.row + 1);
	e.packed_size = all + all / 16 + 4096;
	e.fast = malloc(sizeof *e.fast);
	e.fast_memory = malloc(ISAL_DEF_LVL2_DEFAULT);
	e.raw = malloc((e.rows + 1) * e.row);
	e.filtered = malloc(all);
	e.trial = malloc(e.row);
	e.packed = malloc(ROOM + e.packed_size + CHECKSUM + 4);
	if (!e.fast || !e.fast_memory || !e.raw || !e.filtered || !e.trial || !e.packed ||
	    !png_metadata_write(answer->metadata, head))
		error = no_memory(problem, "to encode");
	written = !error && put_head(&e, head);
	for (; written && e.page < output->pages; e.page++)
		written = (output->pages == 1 || put_control(&e)) && put_page(&e);
	if (!error && (!written || !put_chunk(&e, end, "IEND", 0)))
		error = problem_set(problem, ERR_IO, "cannot write the answer");
	libdeflate_free_compressor(e.compressor[0]);
	libdeflate_free_compressor(e.compressor[1]);
	free(e.fast);
	free(e.fast_memory);
	free(e.raw);
	free(e.filtered);
	free(e.trial);
	free(e.packed);
	g_byte_array_unref(head);
	return error;
}

const struct writer png_writer = {.write = write_png};
