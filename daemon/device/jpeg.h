/* Runs the kernels of kernels/jpeg/: both directions' common part (jpeg.c), decoder, encoder. */
#pragma once

#include "device/cl/opencl.h"
#include "device/plan/programs.h"
#include "image/jpeg.h"
#include "jpeg/image.h"

enum {
	JPEG_BATCH_MAX = 64,     /* images */
	JPEG_BUFFERS_MAX = 32,   /* per direction */
	JPEG_ARGUMENTS_MAX = 14, /* per kernel: buffers beside the images, and a 0 */
	JPEG_STAGES_MAX = 16,
	JPEG_LAUNCHES_MAX = 24,
};

/* A buffer: bytes for each element of a span of all images; 0: it is the caller's. */
struct jpeg_buffer {
	uint16_t span; /* its offset in struct jpeg_image */
	uint16_t bytes;
};

#define JPEG_SPAN(name) offsetof(struct jpeg_image, name)
/* For a direction's list of buffers: their numbers and rows. */
#define JPEG_BUFFER_NUMBER(symbol, span, bytes) symbol,
#define JPEG_BUFFER_ROW(symbol, span, bytes)    [symbol] = {JPEG_SPAN(span), bytes},

/* A kernel and its launch. An image needs one group for each `each` elements of a span, or as many
 * as `groups` returns, in two dimensions; the third dimension is the batch. */
struct jpeg_stage {
	const char *file, *name;
	uint32_t items; /* per group */
	uint16_t span;  /* as of a buffer */
	uint32_t each;
	void (*groups)(const struct jpeg_image *image, uint32_t groups[2]); /* or NULL */
	uint32_t again; /* further launches, at most one for each group beside the first */
	uint8_t buffers[JPEG_ARGUMENTS_MAX]; /* its arguments behind the images */
};

struct jpeg_direction {
	const struct jpeg_stage *stages;
	const struct jpeg_buffer *buffers;
	uint32_t stage_count, buffer_count;
	/* Counts the spans that follow from an image's size and its scan. */
	void (*count_spans)(struct jpeg_image *image);
	uint32_t tables; /* bytes that an image may need beside its spans */
};

/* The first buffers of both directions. */
enum { JPEG_IMAGES, JPEG_RESULTS, JPEG_BUFFERS_COMMON };

/* When launches ran. */
struct jpeg_trace {
	bool ends;         /* only the first launch and the last, and the transfers of scans */
	cl_event scans[2]; /* transfers of the first scan and the last, maybe one; else NULL */
	uint32_t count;
	struct {
		const char *name;
		cl_event event;
	} launch[JPEG_LAUNCHES_MAX];
};

/* Releases the events and empties the trace. */
void jpeg_trace_release(struct jpeg_trace *trace);

/* One batch at a time in one direction. */
struct jpeg_pipeline {
	const struct jpeg_direction *direction;
	const struct device *device;
	cl_kernel kernel[JPEG_STAGES_MAX];
	struct growing_buffer buffer[JPEG_BUFFERS_MAX];
	struct jpeg_image image[JPEG_BATCH_MAX], all; /* all: the sums of their spans */
	uint32_t count;
	unsigned set; /* growing_buffers_made() when the kernels got their buffers; 0: not yet */
};

/* Makes the kernels of programs that are ready (programs_prepare()) and outlive them. ERR_DEVICE,
 * logged; there is then nothing to free. */
enum error jpeg_pipeline_init(struct jpeg_pipeline *pipeline, struct programs *programs,
                              const struct jpeg_direction *direction) MUST_CHECK;
void jpeg_pipeline_fini(struct jpeg_pipeline *pipeline);

/* Returns the number of parts of this size in a whole, rounded up. */
static inline uint32_t jpeg_parts(uint32_t whole, uint32_t part)
{
	return (uint32_t)(((uint64_t)whole + part - 1) / part);
}

/* Returns the position in a block, stored by columns, of the i-th coefficient in zigzag order. */
static inline uint32_t jpeg_column_place(uint32_t i)
{
	return jpeg_zigzag[i] % 8u * 8 + jpeg_zigzag[i] / 8u;
}

/* Returns the image of a scan without bytes and with as many restart intervals as possible. */
struct jpeg_image jpeg_frame(uint32_t width, uint32_t height, uint32_t components, uint32_t h,
                             uint32_t v);
/* Adds an image with counted spans. Returns false if the batch is full or would be too large. */
bool jpeg_pipeline_add(struct jpeg_pipeline *pipeline, const struct jpeg_image *image) MUST_CHECK;

/* The room that images take on a device. */
struct jpeg_room {
	uint64_t bytes;  /* device memory per image */
	uint32_t images; /* maximum of a batch: buffers have no more than UINT32_MAX elements */
};

