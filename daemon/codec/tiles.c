/* The slots of one job, shared by three threads (a short job has one, which plays all three): the
 * decoding thread cuts tiles into them, the main thread learns that tiles are filtered, and the
 * encoding thread reads them.
 *
 * The hard part: no wait may last for ever. Slots are assigned and freed in the order of tiles, so
 * the tile that the encoder waits for always has a slot; and stopping the job ends every wait. One
 * lock guards all counters but not the pixels: a slot belongs to the decoding thread until
 * tiles_send(), to a device until tiles_done(), and then to the encoding thread until it is
 * freed. If input areas overlap, the decoding thread waits now and then until all of them have
 * been read; the encoder, which waits for each tile before it asks for the next, keeps only results
 * meanwhile. */
#include "codec/tiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/jpeg_check.h"
#include "filters/chain_gather.h"

void tiles_init(struct tiles *tiles, const struct message_job *job, const struct chain *chain,
                int socket, const struct arena *arena)
{
	memset(tiles, 0, sizeof *tiles);
	tiles->job = job->job;
	tiles->socket = socket;
	tiles->chain = tiles->job_chain = chain;
	tiles->arena = arena;
	tiles->arena_number = job->arena;
	verify_init(&tiles->verify, job, chain, arena, socket);
	pthread_mutex_init(&tiles->lock, NULL);
	pthread_cond_init(&tiles->change, NULL);
}

void tiles_start(struct tiles *tiles, const struct tiling *tiling)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->tiling = *tiling;
	pthread_mutex_unlock(&tiles->lock);
}

void tiles_fini(struct tiles *tiles)
{
	free(tiles->page_chain);
	pthread_cond_destroy(&tiles->change);
	pthread_mutex_destroy(&tiles->lock);
}

void tiles_stop(struct tiles *tiles, enum error error, const struct problem *problem)
{
	pthread_mutex_lock(&tiles->lock);
	if (!tiles->stopped) {
		tiles->stopped = true;
		tiles->error = error;
		if (problem)
			tiles->problem = *problem;
	}
	pthread_cond_broadcast(&tiles->change);
	pthread_mutex_unlock(&tiles->lock);
}

bool tiles_stopped(struct tiles *tiles)
{
	bool stopped;

	pthread_mutex_lock(&tiles->lock);
	stopped = tiles->stopped;
	pthread_mutex_unlock(&tiles->lock);
	return stopped;
}

void tiles_await_change(struct tiles *tiles)
{
	if (!tiles->hear) {
		pthread_cond_wait(&tiles->change, &tiles->lock);
		return;
	}
	pthread_mutex_unlock(&tiles->lock);
	tiles->hear(tiles->context);
	pthread_mutex_lock(&tiles->lock);
}

/* From now on tiles are those of a page; none of another is in work. */
static bool begin_page(struct tiles *tiles, uint32_t page)
{
	struct chain *chain = chain_of_page(tiles->job_chain, page);
	struct problem problem;

	if (!chain) {
		tiles_stop(tiles,
		           problem_set(&problem, ERR_MEMORY, "no memory for the chain of a page"),
		           &problem);
		return false;
	}
	free(tiles->page_chain);
	tiles->page_chain = chain;
	tiles->chain = tiles->verify.chain = chain;
	return true;
}

bool tiles_await_slot(struct tiles *tiles, uint32_t strip)
{
	const struct tiling *t = &tiles->tiling;
	bool stopped;

	pthread_mutex_lock(&tiles->lock);
	while (!tiles->stopped &&
	       (strip >= tiles->freed / t->strip_tiles + t->slots ||
	        (tiling_begins_anew(t, strip) && tiles->read < strip * t->strip_tiles)))
		tiles_await_change(tiles);
	stopped = tiles->stopped;
	pthread_mutex_unlock(&tiles->lock);
	if (stopped || !t->apart || strip % t->page_strips)
		return !stopped;
	return begin_page(tiles, strip / t->page_strips);
}

static uint64_t slot_bit(const struct tiles *tiles, uint32_t i)
{
	return UINT64_C(1) << i % (tiles->tiling.slots * tiles->tiling.strip_tiles);
}

static void accept_filtered(struct tiles *tiles, uint32_t i, bool others)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->others |= others;
	if (i < tiles->freed || i >= tiles->cut || tiles->filtered & slot_bit(tiles, i)) {
		log_warning("job %" PRIu64 ": tile %u came back but was not sent", tiles->job, i);
	} else {
		tiles->filtered |= slot_bit(tiles, i);
		pthread_cond_broadcast(&tiles->change);
	}
	pthread_mutex_unlock(&tiles->lock);
}

