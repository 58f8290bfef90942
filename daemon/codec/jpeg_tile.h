/* A job as one tile that is a JPEG, which a device decodes, filters and encodes: see
 * common/tile.h. */
#ifndef CODEC_JPEG_TILE_H
#define CODEC_JPEG_TILE_H

#include "codec/decode.h"
#include "codec/encode.h"
#include "common/arena.h"
#include "common/jpeg.h"
#include "common/tile.h"

struct jpeg_tile {
	enum jpeg_reason reason; /* why the job cannot be such a tile; NONE: it can */
	struct jpeg_work work;
	const uint8_t *scan; /* the decoder's; work.scan.size bytes */
};

/* Finds out whether the job can be such a tile. The decoder must outlive the result. */
void jpeg_tile_plan(struct jpeg_tile *jpeg, const struct message_job *job,
                    const struct decoder *decoder, const struct encoder *encoder,
                    const struct tiling *tiling, const struct arena *arena);

/* Fills the slot, and describes the tile, of a job whose reason is NONE. */
void jpeg_tile_fill(const struct jpeg_tile *jpeg, const struct tiling *tiling,
                    const struct arena *arena, struct tile *tile);

#endif
