/* A job as one tile of which a device decodes the JPEG, encodes the answer, or both
 * (wire/tile.h).
 */
#ifndef CODEC_JPEG_TILE_H
#define CODEC_JPEG_TILE_H

#include "codec/decode.h"
#include "codec/encode.h"
#include "image/jpeg.h"
#include "wire/tile.h"

struct jpeg_tile {
	enum jpeg_reason reason[JPEG_SIDES]; /* why a side cannot be a scan; NONE: it can */
	enum tile_form form;                 /* the sides that can */
	struct jpeg_work work;
	const uint8_t *scan;  /* the decoder's; work.scan.size bytes */
	struct tiling tiling; /* with pixels where such a tile has them */
};

/* Finds out which sides of the job can be scans. The decoder must outlive the result. */
void jpeg_tile_plan(struct jpeg_tile *jpeg, const struct message_job *job,
                    const struct decoder *decoder, const struct encoder *encoder,
                    const struct tiling *tiling, const struct arena *arena);

/* Describes the tile of a job whose form is not TILE_PIXELS, and fills its areas but for pixels. */
void jpeg_tile_fill(const struct jpeg_tile *jpeg, const struct arena *arena, struct tile *tile);

#endif
