/* The slots of one job, shared by three threads (a short job has one thread in all three roles):
 * the decoding thread cuts tiles into them, the main thread learns that tiles are filtered, and the
 * encoding thread reads them.
 *
 * The hard part: no wait may last for ever. Slots are assigned and freed in the order of tiles, so
 * the tile that the encoder waits for always has a slot; and stopping the job ends every wait. The
 * lock does not guard pixels: a slot belongs to the decoding thread until tiles_send(), to a device
 * until tiles_done(), and then to the encoding thread until it is freed. If input areas overlap,
 * the decoding thread sometimes waits until all of them have been read. */
#include "codec/tiles.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "filters/chain_gather.h"

void tiles_init(struct tiles *tiles, const struct message_job *job, struct chain *chain, int socket,
                const struct arena *arena)
{
	*tiles = (struct tiles){.job = job, .socket = socket, .arena = arena};
	tiles->chain = tiles->job_chain = chain;
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
	if (tiles->chain != tiles->job_chain)
		free(tiles->chain);
	pthread_cond_destroy(&tiles->change);
	pthread_mutex_destroy(&tiles->lock);
}

void tiles_stop(struct tiles *tiles, enum error error, const struct problem *problem)
{
	pthread_mutex_lock(&tiles->lock);
	if (!tiles->stopped) {
		tiles->stopped = true;
		tiles->error = error;
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

bool tiles_await_slot(struct tiles *tiles, uint32_t strip)
{
	const struct tiling *t = &tiles->tiling;
	struct chain *chain;

	pthread_mutex_lock(&tiles->lock);
	while (!tiles->stopped &&
	       (strip >= tiles->freed / t->strip_tiles + t->slots ||
	        (tiling_begins_anew(t, strip) && tiles->read < strip * t->strip_tiles)))
		tiles_await_change(tiles);
	pthread_mutex_unlock(&tiles->lock);
	if (tiles_stopped(tiles))
		return false;
	if (!t->apart || strip % t->page_strips)
		return true;
	/* From now on tiles belong to this page; no tile of another page is in work. */
	chain = chain_of_page(tiles->job_chain, strip / t->page_strips);
	if (!chain) {
		fail_with(tiles_stop, tiles, ERR_MEMORY, "no memory for the chain of a page");
		return false;
	}
	if (tiles->chain != tiles->job_chain)
		free(tiles->chain);
	tiles->chain = chain;
	return true;
}

static uint64_t slot_bit(const struct tiles *tiles, uint32_t i)
{
	return UINT64_C(1) << i % (tiles->tiling.slots * tiles->tiling.strip_tiles);
}

void tiles_filtered(struct tiles *tiles, uint32_t i, bool others)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->others |= others;
	if (i < tiles->freed || i >= tiles->cut || tiles->filtered & slot_bit(tiles, i)) {
		log_warning("job %" PRIu64 ": tile %u came back but was not sent", tiles->job->job,
		            i);
	} else {
		tiles->filtered |= slot_bit(tiles, i);
		pthread_cond_broadcast(&tiles->change);
	}
	pthread_mutex_unlock(&tiles->lock);
}

enum error tiles_announce(struct tiles *tiles)
{
	const struct message *header = tiles->header;

	tiles->header = NULL;
	return header ? wire_send(tiles->socket, header, NULL) : ERR_OK;
}

static enum error send_tile(const struct tiles *tiles, const struct tile *tile)
{
	struct message message = {.type = MSG_TILE, .tile = {.tile = *tile}};

	message.tile.tile.job = tiles->job->job;
	message.tile.tile.arena = tiles->job->arena;
	return wire_send(tiles->socket, &message, NULL);
}

enum error tiles_send(struct tiles *tiles, uint32_t i)
{
	struct tile tile;

	if (tiles_announce(tiles))
		return ERR_IO;
	tiling_tile(&tiles->tiling, i, &tile);
	pthread_mutex_lock(&tiles->lock);
	tiles->cut = i + 1;
	pthread_mutex_unlock(&tiles->lock);
	return tiles->chain->variant == VARIANT_REFERENCE ? ERR_OK : send_tile(tiles, &tile);
}

void tiles_set_whole(struct tiles *tiles, enum whole whole)
{
	tiles->whole = whole;
	pthread_cond_broadcast(&tiles->change);
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

bool tiles_send_whole(struct tiles *tiles, const struct tile *tile, bool compare)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->compare = compare;
	tiles->whole_coded = tile->form & TILE_ENCODE;
	tiles_set_whole(tiles, WHOLE_SENT);
	pthread_mutex_unlock(&tiles->lock);
	if (!send_tile(tiles, tile))
		return tiles_await_whole(tiles);
	pthread_mutex_lock(&tiles->lock);
	tiles_set_whole(tiles, WHOLE_NONE);
	pthread_mutex_unlock(&tiles->lock);
	return false;
}

/* Without a result of the whole, the job continues with tiles of pixels, whatever the reason. */
void tiles_done(struct tiles *tiles, const struct message_tile_done *done)
{
	struct problem problem;
	bool was_whole;

	pthread_mutex_lock(&tiles->lock);
	was_whole = tiles->whole == WHOLE_SENT;
	if (was_whole) {
		const bool has_scan = done->size && done->size <= tiles->arena->out_size;

		tiles->whole_size = done->size;
		if (done->error || done->jpeg_flags || (tiles->whole_coded && !has_scan))
			tiles_set_whole(tiles, WHOLE_NONE);
		else
			tiles_set_whole(tiles, tiles->compare ? WHOLE_COMPARED : WHOLE_DONE);
	}
	pthread_mutex_unlock(&tiles->lock);
	if (was_whole)
		return;
	if (done->error == ERR_OK) {
		tiles_filtered(tiles, done->index, done->others);
		return;
	}
	/* ERR_BAD_PARAMETER can only mean the variant, since everything else was checked before. */
	if (done->error == ERR_BAD_PARAMETER)
		bad_parameter(&problem, "variant", kernel_name(chain_kernel(tiles->job_chain)),
		              "%s", done->reason);
	else if (*done->reason)
		problem_set(&problem, done->error, "%s", done->reason);
	else
		problem_set(&problem, ERR_DEVICE, "the device failed on tile %u (OpenCL error %d)",
		            done->index, done->cl_error);
	tiles_stop(tiles, done->error, &problem);
}

/* The lock is held. */
static void wait_filtered(struct tiles *tiles, uint32_t i)
{
	while (!tiles->stopped && tiles->whole != WHOLE_DONE &&
	       !(i < tiles->cut && tiles->filtered & slot_bit(tiles, i)))
		tiles_await_change(tiles);
}

bool tiles_await(struct tiles *tiles, uint32_t i)
{
	pthread_mutex_lock(&tiles->lock);
	wait_filtered(tiles, i);
	pthread_mutex_unlock(&tiles->lock);
	return !tiles_stopped(tiles);
}

/* Other tiles may be finished meanwhile, but only a tile that is run again sets `others`. */
bool tiles_run_again(struct tiles *tiles, uint32_t i, const struct message *verified, bool *others)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->filtered &= ~slot_bit(tiles, i);
	tiles->others = false;
	pthread_mutex_unlock(&tiles->lock);
	if (wire_send(tiles->socket, verified, NULL))
		return false;
	pthread_mutex_lock(&tiles->lock);
	wait_filtered(tiles, i);
	*others = tiles->others;
	pthread_mutex_unlock(&tiles->lock);
	return !tiles_stopped(tiles);
}

