/* What the reference makes of a tile, piece by piece: to compare a device's result with it, or to
 * be the result. */
#ifndef CODEC_PIECES_H
#define CODEC_PIECES_H

#include <stdbool.h>

#include "common/arena.h"
#include "common/tile.h"
#include "reference/reference.h"

/* A tile in its slot. All pointers are the caller's. */
struct piece_source {
	const struct chain *chain;
	const struct arena *arena;
	const struct tiling *tiling;
	const struct tile *tile;
};

/* Gets a piece, and where its first pixel is in the tile's output area (rows tile->out_pitch bytes
 * apart). */
typedef void piece_user(void *user, const struct reference *piece, uint8_t *out);

/* Computes one window of the tile. As reference_window(). */
enum error piece_compute(const struct piece_source *source, const struct window *window,
                         piece_user *use, void *user) MUST_CHECK;

/* Computes all of the tile, in windows that bound the memory it takes. Before each, `stopped` is
 * asked; once it is true the rest is left out. */
enum error pieces_compute(const struct piece_source *source, bool (*stopped)(void *context),
                          void *context, piece_user *use, void *user) MUST_CHECK;

/* A piece_user that writes the piece to the output area; user: the struct tile. */
void piece_write(void *tile, const struct reference *piece, uint8_t *out);

#endif
