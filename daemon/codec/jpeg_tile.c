#include "codec/jpeg_tile.h"

#include <string.h>

static uint64_t pixels(const struct image *image)
{
	return (uint64_t)image->width * image->height;
}

static enum jpeg_reason find_reason(struct jpeg_tile *jpeg, const struct message_job *job,
                                    const struct decoder *decoder, const struct encoder *encoder,
                                    const struct tiling *tiling, const struct arena *arena)
{
	struct jpeg_scan *scan = &jpeg->work.scan;
	enum jpeg_reason reason;

	if (!job->jpeg_pixels)
		return JPEG_REASON_REQUEST;
	if (pixels(&tiling->image) > job->jpeg_pixels)
		return JPEG_REASON_SIZE;
	reason = decode_jpeg_scan(decoder, scan, &jpeg->scan);
	if (reason)
		return reason;
	if (!encode_jpeg_target(encoder, &jpeg->work.target))
		return JPEG_REASON_ANSWER;
	return scan->size <= arena->in_size - JPEG_WORK_SIZE ? JPEG_REASON_NONE : JPEG_REASON_SIZE;
}

void jpeg_tile_plan(struct jpeg_tile *jpeg, const struct message_job *job,
                    const struct decoder *decoder, const struct encoder *encoder,
                    const struct tiling *tiling, const struct arena *arena)
{
	jpeg->reason = find_reason(jpeg, job, decoder, encoder, tiling, arena);
}

void jpeg_tile_fill(const struct jpeg_tile *jpeg, const struct tiling *tiling,
                    const struct arena *arena, struct tile *tile)
{
	uint8_t *slot = (uint8_t *)arena->in;

	memcpy(slot, &jpeg->work, sizeof jpeg->work);
	memcpy(slot + JPEG_WORK_SIZE, jpeg->scan, jpeg->work.scan.size);
	tiling_jpeg_tile(tiling, jpeg->work.scan.size, arena->out_size, tile);
}
