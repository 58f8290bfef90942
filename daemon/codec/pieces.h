/* Computes the reference of a tile, piece by piece: to compare a device's result with it, or to use
 * as the result. */
#ifndef CODEC_PIECES_H
#define CODEC_PIECES_H

#include <stdbool.h>

#include "common/arena.h"
#include "common/tile.h"
#include "reference/reference.h"

/* A tile in its slot. The caller owns all pointers. */
struct piece_source {
	const struct chain *chain;
	const struct arena *arena;
	const struct tiling *tiling;
	const struct tile *tile;
};

/* Receives a piece, and the place of its first pixel in the tile's output area (rows
 * tile->out_pitch bytes apart). */
typedef void piece_user(void *user, const struct reference *piece, uint8_t *out);

/* Computes one window of the tile. As reference_window(). */
enum error piece_compute(const struct piece_source *source, const struct window *window,
                         piece_user *use, void *user) MUST_CHECK;

/* Computes the whole tile, in windows that bound its memory. Calls `stopped` before each window;
 * once that is true, leaves out the rest. */
enum error pieces_compute(const struct piece_source *source, bool (*stopped)(void *context),
                          void *context, piece_user *use, void *user) MUST_CHECK;

/* A piece_user that writes the piece to the output area; user: the struct tile. */
void piece_write(void *tile, const struct reference *piece, uint8_t *out);

#endif
