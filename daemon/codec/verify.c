/* Compares tiles with the reference, in the encoding thread before it reads a tile's first row, so
 * that a wrong tile can still be replaced.
 *
 * A mismatch need not be a fault of the device: in some images float32 sums overflow or nearly
 * equal values differ. If all runs of a tile give the same bits, the front tests with pixels of its
 * own whether these are right (front/workers/self_test.c). The reference's result replaces the tile
 * if runs differ, or if the request asked for verification. */
#include "codec/tiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/clock.h"
#include "base/log.h"
#include "reference/reference.h"

enum { WINDOW_MAX = 256 };

/* A tile in its slot that is being compared or filtered. */
struct subject {
	struct tiles *tiles;
	struct tile tile;
	struct window window;         /* the part compared; width 0: the whole tile */
	struct difference difference; /* the last run's */
	uint64_t first;               /* digest of the first run's result */
	bool same;                    /* all runs gave the same bits */
};

/* Receives a piece, and the place of its first pixel in the tile's output area. */
typedef void piece_user(struct subject *s, const struct reference *piece, uint8_t *out);

/* Computes one window of the tile, as reference_window() does. */
static enum error compute_piece(struct subject *s, const struct window *window, piece_user *use)
{
	const struct image *image = &s->tiles->tiling.image;
	const struct tile *tile = &s->tile;
	const struct geometry *g = &s->tiles->tiling.geometry;
	const size_t pixel = image_pixel_size(image);
	const int64_t x = geometry_source(g, 0, window->x0, window->width).first -
	                  geometry_source(g, 0, tile->x0, tile->width).first;
	const int64_t y = geometry_source(g, 1, window->y0, window->height).first -
	                  geometry_source(g, 1, tile->y0, tile->height).first;
	const uint8_t *in = (const uint8_t *)s->tiles->arena->in + tile->in +
	                    (uint64_t)y * tile->in_pitch + (uint64_t)x * pixel;
	uint8_t *out = (uint8_t *)s->tiles->arena->out + tile->out +
	               (window->y0 - tile->y0) * (uint64_t)tile->out_pitch +
	               (window->x0 - tile->x0) * pixel;
	struct reference reference;
	enum error e =
	    reference_window(s->tiles->chain, image, window, in, tile->in_pitch, &reference);

	if (e)
		return e;
	use(s, &reference, out);
	reference_fini(&reference);
	return ERR_OK;
}

/* Computes the whole tile, in windows that bound the memory; skips the rest of a stopped job. */
static enum error compute_pieces(struct subject *s, piece_user *use)
{
	const struct tile *tile = &s->tile;
	struct window piece;
	enum error e = ERR_OK;

	reference_piece(s->tiles->chain, &s->tiles->tiling.image, &piece);
	for (uint32_t y = 0; y < tile->height; y += piece.height)
		for (uint32_t x = 0; !e && x < tile->width && !tiles_stopped(s->tiles);
		     x += piece.width) {
			struct window window = {tile->x0 + x, tile->y0 + y,
			                        MIN(piece.width, tile->width - x),
			                        MIN(piece.height, tile->height - y)};

			e = compute_piece(s, &window, use);
		}
	return e;
}

static void write_piece(struct subject *s, const struct reference *piece, uint8_t *out)
{
	size_t row = (size_t)piece->window.width * piece->bands * pixel_type_rows[piece->type].size;

	for (uint32_t y = 0; y < piece->window.height; y++)
		memcpy(out + (size_t)y * s->tile.out_pitch,
		       (const uint8_t *)piece->pixels + y * row, row);
}

static void compare(struct subject *s, const struct reference *piece, uint8_t *out)
{
	difference_add(&s->difference, piece, out, s->tile.out_pitch);
}

static void subject_init(struct subject *s, struct tiles *tiles, uint32_t i)
{
	*s = (struct subject){.tiles = tiles, .same = true};
	tiling_tile(&tiles->tiling, i, &s->tile);
}

enum error verify_filter(struct tiles *tiles, uint32_t i)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct subject s;
	enum error e;

	subject_init(&s, tiles, i);
	e = compute_pieces(&s, write_piece);
	tiles->reference_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	if (!e)
		tiles_filtered(tiles, i, false);
	return e;
}

