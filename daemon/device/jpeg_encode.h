/* Encodes JPEG scans on a device, byte for byte as libjpeg-turbo does with its standard Huffman
 * tables (jpeg_standard_huffman), no restart markers, and smooth chroma. */
#ifndef DEVICE_JPEG_ENCODE_H
#define DEVICE_JPEG_ENCODE_H

#include "common/jpeg.h"
#include "device/jpeg.h"

extern const struct jpeg_direction jpeg_encode_direction;

struct jpeg_encoder {
	struct jpeg_pipeline pipeline;
	/* What has been sent to the device, which may read it until the batch has ended. */
	uint32_t codes[JPEG_PLANES][JPEG_CODES];
	uint64_t halves[16][16];
	bool constants_sent;
};

/* An image to encode. */
struct jpeg_encode_job {
	uint32_t width, height; /* 1 to JPEG_SIDE_MAX */
	uint32_t components;    /* 1: gray samples; 3: RGB */
	uint32_t h, v;          /* sampling factors of Y: 1x1, 2x1 or 2x2; 1x1 if gray */
	uint16_t quantization[JPEG_PLANES][JPEG_BLOCK]; /* in zigzag order, 1 to 255 */
	uint64_t samples; /* byte of the samples buffer at which the first row begins */
	uint32_t pitch;   /* bytes from row to row; both are multiples of 8 */
};

/* True if the device can encode an image of these numbers. */
bool jpeg_encode_job_valid(const struct jpeg_encode_job *job);

/* ERR_DEVICE, logged. */
enum error jpeg_encoder_init(struct jpeg_encoder *encoder, struct programs *programs) MUST_CHECK;
void jpeg_encoder_fini(struct jpeg_encoder *encoder);

/* Enqueues the encoding of a batch of valid jobs from `samples`. The encoder must stay as it is
 * until the queue has got so far; it takes the next batch when its scans have been read. An image
 * whose result has flags is not encoded: JPEG_FLAG_ROOM alone is possible. Returns
 * CL_INVALID_BUFFER_SIZE, with nothing enqueued, if there are more than JPEG_BATCH_MAX images or
 * they are too large together. */
cl_int jpeg_encoder_enqueue(struct jpeg_encoder *encoder, cl_command_queue queue,
                            const struct jpeg_encode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace) MUST_CHECK;

/* What images of this size and so many bands take in encoding, with the sampling factors that take
 * most. */
struct jpeg_room jpeg_encoder_room(uint32_t width, uint32_t height, uint32_t components);

/* Enqueues a read of the entropy-coded bytes of an image: `size` by its result, which must have
 * been read before. */
cl_int jpeg_encoder_read(const struct jpeg_encoder *encoder, cl_command_queue queue,
                         uint32_t number, uint32_t size, void *to, cl_event *event) MUST_CHECK;

#endif
