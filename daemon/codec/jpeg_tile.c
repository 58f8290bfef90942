#include "codec/jpeg_tile.h"

#include <string.h>

static enum jpeg_reason find_reason(struct jpeg_tile *jpeg, enum jpeg_side side,
                                    const struct decoder *decoder, const struct encoder *encoder,
                                    const struct arena *arena)
{
	struct jpeg_scan *scan = &jpeg->work.scan;
	enum jpeg_reason reason;

	if (side == JPEG_ENCODE)
		return encode_jpeg_target(encoder, &jpeg->work.target) ? JPEG_REASON_NONE
		                                                       : JPEG_REASON_ANSWER;
	reason = decode_jpeg_scan(decoder, scan, &jpeg->scan);
	if (reason)
		return reason;
	return scan->size <= arena->in_size - JPEG_WORK_SIZE - ROW_ALIGNMENT ? JPEG_REASON_NONE
	                                                                     : JPEG_REASON_SIZE;
}

void jpeg_tile_plan(struct jpeg_tile *jpeg, const struct message_job *job,
                    const struct decoder *decoder, const struct encoder *encoder,
                    const struct tiling *tiling, const struct arena *arena)
{
	const uint64_t pixels = (uint64_t)tiling->image.width * tiling->image.height;
	enum tile_form form = TILE_PIXELS;

	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++) {
		enum jpeg_reason *reason = &jpeg->reason[side];

		*reason = !job->jpeg_pixels ? JPEG_REASON_REQUEST
		          : pixels > job->jpeg_pixels
		              ? JPEG_REASON_SIZE
		              : find_reason(jpeg, side, decoder, encoder, arena);
		form |= *reason ? 0 : 1 << side;
	}
	jpeg->form = form;
	jpeg->tiling = *tiling;
	if (!form || tiling_spread(&jpeg->tiling, form))
		return;
	jpeg->form = TILE_PIXELS;
	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
		if (!jpeg->reason[side])
			jpeg->reason[side] = JPEG_REASON_ARENA;
}

void jpeg_tile_fill(const struct jpeg_tile *jpeg, const struct arena *arena, struct tile *tile)
{
	uint8_t *in = (uint8_t *)arena->in;

	tiling_whole_tile(&jpeg->tiling, jpeg->form, jpeg->work.scan.size, tile);
	memcpy(in + tile->work, &jpeg->work, sizeof jpeg->work);
	if (jpeg->form & TILE_DECODE)
		memcpy(in + tile->in, jpeg->scan, jpeg->work.scan.size);
}
