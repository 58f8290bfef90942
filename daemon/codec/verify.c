/* Compares tiles with the reference. Runs in the encoding thread before it reads the first row of a
 * tile, so that a wrong tile can still be replaced.
 *
 * A mismatch need not be a fault of the device: in some images float32 sums overflow or nearly
 * equal values differ. If all runs of a tile give the same bits, that is what the device computes,
 * and the front tests whether it is right with pixels of its own (front/workers/self_test.c). If
 * runs differ, the tile is wrong and the reference's result replaces it. It also replaces the tile
 * if the request asked for verification, which guarantees correct pixels. */
#include "codec/verify.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "reference/difference.h"

enum { WINDOW_MAX = 256 };

void verify_init(struct verify *v, const struct message_job *job, const struct chain *chain,
                 const struct arena *arena, int socket)
{
	*v = (struct verify){.job = job, .chain = chain, .arena = arena, .socket = socket};
	if (getrandom(&v->random, sizeof v->random, 0) < 0)
		v->random = job->job;
}

/* A random number from 0 to n - 1: the upper bits of Knuth's generator. */
static uint32_t random_below(struct verify *v, uint32_t n)
{
	v->random = v->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((v->random >> 32) * n >> 32);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Receives a piece, and the place of its first pixel in the tile's output area (rows
 * tile->out_pitch bytes apart). */
typedef void piece_user(void *user, const struct reference *piece, uint8_t *out);

/* Computes one window of the tile. As reference_window(). */
static enum error compute_piece(const struct tile_source *source, const struct window *window,
                                piece_user *use, void *user)
{
	const struct tile *tile = source->tile;
	size_t pixel = image_pixel_size(&source->tiling->image);
	uint64_t x = window->x0 - tile->x0, y = window->y0 - tile->y0;
	const uint8_t *in = (const uint8_t *)source->arena->in + tile->in + y * tile->in_pitch;
	uint8_t *out = (uint8_t *)source->arena->out + tile->out + y * tile->out_pitch;
	struct reference reference;
	enum error e = reference_window(source->chain, &source->tiling->image, window,
	                                in + x * pixel, tile->in_pitch, &reference);

	if (e)
		return e;
	use(user, &reference, out + x * pixel);
	reference_fini(&reference);
	return ERR_OK;
}

static enum error compute_pieces(const struct tile_source *source, bool (*stopped)(void *context),
                                 void *context, piece_user *use, void *user)
{
	const struct tile *tile = source->tile;
	struct window piece;
	enum error e = ERR_OK;

	reference_piece(source->chain, &source->tiling->image, &piece);
	for (uint32_t y = 0; y < tile->height; y += piece.height)
		for (uint32_t x = 0; !e && x < tile->width && !stopped(context); x += piece.width) {
			struct window window = {tile->x0 + x, tile->y0 + y,
			                        min_u32(piece.width, tile->width - x),
			                        min_u32(piece.height, tile->height - y)};

			e = compute_piece(source, &window, use, user);
		}
	return e;
}

/* A piece_user that writes the piece to the output area; user: the struct tile. */
static void write_piece(void *user, const struct reference *piece, uint8_t *out)
{
	const struct tile *tile = user;
	size_t row = (size_t)piece->window.width * piece->bands * pixel_type_size(piece->type);

	for (uint32_t y = 0; y < piece->window.height; y++)
		memcpy(out + (size_t)y * tile->out_pitch, (const uint8_t *)piece->pixels + y * row,
		       row);
}

enum error verify_fill_tile(const struct tile_source *source, bool (*stopped)(void *context),
                            void *context)
{
	return compute_pieces(source, stopped, context, write_piece,
	                      (void *)(uintptr_t)source->tile);
}

/* A tile that is being verified. */
struct subject {
	struct verify *verify;
	const struct tile_source *source;
	struct window window; /* the part compared; width 0: the whole tile */
	const struct verify_owner *owner;
	void *context;
	struct difference difference; /* of the last run */
	uint64_t first;               /* digest of the first run's result */
	bool same;                    /* all runs gave the same bits */
};

static void compare(void *user, const struct reference *piece, uint8_t *out)
{
	struct subject *s = user;

	difference_add(&s->difference, piece, out, s->source->tile->out_pitch);
}

