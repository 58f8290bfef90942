/* Cuts an image into tiles while it is decoded, in the job's decoding thread.
 *
 * The hard part: each row is decoded once and in order, but a tile's halo overlaps the tile above,
 * and at the image's edges it has rows that the border rule takes from elsewhere. Shared rows are
 * copied from the slot of the tile above, unless input areas overlap and the rows lie there
 * already. A replicated or reflected row comes from the same tile. Only `wrap` needs rows from the
 * opposite edge: the bottom rows are decoded first, the top rows are kept. An image in planes is
 * decoded to a few rows of whole pixels, which are split; all else is done for each plane. */
#include "codec/tiles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "border.h"
#include "codec/decode.h"
#include "codec/formats/samples.h"

struct cutter {
	struct tiles *tiles;
	const struct tiling *tiling;
	struct decoder *decoder;
	/* wrap: reads the bottom rows of each page; NULL: `decoder` can do that */
	struct decoder *ahead;
	enum border border;
	struct problem *problem;
	uint32_t page;
	uint32_t height;       /* height of the page or its ROI */
	size_t pixel;          /* bytes */
	size_t first;          /* byte offset of the image's first column in a slot row */
	bool sides;            /* there are columns outside the image */
	uint32_t next;         /* first row not yet decoded */
	uint32_t *columns;     /* the sources of the columns outside the image */
	uint8_t *constant;     /* a slot row outside the image */
	uint8_t *top, *bottom; /* wrap: the image's first and last `kept` rows, as slot rows */
	uint32_t kept;
	uint64_t kept_size; /* bytes of these, of a plane */
	uint8_t *whole; /* rows of all planes' samples, before they are split; NULL: no planes */
	size_t whole_pitch;
	uint32_t whole_rows;
};

/* Copies pixels into the columns outside the image: with a constant `pixel` by a move or two. */
static inline void copy_columns(const struct cutter *c, uint8_t *row, const size_t pixel)
{
	uint8_t *first = row + c->first, *right = first + c->tiling->image.width * pixel;
	const uint32_t left = c->tiling->left;

	for (uint32_t i = 0; i < left; i++)
		memcpy(row + i * pixel, first + c->columns[i] * pixel, pixel);
	for (uint32_t i = 0; i < c->tiling->right; i++)
		memcpy(right + i * pixel, first + c->columns[left + i] * pixel, pixel);
}

/* Fills the columns outside the image in one slot row. */
static void pad_row(const struct cutter *c, uint8_t *row)
{
	if (c->border == BORDER_CONSTANT) {
		memcpy(row, c->constant, c->first);
		memcpy(row + c->first + c->tiling->image.width * c->pixel, c->constant,
		       c->tiling->right * c->pixel);
	} else if (c->pixel == 1) {
		copy_columns(c, row, 1);
	} else if (c->pixel == 3) {
		copy_columns(c, row, 3);
	} else if (c->pixel == 4) {
		copy_columns(c, row, 4);
	} else {
		copy_columns(c, row, c->pixel);
	}
}

/* Decodes rows of any image into slot rows and fills the columns outside it, a few rows at a time,
 * so that they are still in the nearest cache when they are padded. The rows of each further plane
 * lie `plane` bytes behind. */
static enum error read_rows(const struct cutter *c, struct decoder *decoder, uint32_t y,
                            uint32_t count, uint8_t *rows, uint64_t plane)
{
	enum { NEAR = 24 << 10, FEW = 16 };
	const struct tiling *t = c->tiling;
	const size_t pitch = t->in_pitch;
	uint32_t most = c->sides ? MAX((uint32_t)(NEAR / pitch), FEW) : count;
	enum error e = ERR_OK;

	if (c->whole)
		most = MIN(most, c->whole_rows);
	for (uint32_t step; !e && count; y += step, count -= step, rows += step * pitch) {
		step = MIN(count, most);
		e = decode_rows(decoder, y, step, c->whole ? c->whole : rows + c->first,
		                c->whole ? c->whole_pitch : pitch, c->problem);
		for (uint32_t i = 0; !e && c->whole && i < step; i++)
			samples_split(rows + c->first + i * pitch, plane,
			              c->whole + i * c->whole_pitch, t->planes, t->image.width,
			              c->pixel);
		for (uint32_t p = 0; !e && c->sides && p < t->planes; p++)
			for (uint32_t i = 0; i < step; i++)
				pad_row(c, rows + p * plane + i * pitch);
	}
	return e;
}

