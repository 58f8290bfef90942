/* Comparing tiles with the reference. Runs in the thread that encodes, when it is done with a tile
 * and before its slot is given back: only until then are the tile's input and output there. */
#include "codec/verify.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

#include "codec/pieces.h"
#include "common/difference.h"
#include "common/log.h"

enum { WINDOW_MAX = 256 };

void verify_init(struct verify *v, const struct message_job *job, const struct chain *chain,
                 const struct arena *arena, int socket)
{
	*v = (struct verify){.job = job, .chain = chain, .arena = arena, .socket = socket};
	if (getrandom(&v->random, sizeof v->random, 0) < 0)
		v->random = job->job;
}

/* A number from 0 to n - 1 (Knuth's generator, its upper bits). */
static uint32_t random_below(struct verify *v, uint32_t n)
{
	v->random = v->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((v->random >> 32) * n >> 32);
}

/* What a piece is compared for. */
struct comparison {
	const struct tile *tile;
	struct difference *difference;
};

static void compare(void *user, const struct reference *piece, uint8_t *out)
{
	const struct comparison *c = user;

	difference_add(c->difference, piece, out, c->tile->out_pitch);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The largest window that the budget allows, somewhere in the tile; none if not even a pixel is. */
static enum error compare_window(struct verify *v, const struct piece_source *source,
                                 struct comparison *comparison)
{
	const struct tile *tile = source->tile;
	struct window window = {tile->x0, tile->y0, 0, 0};

	for (uint32_t side = WINDOW_MAX; side; side /= 2) {
		window.width = least(side, tile->width);
		window.height = least(side, tile->height);
		if (reference_cost(v->chain, &source->tiling->image, window.width, window.height) >
		    (double)v->job->verify_taps)
			continue;
		window.x0 += random_below(v, tile->width - window.width + 1);
		window.y0 += random_below(v, tile->height - window.height + 1);
		return piece_compute(source, &window, compare, comparison);
	}
	return ERR_OK;
}

static enum error send(const struct verify *v, uint32_t index, const struct difference *d)
{
	struct message message = {.type = MSG_VERIFIED};

	message.verified = (struct message_verified){.job = v->job->job,
	                                             .index = index,
	                                             .band = d->band,
	                                             .x = d->x,
	                                             .y = d->y,
	                                             .got = d->got,
	                                             .wanted = d->wanted,
	                                             .slack = d->slack,
	                                             .samples = d->samples,
	                                             .mismatches = d->mismatches,
	                                             .largest = d->largest};
	return wire_send(v->socket, &message, NULL);
}

static bool is_chosen(struct verify *v)
{
	return v->job->verify_share > 0 &&
	       random_below(v, UINT32_MAX) < v->job->verify_share * UINT32_MAX;
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void verify_tile(struct verify *v, const struct tiling *tiling, uint32_t index,
                 bool (*stopped)(void *context), void *context)
{
	struct difference difference = {0};
	uint64_t begun = thread_ns();
	struct tile tile;
	struct piece_source source = {v->chain, v->arena, tiling, &tile};
	struct comparison comparison = {&tile, &difference};
	enum error e;

	if (v->chain->variant == VARIANT_REFERENCE || (!v->job->verify && !is_chosen(v)))
		return;
	tiling_tile(tiling, index, v->job->job, v->job->arena, &tile);
	if (v->job->verify)
		e = pieces_compute(&source, stopped, context, compare, &comparison);
	else
		e = compare_window(v, &source, &comparison);
	if (e)
		log_warning("job %llu: tile %u cannot be verified: %s",
		            (unsigned long long)v->job->job, index, error_title(e));
	if (difference.samples && send(v, index, &difference))
		log_warning("job %llu: the verification of tile %u cannot be sent",
		            (unsigned long long)v->job->job, index);
	v->busy_ns += thread_ns() - begun;
}