/* FNV-1a over the words of the tile's rows. */
static uint64_t digest(const struct tile_source *source)
{
	const struct tile *tile = source->tile;
	size_t row = tile->width * image_pixel_size(&source->tiling->image);
	const uint8_t *at = (const uint8_t *)source->arena->out + tile->out;
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (uint32_t y = 0; y < tile->height; y++, at += tile->out_pitch)
		for (size_t i = 0; i < row; i += sizeof sum) {
			uint64_t word = 0;

			memcpy(&word, at + i, row - i < sizeof word ? row - i : sizeof word);
			sum = (sum ^ word) * UINT64_C(0x100000001b3);
			sum ^= sum >> 32;
		}
	return sum;
}

/* The largest window that the budget allows, at a random place in the tile. False if the budget
 * does not allow a single pixel. */
static bool choose_window(struct verify *v, const struct tile_source *source, struct window *w)
{
	const struct tile *tile = source->tile;

	for (uint32_t side = WINDOW_MAX; side; side /= 2) {
		w->width = min_u32(side, tile->width);
		w->height = min_u32(side, tile->height);
		if (reference_cost(v->chain, &source->tiling->image, w->width, w->height) >
		    (double)v->job->verify_taps)
			continue;
		w->x0 = tile->x0 + random_below(v, tile->width - w->width + 1);
		w->y0 = tile->y0 + random_below(v, tile->height - w->height + 1);
		return true;
	}
	return false;
}

static enum error compare_run(struct subject *s)
{
	s->difference = (struct difference){0};
	if (s->window.width)
		return compute_piece(s->source, &s->window, compare, s);
	return compute_pieces(s->source, s->owner->stopped, s->context, compare, s);
}

static void describe_run(const struct subject *s, uint32_t run, struct message *message)
{
	const struct difference *d = &s->difference;
	const uint32_t plane = tiling_plane(s->source->tiling, s->source->tile->index);

	*message = (struct message){.type = MSG_VERIFIED};
	message->verified = (struct message_verified){.job = s->verify->job->job,
	                                              .index = s->source->tile->index,
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
}

/* Compares the tile. On a mismatch the front has it run again, first by the same device, then by
 * another. At last the reference's result replaces it, unless all runs agree and only a window is
 * compared. */
static enum error verify_runs(struct subject *s)
{
	bool others = true;
	struct message message;
	enum error e = compare_run(s);

	s->same = true;
	s->first = s->difference.mismatches ? digest(s->source) : 0;
	for (uint32_t run = 0; !e && s->difference.samples; run++) {
		describe_run(s, run, &message);
		if (!s->difference.mismatches || !others)
			break;
		if (!s->owner->again(s->context, &message, &others))
			return ERR_OK;
		s->same &= digest(s->source) == s->first;
		e = compare_run(s);
	}
	if (e || !s->difference.samples)
		return e;
	if (wire_send(s->verify->socket, &message, NULL))
		return ERR_IO;
	if (!s->difference.mismatches || (s->same && s->window.width))
		return ERR_OK;
	return verify_fill_tile(s->source, s->owner->stopped, s->context);
}

bool verify_chosen(struct verify *v)
{
	return v->job->verify_share > 0 &&
	       random_below(v, UINT32_MAX) < v->job->verify_share * UINT32_MAX;
}

void verify_tile(struct verify *v, const struct tiling *tiling, uint32_t index,
                 const struct verify_owner *owner, void *context)
{
	struct tile tile;
	struct tile_source source = {
	    .chain = v->chain, .arena = v->arena, .tiling = tiling, .tile = &tile};
	struct subject s = {.verify = v, .source = &source, .owner = owner, .context = context};
	uint64_t begun;
	enum error e;

	if (v->chain->variant == VARIANT_REFERENCE || (!v->job->verify && !verify_chosen(v)))
		return;
	begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	tiling_tile(tiling, index, v->job->job, v->job->arena, &tile);
	if (!v->job->verify && !choose_window(v, &source, &s.window))
		return;
	e = verify_runs(&s);
	if (e)
		log_warning("job %" PRIu64 ": cannot verify tile %u: %s", v->job->job, index,
		            error_title(e));
	v->busy_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
}