static enum error skip_rows(const struct cutter *c, struct decoder *decoder, uint32_t y)
{
	enum error e = ERR_OK;
	bool more = true;

	while (!e && more && !tiles_stopped(c->tiles))
		e = decode_skip(decoder, y, &more, c->problem);
	return e;
}

/* Reads the page's last rows, which its first tile needs for `wrap`, by a decoder of their own
 * unless rows can be read in any order. */
static enum error read_bottom(struct cutter *c)
{
	const uint32_t y = c->height - c->kept;
	struct decoder *reader;
	enum error e = ERR_OK;

	if (!c->ahead)
		e = decode_open_ahead(&c->ahead, c->decoder, c->tiles->job, c->problem);
	if (e)
		return e;
	reader = c->ahead ? c->ahead : c->decoder;
	decode_page(reader, c->page);
	e = skip_rows(c, reader, y);
	if (!e && !tiles_stopped(c->tiles))
		e = read_rows(c, reader, y, c->kept, c->bottom, c->kept_size);
	if (c->page + 1 == c->tiling->pages)
		decode_close(&c->ahead);
	return e;
}

/* Fills the slot rows of image rows y to end - 1, all outside the image, by the border rule. The
 * first row of `slot` is image row `top`. */
static void pad_rows(const struct cutter *c, uint8_t *slot, int64_t top, int64_t y, int64_t end)
{
	size_t pitch = c->tiling->in_pitch;

	for (uint32_t p = 0; p < c->tiling->planes; p++, slot += c->tiling->in_plane)
		for (int64_t row = y; row < end; row++) {
			const uint8_t *from = c->constant;
			int mapped = 0;

			if (c->border != BORDER_CONSTANT)
				mapped = border_map((int)row, (int)c->height, (int)c->border);
			if (c->border == BORDER_WRAP && row < 0)
				from = c->bottom + p * c->kept_size +
				       ((uint32_t)mapped - (c->height - c->kept)) * pitch;
			else if (c->border == BORDER_WRAP)
				from = c->top + p * c->kept_size + (uint32_t)mapped * pitch;
			else if (c->border != BORDER_CONSTANT)
				from = slot + (uint64_t)(mapped - top) * pitch;
			memcpy(slot + (uint64_t)(row - top) * pitch, from, pitch);
		}
}

static enum error fill_strip(struct cutter *c, uint32_t strip)
{
	const struct tiling *t = c->tiling;
	const size_t pitch = t->in_pitch;
	uint8_t *slot = tiles_in_row(c->tiles, strip, 0), *to;
	const int64_t top = tiling_top(t, strip), end = tiling_end(t, strip);
	/* Some rows may be there already, if the slot begins within that of the strip above. */
	int64_t above = 0, there = top;
	/* rows of the tile that are inside the image: first to last - 1 */
	uint32_t first = (uint32_t)MAX(top, 0), last = (uint32_t)MIN(end, c->height);
	enum error e = ERR_OK;

	if (strip % t->page_strips)
		above = tiling_top(t, strip - 1);
	if (strip % t->page_strips &&
	    tiles_in_row(c->tiles, strip - 1, (uint32_t)(top - above)) == slot)
		there = MAX(top, tiling_end(t, strip - 1));
	to = slot + (uint64_t)(first - top) * pitch;
	if (c->next > first) {
		const uint8_t *from = tiles_in_row(c->tiles, strip - 1, (uint32_t)(first - above));
		const size_t size = (MIN(c->next, last) - first) * pitch;

		for (uint32_t p = 0; to != from && p < t->planes; p++)
			memmove(to + p * t->in_plane, from + p * t->in_plane, size);
		to += size;
		first = MIN(c->next, last);
	} else if (first > c->next) {
		e = skip_rows(c, c->decoder, first);
	}
	if (!e && !tiles_stopped(c->tiles))
		e = read_rows(c, c->decoder, first, last - first, to, t->in_plane);
	if (e)
		return e;
	for (uint32_t p = 0; first < c->kept && p < t->planes; p++)
		memcpy(c->top + p * c->kept_size + first * pitch, to + p * t->in_plane,
		       (MIN(last, c->kept) - first) * pitch);
	c->next = MAX(c->next, last);
	pad_rows(c, slot, top, there, 0);
	pad_rows(c, slot, top, MAX(last, there), end);
	return ERR_OK;
}