/* FNV-1a over the tile's rows. */
static uint64_t digest(const struct subject *s)
{
	const struct tile *tile = &s->tile;
	size_t row = tile->width * image_pixel_size(&s->tiles->tiling.image);
	const uint8_t *at = (const uint8_t *)s->tiles->arena->out + tile->out;
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (uint32_t y = 0; y < tile->height; y++, at += tile->out_pitch)
		for (size_t i = 0; i < row; i++)
			sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static enum error compare_run(struct subject *s)
{
	s->difference = (struct difference){0};
	return s->window.width ? compute_piece(s, &s->window, compare) : compute_pieces(s, compare);
}

/* Compares the tile. On a mismatch the front has it run again, first by the same device, then by
 * another. Finally the reference's result replaces it, unless all runs agree on a mere window. */
static enum error compare_runs(struct subject *s)
{
	const struct difference *d = &s->difference;
	const uint32_t plane = tiling_plane(&s->tiles->tiling, s->tile.index);
	bool others = true;
	struct message message;
	enum error e = compare_run(s);

	s->first = d->mismatches ? digest(s) : 0;
	for (uint32_t run = 0; !e && d->samples; run++) {
		message = (struct message){.type = MSG_VERIFIED};
		message.verified = (struct message_verified){.job = s->tiles->job->job,
		                                             .index = s->tile.index,
		                                             .run = run,
		                                             .same = s->same,
		                                             .band = d->band + plane,
		                                             .x = d->x,
		                                             .y = d->y,
		                                             .got = d->got,
		                                             .wanted = d->wanted,
		                                             .slack = d->slack,
		                                             .samples = d->samples,
		                                             .mismatches = d->mismatches,
		                                             .largest = d->largest};
		if (!d->mismatches || !others)
			break;
		if (!tiles_run_again(s->tiles, s->tile.index, &message, &others))
			return ERR_OK;
		s->same &= digest(s) == s->first;
		e = compare_run(s);
	}
	if (e || !d->samples)
		return e;
	if (wire_send(s->tiles->socket, &message, NULL))
		return ERR_IO;
	if (!d->mismatches || (s->same && s->window.width))
		return ERR_OK;
	return compute_pieces(s, write_piece);
}

bool verify_chosen(const struct tiles *tiles)
{
	const double share = tiles->job->verify_share;

	return share > 0 && arc4random_uniform(UINT32_MAX) < share * UINT32_MAX;
}

/* Compares a whole tile, or the largest window that the budget allows, at a random place in it;
 * nothing if the budget does not allow a single pixel. */
static void compare_with_reference(struct tiles *tiles, uint32_t i)
{
	const bool all = tiles->job->verify;
	uint32_t side = WINDOW_MAX;
	uint64_t begun;
	struct subject s;
	struct window *w = &s.window;
	enum error e;

	if (tiles->chain->variant == VARIANT_REFERENCE || (!all && !verify_chosen(tiles)))
		return;
	begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	subject_init(&s, tiles, i);
	for (; !all && side; side /= 2) {
		w->width = MIN(side, s.tile.width);
		w->height = MIN(side, s.tile.height);
		if (reference_cost(tiles->chain, &tiles->tiling.image, w->width, w->height) <=
		    (double)tiles->job->verify_taps)
			break;
	}
	if (!side)
		return;
	if (!all) {
		w->x0 = s.tile.x0 + arc4random_uniform(s.tile.width - w->width + 1);
		w->y0 = s.tile.y0 + arc4random_uniform(s.tile.height - w->height + 1);
	}
	e = compare_runs(&s);
	if (e)
		log_warning("job %" PRIu64 ": cannot verify tile %u: %s", tiles->job->job, i,
		            error_row(e)->title);
	tiles->verify_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
}

/* Reads `read` and `whole` without the lock: only this thread changes `read`, and a job that is one
 * tile is over before its result is read. */
bool verify_await(struct tiles *tiles, uint32_t strip)
{
	const struct tiling *t = &tiles->tiling;
	const uint32_t first = strip * t->strip_tiles;
	const uint8_t *out;
	struct tile tile;

	for (uint32_t i = first; i < first + t->strip_tiles; i++) {
		if (!tiles_await(tiles, i))
			return false;
		if (tiles->whole == WHOLE_DONE || i < tiles->read)
			continue;
		compare_with_reference(tiles, i);
		if (tiles->compared) { /* with the whole job as one tile */
			tiling_tile(t, i, &tile);
			out = (const uint8_t *)tiles->arena->out + tile.out;
			for (uint32_t y = 0; y < tile.height; y++, out += tile.out_pitch)
				jpeg_compare_row(tiles->compared, tile.y0 - t->y0 + y,
				                 tile.x0 - t->x0, out, tile.width);
		}
		if (tiles->mask && i + 1 == first + t->strip_tiles)
			mask_apply(tiles->mask, tiles, strip);
		tiles_set_read(tiles, i);
		if (tiles_stopped(tiles))
			return false;
	}
	return true;
}
