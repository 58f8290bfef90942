/* Decodes JPEG scans on a device, bit for bit as libjpeg-turbo does by default. */
#ifndef DEVICE_JPEG_DECODE_H
#define DEVICE_JPEG_DECODE_H

#include "common/jpeg.h"
#include "device/jpeg.h"

/* Buffers that tests look into. */
enum {
	DECODE_COEFFICIENTS = JPEG_BUFFERS_COMMON, /* 64 a block, column after column; of the first
	                                              is only the difference known, << 4 | last
	                                              column; columns beyond are undefined */
};

extern const struct jpeg_direction jpeg_decode_direction;

/* What a set of tables was made of, and far_code of its images. */
struct jpeg_table_set {
	uint32_t components;
	struct jpeg_huffman huffman[JPEG_PLANES][JPEG_CLASSES];
	uint32_t far_code[JPEG_TABLES];
};

struct jpeg_decoder {
	struct jpeg_pipeline pipeline;
	/* Sets of Huffman tables, kept from batch to batch: most files have the same. */
	struct jpeg_table_set set[JPEG_BATCH_MAX];
	uint16_t *tables; /* which the device may read until the batch has ended */
	uint32_t sets, sets_sent, sets_room;
};

/* An image to decode. */
struct jpeg_decode_job {
	const struct jpeg_scan *scan; /* jpeg_scan_valid() */
	const void *bytes;            /* of its scan; its `offset` does not matter here */
	uint64_t samples;             /* byte of the samples buffer at which the first row begins */
	uint32_t pitch;               /* bytes from row to row; both are multiples of 8 */
};

/* ERR_DEVICE, logged. */
enum error jpeg_decoder_init(struct jpeg_decoder *decoder, struct programs *programs) MUST_CHECK;
void jpeg_decoder_fini(struct jpeg_decoder *decoder);

/* Enqueues the decoding of a batch into `samples`, gray or RGB, rows of width * components bytes;
 * nothing else of that buffer is written. The scans' bytes and the decoder must stay as they are
 * until the queue has got so far; the decoder takes the next batch then. An image whose result has
 * flags is not decoded: its samples are undefined. Returns CL_INVALID_BUFFER_SIZE, with nothing
 * enqueued, if there are more than JPEG_BATCH_MAX images or they are too large together. */
cl_int jpeg_decoder_enqueue(struct jpeg_decoder *decoder, cl_command_queue queue,
                            const struct jpeg_decode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace) MUST_CHECK;

/* What images of this size and so many bands take in decoding, with the sampling factors and
 * restart intervals that take most, but without their scans; of these a byte takes 3 at most. */
struct jpeg_room jpeg_decoder_room(uint32_t width, uint32_t height, uint32_t components);

#endif