static bool context_stopped(void *context)
{
	return tiles_stopped(context);
}

/* Filters a tile with the reference, in place of a device. */
static enum error filter_here(struct tiles *tiles, const struct tile *tile)
{
	const struct tile_source source = {
	    .chain = tiles->chain, .arena = tiles->arena, .tiling = &tiles->tiling, .tile = tile};
	uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	enum error e = verify_fill_tile(&source, context_stopped, tiles);

	tiles->reference_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	if (!e)
		accept_filtered(tiles, tile->index, false);
	return e;
}

enum error tiles_announce(struct tiles *tiles)
{
	const struct message *header = tiles->header;

	tiles->header = NULL;
	return header ? wire_send(tiles->socket, header, NULL) : ERR_OK;
}

enum error tiles_send(struct tiles *tiles, uint32_t i)
{
	struct message message = {.type = MSG_TILE};

	if (tiles_announce(tiles))
		return ERR_IO;
	tiling_tile(&tiles->tiling, i, tiles->job, tiles->arena_number, &message.tile.tile);
	pthread_mutex_lock(&tiles->lock);
	tiles->cut = i + 1;
	pthread_mutex_unlock(&tiles->lock);
	if (tiles->chain->variant == VARIANT_REFERENCE)
		return filter_here(tiles, &message.tile.tile);
	return wire_send(tiles->socket, &message, NULL);
}

/* The lock is held. */
static void set_whole(struct tiles *tiles, enum whole whole)
{
	tiles->whole = whole;
	pthread_cond_broadcast(&tiles->change);
}

void tiles_expect_whole(struct tiles *tiles)
{
	set_whole(tiles, WHOLE_EXPECTED);
}

bool tiles_await_whole(struct tiles *tiles)
{
	bool there;

	pthread_mutex_lock(&tiles->lock);
	while (!tiles->stopped && (tiles->whole == WHOLE_EXPECTED || tiles->whole == WHOLE_SENT))
		tiles_await_change(tiles);
	there = tiles->stopped || tiles->whole == WHOLE_DONE;
	pthread_mutex_unlock(&tiles->lock);
	return there;
}

bool tiles_send_whole(struct tiles *tiles, struct tile *tile, bool compare)
{
	struct message message = {.type = MSG_TILE};

	tile->job = tiles->job;
	tile->arena = tiles->arena_number;
	message.tile.tile = *tile;
	pthread_mutex_lock(&tiles->lock);
	tiles->compare = compare;
	tiles->whole_coded = tile->form & TILE_ENCODE;
	set_whole(tiles, WHOLE_SENT);
	pthread_mutex_unlock(&tiles->lock);
	if (!wire_send(tiles->socket, &message, NULL))
		return tiles_await_whole(tiles);
	pthread_mutex_lock(&tiles->lock);
	set_whole(tiles, WHOLE_NONE);
	pthread_mutex_unlock(&tiles->lock);
	return false;
}

/* True if this was the whole job's tile. Without a result the job goes on with tiles of pixels,
 * whatever the reason. */
static bool accept_whole(struct tiles *tiles, const struct message_tile_done *done)
{
	bool sent, good = !done->error && !done->jpeg_flags;

	pthread_mutex_lock(&tiles->lock);
	sent = tiles->whole == WHOLE_SENT;
	if (sent) {
		if (tiles->whole_coded && (!done->size || done->size > tiles->arena->out_size))
			good = false;
		tiles->whole_size = done->size;
		set_whole(tiles, !good ? WHOLE_NONE : tiles->compare ? WHOLE_COMPARED : WHOLE_DONE);
	}
	pthread_mutex_unlock(&tiles->lock);
	return sent;
}

/* ERR_BAD_PARAMETER can only mean the variant: everything else was checked before. */
static void describe_failure(const struct tiles *tiles, const struct message_tile_done *done,
                             struct problem *problem)
{
	if (done->error == ERR_BAD_PARAMETER)
		problem_set_parameter(problem, ERR_BAD_PARAMETER, "variant",
		                      kernel_name(chain_kernel(tiles->job_chain)), "%s",
		                      done->reason);
	else if (*done->reason)
		problem_set(problem, done->error, "%s", done->reason);
	else
		problem_set(problem, ERR_DEVICE, "the device failed on tile %u (OpenCL error %d)",
		            done->index, done->cl_error);
}

