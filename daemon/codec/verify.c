/* Comparing tiles with the reference. Runs in the thread that encodes, when it is done with a tile
 * and before its slot is given back: only until then are the tile's input and output there.
 *
 * A whole tile is compared piece by piece, which bounds the memory that the reference needs. */
#include "codec/verify.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

#include "common/difference.h"
#include "common/log.h"

/* Pieces of a whole tile; windows of a sample. */
enum { PIECE_WIDTH = 512, PIECE_HEIGHT = 128, WINDOW_MAX = 256 };

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

static enum error compare(const struct verify *v, const struct tiling *tiling,
                          const struct tile *tile, const struct window *window,
                          struct difference *difference)
{
	size_t pixel = image_pixel_size(&tiling->image);
	uint64_t x = window->x0 - tile->x0, y = window->y0 - tile->y0;
	const uint8_t *in = (const uint8_t *)v->arena->in + tile->in + y * tile->in_pitch;
	const uint8_t *out = (const uint8_t *)v->arena->out + tile->out + y * tile->out_pitch;
	struct reference reference;
	enum error e = reference_window(v->chain, &tiling->image, window, in + x * pixel,
	                                tile->in_pitch, &reference);

	if (e)
		return e;
	difference_add(difference, &reference, out + x * pixel, tile->out_pitch);
	reference_fini(&reference);
	return ERR_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static enum error compare_all(const struct verify *v, const struct tiling *tiling,
                              const struct tile *tile, bool (*stopped)(void *context),
                              void *context, struct difference *difference)
{
	uint32_t width = PIECE_WIDTH > tiling->halo_x ? PIECE_WIDTH : tiling->halo_x;
	uint32_t height = PIECE_HEIGHT > tiling->halo_y ? PIECE_HEIGHT : tiling->halo_y;
	enum error e = ERR_OK;

	for (uint32_t y = 0; y < tile->height; y += height)
		for (uint32_t x = 0; !e && x < tile->width && !stopped(context); x += width) {
			struct window window = {tile->x0 + x, tile->y0 + y,
			                        least(width, tile->width - x),
			                        least(height, tile->height - y)};

			e = compare(v, tiling, tile, &window, difference);
		}
	return e;
}

/* The largest window that the budget allows, somewhere in the tile; none if not even a pixel is. */
static enum error compare_window(struct verify *v, const struct tiling *tiling,
                                 const struct tile *tile, struct difference *difference)
{
	struct window window = {tile->x0, tile->y0, 0, 0};

	for (uint32_t side = WINDOW_MAX; side; side /= 2) {
		window.width = least(side, tile->width);
		window.height = least(side, tile->height);
		if (reference_cost(v->chain, &tiling->image, window.width, window.height) >
		    (double)v->job->verify_taps)
			continue;
		window.x0 += random_below(v, tile->width - window.width + 1);
		window.y0 += random_below(v, tile->height - window.height + 1);
		return compare(v, tiling, tile, &window, difference);
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
	enum error e;

	if (!v->job->verify && !is_chosen(v))
		return;
	tiling_tile(tiling, index, v->job->job, v->job->arena, &tile);
	if (v->job->verify)
		e = compare_all(v, tiling, &tile, stopped, context, &difference);
	else
		e = compare_window(v, tiling, &tile, &difference);
	if (e)
		log_warning("job %llu: tile %u cannot be verified: %s",
		            (unsigned long long)v->job->job, index, error_title(e));
	if (difference.samples && send(v, index, &difference))
		log_warning("job %llu: the verification of tile %u cannot be sent",
		            (unsigned long long)v->job->job, index);
	v->busy_ns += thread_ns() - begun;
}
