/* Runs the kernels of kernels/jpeg/: the frame of both directions, jpeg_decode and jpeg_encode. */
#ifndef DEVICE_JPEG_H
#define DEVICE_JPEG_H

#include "device/cl/memory.h"
#include "device/plan/programs.h"
#include "jpeg/image.h"

enum {
	JPEG_BATCH_MAX = 64,     /* images */
	JPEG_BUFFERS_MAX = 32,   /* of a direction */
	JPEG_ARGUMENTS_MAX = 14, /* buffers of a kernel */
	JPEG_STAGES_MAX = 16,
	JPEG_LAUNCHES_MAX = 24,
};

/* A buffer of a direction: so many bytes for each element of a span of all images; 0: it is the
 * caller's. */
struct jpeg_buffer {
	uint16_t span; /* its offset in struct jpeg_image */
	uint16_t bytes;
};

#define JPEG_SPAN(name) offsetof(struct jpeg_image, name)

/* A kernel and how it is launched. */
struct jpeg_stage {
	const char *file, *name;
	uint32_t items; /* of a group */
	/* The groups that an image needs, in two dimensions; the third is the batch. */
	void (*groups)(const struct jpeg_image *image, uint32_t groups[2]);
	/* How often it is launched; NULL: once. */
	uint32_t (*launches)(const struct jpeg_image *image);
	uint8_t count, buffers[JPEG_ARGUMENTS_MAX]; /* its arguments */
};

/* The stages of a direction, and their buffers. The first two buffers are the images and their
 * results. */
struct jpeg_direction {
	const struct jpeg_stage *stages;
	const struct jpeg_buffer *buffers;
	uint32_t stage_count, buffer_count;
};

enum { JPEG_IMAGES, JPEG_RESULTS, JPEG_BUFFERS_COMMON };

/* When launches ran, for who wants to know: events that the caller releases. */
struct jpeg_trace {
	bool ends;         /* only the first launch and the last, and the transfers of scans */
	cl_event scans[2]; /* of the first scan and the last, which may be one; else NULL */
	uint32_t count;
	struct {
		const char *name;
		cl_event event;
	} launch[JPEG_LAUNCHES_MAX];
};

/* One batch at a time in one direction. */
struct jpeg_pipeline {
	const struct jpeg_direction *direction;
	const struct device *device;
	cl_kernel kernel[JPEG_STAGES_MAX];
	struct growing_buffer buffer[JPEG_BUFFERS_MAX];
	struct jpeg_image image[JPEG_BATCH_MAX], all; /* all: the sums of their spans */
	uint32_t count;
};

/* Makes the kernels of programs that are ready (programs_prepare_jpeg()) and outlive them.
 * ERR_DEVICE, logged. On failure there is nothing to free. */
enum error jpeg_pipeline_init(struct jpeg_pipeline *pipeline, struct programs *programs,
                              const struct jpeg_direction *direction) MUST_CHECK;
void jpeg_pipeline_fini(struct jpeg_pipeline *pipeline);

/* Fills in what follows from an image's size, bands and sampling factors. */
struct jpeg_image jpeg_frame(uint32_t width, uint32_t height, uint32_t components, uint32_t h,
                             uint32_t v);
/* Adds an image to the batch, with its spans counted; their places are found here. The result is
 * the pipeline's, and NULL if the batch is full or its buffers would become too large. */
struct jpeg_image *jpeg_pipeline_add(struct jpeg_pipeline *pipeline,
                                     const struct jpeg_image *image) MUST_CHECK;
/* What images of a kind take of a device. */
struct jpeg_room {
	uint64_t bytes;  /* of its memory, each */
	uint32_t images; /* the most in a batch: buffers have no more than UINT32_MAX elements */
};

/* Makes *room large enough for images that are described like this one, too. */
void jpeg_direction_room(const struct jpeg_direction *direction, const struct jpeg_image *image,
                         struct jpeg_room *room);
/* Makes sure that the buffers are large enough for the batch, and sends it its descriptors. */
cl_int jpeg_pipeline_prepare(struct jpeg_pipeline *pipeline, cl_command_queue queue) MUST_CHECK;
/* Enqueues all stages. `samples`: the caller's buffer. trace: or NULL. */
cl_int jpeg_pipeline_run(struct jpeg_pipeline *pipeline, cl_command_queue queue, cl_mem samples,
                         struct jpeg_trace *trace) MUST_CHECK;
/* Enqueues a read of the batch's results. */
cl_int jpeg_pipeline_results(const struct jpeg_pipeline *pipeline, cl_command_queue queue,
                             struct jpeg_result *results, cl_event *event) MUST_CHECK;

/* Groups of common stages: one an image, or one for so many elements of a span. */
void jpeg_groups_one(const struct jpeg_image *image, uint32_t groups[2]);
static inline void jpeg_groups_of(uint32_t groups[2], uint32_t count, uint32_t each)
{
	groups[0] = (uint32_t)(((uint64_t)count + each - 1) / each);
	groups[1] = 1;
}
/* A group of JPEG_IDCT_BLOCKS for each row of blocks, those of Cb and Cr being one row. */
void jpeg_groups_transform(const struct jpeg_image *image, uint32_t groups[2]);

#endif
