/* Tiles of the job under way: slots, waiting, and padding.
 *
 * A tile's first rows are the last ones of the tile before it, complete with their padding, whose slot
 * still holds them: the device only reads, and there are at least three slots. So a row is decoded
 * and padded once. */
#include "codec/tiles.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "border.h"

uint64_t tiles_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tiles_begin(struct tiles *t)
{
	pthread_mutex_lock(&t->lock);
	t->active = true;
	t->made = t->read = 0;
	memset(t->filtered, 0, sizeof t->filtered);
	pthread_mutex_unlock(&t->lock);
}

void tiles_fail(struct tiles *t, enum error error, const struct problem *problem)
{
	pthread_mutex_lock(&t->lock);
	if (!t->error) {
		t->error = error;
		t->problem = *problem;
	}
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

bool tiles_failed(struct tiles *t)
{
	bool failed;

	pthread_mutex_lock(&t->lock);
	failed = t->error != ERR_OK;
	pthread_mutex_unlock(&t->lock);
	return failed;
}

bool tiles_wait_free(struct tiles *t, uint32_t i, uint64_t *waited)
{
	uint64_t start = tiles_now();
	bool free;

	pthread_mutex_lock(&t->lock);
	while (!t->error && i - t->read >= t->tiling.slots)
		pthread_cond_wait(&t->changed, &t->lock);
	free = !t->error;
	if (free)
		t->filtered[i % t->tiling.slots] = false;
	pthread_mutex_unlock(&t->lock);
	*waited += tiles_now() - start;
	return free;
}

void tiles_take_done(struct tiles *t, const struct message_tile_done *done)
{
	struct problem problem;
	bool mine;

	pthread_mutex_lock(&t->lock);
	mine = t->active && done->job == t->job.job && done->index < t->made && done->index >= t->read;
	if (mine && !done->error)
		t->filtered[done->index % t->tiling.slots] = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (!mine || !done->error)
		return;
	problem_set(&problem, done->error, "the tile from row %llu could not be filtered",
	            (unsigned long long)done->index * t->tiling.rows);
	tiles_fail(t, done->error, &problem);
}

const uint8_t *tiles_wait_filtered(struct tiles *t, uint32_t i, uint64_t *waited)
{
	uint32_t slot = i % t->tiling.slots;
	uint64_t start = tiles_now();
	bool filtered;

	pthread_mutex_lock(&t->lock);
	while (!t->error && !(i < t->made && t->filtered[slot]))
		pthread_cond_wait(&t->changed, &t->lock);
	filtered = !t->error;
	pthread_mutex_unlock(&t->lock);
	*waited += tiles_now() - start;
	return filtered ? (const uint8_t *)t->arena.out + slot * t->tiling.out_slot : NULL;
}

void tiles_free_slot(struct tiles *t, uint32_t i)
{
	pthread_mutex_lock(&t->lock);
	t->read = i + 1;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* The first row of the halo of tile i, and the row after the last, in the whole image; either may lie outside. */
static int64_t tile_top(const struct tiling *t, uint32_t i)
{
	return (int64_t)t->y0 + (int64_t)i * t->rows - t->halo_y;
}

static int64_t tile_bottom(const struct tiling *t, uint32_t i)
{
	uint64_t end = (uint64_t)(i + 1) * t->rows;

	return (int64_t)t->y0 + (int64_t)(end < t->height ? end : t->height) + t->halo_y;
}

uint8_t *tiles_row(const struct tiles *tiles, uint32_t i, int64_t y)
{
	const struct tiling *t = &tiles->tiling;
	uint64_t slot = i % t->slots * t->in_slot;

	return (uint8_t *)tiles->arena.in + slot + (uint64_t)(y - tile_top(t, i)) * t->in_pitch + t->lead -
	       t->x0 * image_pixel_size(&t->image);
}

static int64_t clamp_row(int64_t y, const struct tiling *t)
{
	return y < 0 ? 0 : y > t->image.height ? t->image.height : y;
}

void tiles_new_rows(const struct tiles *tiles, uint32_t i, uint32_t *first, uint32_t *end)
{
	const struct tiling *t = &tiles->tiling;

	*first = (uint32_t)clamp_row(i ? tile_bottom(t, i - 1) : tile_top(t, 0), t);
	*end = (uint32_t)clamp_row(tile_bottom(t, i), t);
}

/* Writes one pixel of the constant border. */
static void store_constant(const struct tiles *t, uint8_t *p)
{
	for (uint32_t b = 0; b < t->tiling.image.bands; b++) {
		double value = t->border_pixel[b];
		uint16_t word = (uint16_t)(t->tiling.image.type == PIXEL_U16 ? value : 0);
		float real = (float)value;

		if (t->tiling.image.type == PIXEL_U8)
			p[b] = (uint8_t)value;
		else if (t->tiling.image.type == PIXEL_U16)
			memcpy(p + 2 * b, &word, sizeof word);
		else
			memcpy(p + 4 * b, &real, sizeof real);
	}
}

/* Fills what lies left and right of a row of the image. */
static void pad_sides(const struct tiles *tiles, uint8_t *row)
{
	const struct tiling *t = &tiles->tiling;
	size_t pixel = image_pixel_size(&t->image);
	int width = (int)t->image.width, halo = (int)t->halo_x, mode = (int)tiles->chain->border;

	if (mode == BORDER_CROP)
		return;
	for (int k = 1; k <= halo; k++) {
		int right = width + k - 1;

		if (mode == BORDER_CONSTANT) {
			store_constant(tiles, row - (size_t)k * pixel);
			store_constant(tiles, row + (size_t)right * pixel);
			continue;
		}
		memcpy(row - (size_t)k * pixel, row + (size_t)border_map(-k, width, mode) * pixel, pixel);
		memcpy(row + (size_t)right * pixel, row + (size_t)border_map(right, width, mode) * pixel,
		       pixel);
	}
}

/* A padded row's start and its bytes. */
static uint8_t *padded(const struct tiles *tiles, uint8_t *row, size_t *bytes)
{
	const struct tiling *t = &tiles->tiling;
	size_t pixel = image_pixel_size(&t->image);

	*bytes = (t->width + 2 * (size_t)t->halo_x) * pixel;
	return row - (t->halo_x - t->x0) * pixel;
}

/* Makes row y, which lies above or below the image, of tile i. */
static void make_outside_row(const struct tiles *tiles, uint32_t i, int64_t y, const uint8_t *head,
                             const uint8_t *tail)
{
	const struct tiling *t = &tiles->tiling;
	uint32_t height = t->image.height, kept = t->halo_y < height ? t->halo_y : height;
	uint8_t *row = tiles_row(tiles, i, y), *start;
	size_t bytes, size = image_row_size(&t->image), pixel = image_pixel_size(&t->image);
	uint32_t from;

	start = padded(tiles, row, &bytes);
	if (tiles->chain->border == BORDER_CONSTANT) {
		for (size_t at = 0; at < bytes; at += pixel)
			store_constant(tiles, start + at);
		return;
	}
	from = (uint32_t)border_map((int)y, (int)height, (int)tiles->chain->border);
	if (tiles->chain->border != BORDER_WRAP) {
		memcpy(start, padded(tiles, tiles_row(tiles, i, from), &bytes), bytes);
		return;
	}
	memcpy(row, from < kept ? head + from * size : tail + (from - (height - kept)) * size, size);
	pad_sides(tiles, row);
}

/* Copies the rows that the tile before also has. */
static void take_shared_rows(const struct tiles *tiles, uint32_t i)
{
	const struct tiling *t = &tiles->tiling;
	int64_t top = tile_top(t, i), bottom = tile_bottom(t, i), shared = tile_bottom(t, i - 1);
	size_t bytes;
	uint8_t *to = padded(tiles, tiles_row(tiles, i, top), &bytes);

	shared = shared < bottom ? shared : bottom;
	if (shared > top)
		memcpy(to, padded(tiles, tiles_row(tiles, i - 1, top), &bytes),
		       (size_t)(shared - top - 1) * t->in_pitch + bytes);
}

static void announce(struct tiles *tiles, uint32_t i)
{
	struct message message = {.type = MSG_TILE};
	struct problem problem;

	tiling_tile(&tiles->tiling, i, tiles->job.job, tiles->arena_number, &message.tile.tile);
	pthread_mutex_lock(&tiles->lock);
	tiles->made = i + 1;
	pthread_mutex_unlock(&tiles->lock);
	if (wire_send(tiles->socket, &message, NULL))
		tiles_fail(tiles, problem_set(&problem, ERR_IO, "the front does not listen"), &problem);
}

void tiles_complete(struct tiles *tiles, uint32_t i, const uint8_t *head, const uint8_t *tail)
{
	const struct tiling *t = &tiles->tiling;
	int64_t top = tile_top(t, i), bottom = tile_bottom(t, i), from = top;
	uint32_t first, end;

	tiles_new_rows(tiles, i, &first, &end);
	if (i) {
		take_shared_rows(tiles, i);
		from = tile_bottom(t, i - 1);
	}
	for (uint32_t y = first; y < end; y++)
		pad_sides(tiles, tiles_row(tiles, i, y));
	for (int64_t y = from; y < 0; y++)
		make_outside_row(tiles, i, y, head, tail);
	for (int64_t y = from > t->image.height ? from : t->image.height; y < bottom; y++)
		make_outside_row(tiles, i, y, head, tail);
	announce(tiles, i);
}
