#include "codec/webp_decode.h"

#include <stdbool.h>
#include <stdlib.h>

#include <webp/decode.h>
#include <webp/demux.h>

/* Up to this size a thread of libwebp's costs more than it saves. */
static const uint64_t ALONE_PIXELS = 1 << 18;

static bool decode(const WebPIterator *frame, int bands, uint8_t *pixels)
{
	WebPDecoderConfig config;
	WebPRGBABuffer *rows = &config.output.u.RGBA;

	if (!WebPInitDecoderConfig(&config))
		return false;
	config.options.use_threads =
	    (uint64_t)frame->width * (uint64_t)frame->height > ALONE_PIXELS;
	config.output.colorspace = bands == 4 ? MODE_RGBA : MODE_RGB;
	config.output.is_external_memory = 1;
	rows->rgba = pixels;
	rows->stride = frame->width * bands;
	rows->size = (size_t)rows->stride * (size_t)frame->height;
	return WebPDecode(frame->fragment.bytes, frame->fragment.size, &config) == VP8_STATUS_OK;
}

/* The picture alone, without the rest of the file: else a damaged one could borrow bytes there. */
static uint8_t *decode_frame(const WebPIterator *frame, uint32_t width, uint32_t height,
                             uint32_t bands)
{
	uint8_t *pixels;

	if (!frame->complete || (uint32_t)frame->width != width ||
	    (uint32_t)frame->height != height)
		return NULL;
	pixels = malloc((size_t)width * height * bands);
	if (pixels && decode(frame, (int)bands, pixels))
		return pixels;
	free(pixels);
	return NULL;
}

uint8_t *webp_decode(const uint8_t *file, size_t size, uint32_t width, uint32_t height,
                     uint32_t bands)
{
	const WebPData whole = {file, size};
	WebPDemuxer *demuxer = WebPDemux(&whole);
	uint8_t *pixels = NULL;
	WebPIterator frame;

	if (demuxer && !(WebPDemuxGetI(demuxer, WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) &&
	    WebPDemuxGetFrame(demuxer, 1, &frame)) {
		pixels = decode_frame(&frame, width, height, bands);
		WebPDemuxReleaseIterator(&frame);
	}
	WebPDemuxDelete(demuxer);
	return pixels;
}
