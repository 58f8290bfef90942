/* Cutting: from rows of pixels to padded tiles in slots. */
#ifndef CODEC_CUT_H
#define CODEC_CUT_H

#include "base/error.h"
#include "codec/decode.h"
#include "codec/tiles.h"

/* The source of the pixels; the body is for a second decoding. */
struct cut_source {
	struct decoder *decoder;
	const struct decoded *decoded;
	int body;
	enum border border;
	const double *border_pixel; /* from chain_border_pixel() */
};

/* Decodes the whole image into tiles and sends them to the front, in order; waits for slots. With
 * !sends it only fills the strips, which have places of their own (tiling_spread()); cut_send()
 * then sends them as tiles. Also returns ERR_OK when another thread stopped the job and gave the
 * reason to tiles_stop(). */
enum error cut_run(struct tiles *tiles, const struct cut_source *source, bool sends,
                   struct problem *problem) MUST_CHECK;
enum error cut_send(struct tiles *tiles, struct problem *problem) MUST_CHECK;

#endif