void tiles_set_read(struct tiles *tiles, uint32_t i)
{
	pthread_mutex_lock(&tiles->lock);
	tiles->read = i + 1;
	pthread_cond_broadcast(&tiles->change);
	pthread_mutex_unlock(&tiles->lock);
}

void tiles_free_above(struct tiles *tiles, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;
	uint32_t whole = tiling_strip(t, row) * t->strip_tiles;

	pthread_mutex_lock(&tiles->lock);
	while (tiles->freed < whole)
		tiles->filtered &= ~slot_bit(tiles, tiles->freed++);
	pthread_cond_broadcast(&tiles->change);
	pthread_mutex_unlock(&tiles->lock);
}

uint8_t *tiles_in_row(const struct tiles *tiles, uint32_t strip, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;

	return (uint8_t *)tiles->arena->in + tiling_in_place(t, strip) + t->start +
	       (uint64_t)row * t->in_pitch;
}

const uint8_t *tiles_out_row(const struct tiles *tiles, uint32_t row)
{
	const struct tiling *t = &tiles->tiling;
	uint32_t place = tiling_strip(t, row) % t->out_places;

	return (const uint8_t *)tiles->arena->out + place * t->out_slot +
	       (uint64_t)tiling_row_in_strip(t, row) * t->out_pitch;
}
