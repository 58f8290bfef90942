/* Cutting: from rows of pixels to padded tiles in slots. */
#ifndef CODEC_CUT_H
#define CODEC_CUT_H

#include "codec/decode.h"
#include "codec/tiles.h"
#include "common/chain.h"
#include "common/error.h"

/* Where the pixels come from; job and body are for decoding a second time. */
struct cut_source {
	struct decoder *decoder;
	const struct decoded *decoded;
	const struct message_job *job;
	int body;
};

/* Decodes the whole image into tiles and hands them to the front, in order; waits for slots.
 * border_pixel: as chain_border_pixel() gives it. Returns ERR_OK also when the job was stopped by
 * someone else, who has then given the reason to tiles_stop(). */
enum error cut_run(struct tiles *tiles, const struct cut_source *source, const struct chain *chain,
                   const double border_pixel[BANDS_MAX], struct problem *problem) MUST_CHECK;

#endif