/* Returns the room that images of this size need, with the largest sampling factors and restart
 * intervals, but without their scans: each byte of those needs at most 3. */
struct jpeg_room jpeg_room(const struct jpeg_direction *direction, uint32_t width, uint32_t height,
                           uint32_t components);
/* Makes the buffers large enough for the batch, and sends its descriptors. */
cl_int jpeg_pipeline_prepare(struct jpeg_pipeline *pipeline, cl_command_queue queue) MUST_CHECK;
/* Enqueues all stages. `samples`: the caller's buffer. trace: or NULL. */
cl_int jpeg_pipeline_run(struct jpeg_pipeline *pipeline, cl_command_queue queue, cl_mem samples,
                         struct jpeg_trace *trace) MUST_CHECK;
/* Enqueues a read of the batch's results. */
cl_int jpeg_pipeline_results(const struct jpeg_pipeline *pipeline, cl_command_queue queue,
                             struct jpeg_result *results, cl_event *event) MUST_CHECK;

/* One group of JPEG_IDCT_BLOCKS for each row of blocks; Cb and Cr are one row. */
void jpeg_groups_transform(const struct jpeg_image *image, uint32_t groups[2]);

/* ---- the decoder (jpeg_decode.c): bit for bit as libjpeg-turbo does by default ---- */

/* Buffers that tests look into. */
enum {
	/* 64 for each block, by columns. The first holds only the difference known so far, << 4 |
	 * last column; later columns are undefined */
	DECODE_COEFFICIENTS = JPEG_BUFFERS_COMMON,
};

extern const struct jpeg_direction jpeg_decode_direction;

/* The source of a set of tables, and far_code of its images */
struct jpeg_table_set {
	uint32_t components;
	struct jpeg_huffman huffman[JPEG_PLANES][JPEG_CLASSES];
	uint32_t far_code[JPEG_TABLES];
};

struct jpeg_decoder {
	struct jpeg_pipeline pipeline;
	/* Sets of Huffman tables, kept from batch to batch, because most files have the same. */
	struct jpeg_table_set set[JPEG_BATCH_MAX];
	uint16_t *tables; /* the device may read them until the batch has ended */
	uint32_t sets, sets_sent;
};

/* An image to decode. */
struct jpeg_decode_job {
	const struct jpeg_scan *scan; /* jpeg_scan_valid() */
	const void *bytes;            /* the scan's, whose `offset` does not matter here */
	uint64_t samples;             /* bytes of the buffer before the first row */
	uint32_t pitch;               /* from row to row; both are multiples of 8 */
};

/* ERR_DEVICE, logged, or ERR_MEMORY. */
enum error jpeg_decoder_init(struct jpeg_decoder *decoder, struct programs *programs) MUST_CHECK;
void jpeg_decoder_fini(struct jpeg_decoder *decoder);

/* Enqueues the decoding of a batch into `samples`, gray or RGB; nothing else of that buffer is
 * written. Scans and decoder must stay unchanged until the queue has executed it. Samples of an
 * image whose result has flags are undefined. CL_INVALID_BUFFER_SIZE, with nothing enqueued, for
 * more than JPEG_BATCH_MAX images, or if they are too large together. */
cl_int jpeg_decoder_enqueue(struct jpeg_decoder *decoder, cl_command_queue queue,
                            const struct jpeg_decode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace) MUST_CHECK;

/* ---- the encoder (jpeg_encode.c): byte for byte as libjpeg-turbo does with its standard Huffman
 * tables (jpeg_standard_huffman), no restart markers, and smooth chroma ---- */

extern const struct jpeg_direction jpeg_encode_direction;

struct jpeg_encoder {
	struct jpeg_pipeline pipeline;
	/* Tables sent to the device, which may read them until the batch has ended. */
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
	uint64_t samples;                               /* as above */
	uint32_t pitch;
};

/* True if the device can encode an image of these numbers. */
bool jpeg_encode_job_valid(const struct jpeg_encode_job *job);

/* ERR_DEVICE, logged. */
enum error jpeg_encoder_init(struct jpeg_encoder *encoder, struct programs *programs) MUST_CHECK;
void jpeg_encoder_fini(struct jpeg_encoder *encoder);

/* Enqueues the encoding of a batch of valid jobs, like the decoding. The encoder can take the next
 * batch when the scans have been read. JPEG_FLAG_ROOM is the only possible flag; such an image is
 * not encoded. */
cl_int jpeg_encoder_enqueue(struct jpeg_encoder *encoder, cl_command_queue queue,
                            const struct jpeg_encode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace) MUST_CHECK;

/* Enqueues a read of an image's entropy-coded bytes. size: from its result. */
cl_int jpeg_encoder_read(const struct jpeg_encoder *encoder, cl_command_queue queue,
                         uint32_t number, uint32_t size, void *to, cl_event *event) MUST_CHECK;