static enum error send_strip(struct tiles *tiles, uint32_t strip, struct problem *problem)
{
	const uint32_t count = tiles->tiling.strip_tiles;
	enum error e = ERR_OK;

	for (uint32_t i = strip * count; !e && i < (strip + 1) * count; i++) {
		e = tiles_send(tiles, i);
		if (!e && tiles->chain->variant == VARIANT_REFERENCE)
			e = verify_filter(tiles, i);
	}
	return e ? problem_set(problem, e, "cannot send a tile to be filtered") : ERR_OK;
}

enum error cut_send(struct tiles *tiles, struct problem *problem)
{
	const uint32_t strips = tiles->tiling.strips;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < strips && tiles_await_slot(tiles, i); i++)
		e = send_strip(tiles, i, problem);
	return e;
}

/* Prepares the constants and the memory that the border rule needs. */
static bool prepare(struct cutter *c)
{
	enum { ROWS_SIZE = 256 << 10 }; /* bytes that are split at a time */
	const struct tiling *t = c->tiling;
	const int width = (int)t->image.width, left = (int)t->left, right = (int)t->right;
	const int64_t above = -tiling_top(t, 0),
	              below = tiling_end(t, t->page_strips - 1) - t->image.height;

	c->height = t->image.height;
	c->pixel = image_pixel_size(&t->image);
	c->first = t->left * c->pixel;
	c->sides = left || right;
	if (c->border == BORDER_WRAP)
		c->kept = (uint32_t)MIN(MAX(MAX(above, below), 0), c->height);
	c->columns = calloc((size_t)t->left + t->right + 1, sizeof *c->columns);
	c->constant = calloc(1, t->in_pitch);
	c->kept_size = (uint64_t)c->kept * t->in_pitch;
	c->top = malloc(c->kept_size * t->planes + 1);
	c->bottom = malloc(c->kept_size * t->planes + 1);
	if (t->planes > 1) {
		c->whole_pitch = t->image.width * c->pixel * t->planes;
		c->whole_rows = (uint32_t)(ROWS_SIZE / c->whole_pitch) + 1;
		c->whole = malloc(c->whole_rows * c->whole_pitch);
	}
	if (!c->columns || !c->constant || !c->top || !c->bottom || (t->planes > 1 && !c->whole))
		return false;
	if (c->border == BORDER_CONSTANT) {
		for (uint32_t b = 0; b < t->image.bands; b++)
			image_put_sample(c->constant, b, t->image.type, c->tiles->border_pixel[b]);
		for (size_t i = c->pixel; i < t->in_pitch; i++)
			c->constant[i] = c->constant[i - c->pixel];
	}
	for (int i = 0; c->border != BORDER_CONSTANT && i < left + right; i++)
		c->columns[i] = (uint32_t)border_map(i < left ? i - left : width + i - left, width,
		                                     (int)c->border);
	return true;
}

enum error cut_run(struct tiles *tiles, struct decoder *decoder, bool sends,
                   struct problem *problem)
{
	struct cutter cutter = {.tiles = tiles,
	                        .tiling = &tiles->tiling,
	                        .decoder = decoder,
	                        .border = (enum border)tiles->job_chain->border,
	                        .problem = problem},
	              *c = &cutter;
	enum error e = ERR_OK;
	uint32_t first;

	if (!prepare(c))
		e = no_memory(problem, "for the rows outside the image");
	for (; !e && c->page < c->tiling->pages && !tiles_stopped(tiles); c->page++) {
		decode_page(decoder, c->page);
		if (c->kept)
			e = read_bottom(c);
		if (!e)
			e = skip_rows(c, decoder, 0);
		c->next = 0;
		first = c->page * c->tiling->page_strips;
		/* A resize may cut off rows from which `wrap` makes those below the image. */
		if (!e && c->kept && tiling_top(c->tiling, first) > 0 && !tiles_stopped(tiles)) {
			c->next = (uint32_t)MIN(tiling_top(c->tiling, first), c->kept);
			e = read_rows(c, decoder, 0, c->next, c->top, c->kept_size);
		}
		for (uint32_t i = first; !e && i < first + c->tiling->page_strips; i++) {
			if (sends ? !tiles_await_slot(tiles, i) : tiles_stopped(tiles))
				break;
			e = fill_strip(c, i);
			if (!e && sends)
				e = send_strip(tiles, i, problem);
		}
	}
	decode_close(&c->ahead);
	free(c->columns);
	free(c->constant);
	free(c->top);
	free(c->bottom);
	free(c->whole);
	return e;
}