void tiles_done(struct tiles *tiles, const struct message_tile_done *done)
{
	struct problem problem;

	if (accept_whole(tiles, done))
		return;
	if (done->error == ERR_OK) {
		accept_filtered(tiles, done->index, done->others);
		return;
	}
	describe_failure(tiles, done, &problem);
	tiles_stop(tiles, done->error, &problem);
}

/* The lock is held. */
static void wait_filtered(struct tiles *tiles, uint32_t i)
{
	while (!tiles->stopped && tiles->whole != WHOLE_DONE &&
	       !(i < tiles->cut && tiles->filtered & slot_bit(tiles, i)))
		tiles_await_change(tiles);
}

/* Runs a tile again and waits for it. Other tiles may be finished meanwhile, but only one that is
 * run again sets `others`. */
static bool run_again(void *context, const struct message *verified, bool *others)
{
	struct tiles *tiles = context;
	uint32_t i = verified->verified.index;
	bool stopped;

	pthread_mutex_lock(&tiles->lock);
	tiles->filtered &= ~slot_bit(tiles, i);
	tiles->others = false;
	pthread_mutex_unlock(&tiles->lock);
	if (wire_send(tiles->socket, verified, NULL))
		return false;
	pthread_mutex_lock(&tiles->lock);
	wait_filtered(tiles, i);
	stopped = tiles->stopped;
	*others = tiles->others;
	pthread_mutex_unlock(&tiles->lock);
	return !stopped;
}

/* Compares a tile's result with the whole's. */
static void compare_tile(struct tiles *tiles, uint32_t i)
{
	const struct tiling *t = &tiles->tiling;
	struct tile tile;

	tiling_tile(t, i, 0, 0, &tile);
	for (uint32_t y = 0; y < tile.height; y++)
		jpeg_compare_row(tiles->compared, tile.y0 - t->y0 + y, tile.x0 - t->x0,
		                 (const uint8_t *)tiles->arena->out + tile.out +
		                     (uint64_t)y * tile.out_pitch,
		                 tile.width);
}

/* Reads `freed` and `read` without the lock: only the encoding thread changes them. */
static bool await_tile(struct tiles *tiles, uint32_t i)
{
	static const struct verify_owner owner = {.stopped = context_stopped, .again = run_again};
	bool stopped, whole;

	pthread_mutex_lock(&tiles->lock);
	wait_filtered(tiles, i);
	stopped = tiles->stopped;
	whole = tiles->whole == WHOLE_DONE;
	pthread_mutex_unlock(&tiles->lock);
	if (stopped || whole || i < tiles->read)
		return !stopped;
	verify_tile(&tiles->verify, &tiles->tiling, i, &owner, tiles);
	if (tiles->compared)
		compare_tile(tiles, i);
	pthread_mutex_lock(&tiles->lock);
	tiles->read = i + 1;
	stopped = tiles->stopped;
	pthread_cond_broadcast(&tiles->change);
	pthread_mutex_unlock(&tiles->lock);
	return !stopped;
}

bool tiles_await(struct tiles *tiles, uint32_t strip)
{
	const uint32_t count = tiles->tiling.strip_tiles;
	bool there = true;

	for (uint32_t i = strip * count; there && i < (strip + 1) * count; i++)
		there = await_tile(tiles, i);
	return there;
}

void tiles_free_above(struct tiles *tiles, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;
	uint32_t whole = tiling_strip(t, row) * t->strip_tiles;

	while (tiles->freed < whole) {
		pthread_mutex_lock(&tiles->lock);
		tiles->filtered &= ~slot_bit(tiles, tiles->freed++);
		pthread_cond_broadcast(&tiles->change);
		pthread_mutex_unlock(&tiles->lock);
	}
}

uint8_t *tiles_in_row(const struct tiles *tiles, uint32_t strip, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;

	return (uint8_t *)tiles->arena->in + strip % t->in_places * t->in_slot + t->start +
	       (uint64_t)row * t->in_pitch;
}

const uint8_t *tiles_out_row(const struct tiles *tiles, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;
	uint32_t place = tiling_strip(t, row) % t->out_places;

	return (const uint8_t *)tiles->arena->out + place * t->out_slot +
	       (uint64_t)tiling_row_in_strip(t, row) * t->out_pitch;
}
