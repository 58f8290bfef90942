/* Every buffer is sized by spans, which are counted from checked numbers; kernels stay within them
 * whatever the bytes of a scan are. */
#include "device/jpeg.h"

#include <sys/param.h>

#include "base/log.h"

enum { SPAN_ALIGNMENT = 16 };

enum error jpeg_pipeline_init(struct jpeg_pipeline *pipeline, struct programs *programs,
                              const struct jpeg_direction *direction)
{
	*pipeline =
	    (struct jpeg_pipeline){.direction = direction, .device = programs_device(programs)};
	for (uint32_t i = 0; i < direction->stage_count; i++) {
		const struct jpeg_stage *stage = &direction->stages[i];
		cl_program program = programs_of_jpeg(programs, stage->file);
		cl_int code = CL_INVALID_PROGRAM;

		if (program)
			pipeline->kernel[i] =
			    object_add(OBJECT_KERNEL, clCreateKernel(program, stage->name, &code));
		if (code) {
			log_error("cannot create kernel %s: %s", stage->name,
			          opencl_error_name(code));
			jpeg_pipeline_fini(pipeline);
			return ERR_DEVICE;
		}
	}
	return ERR_OK;
}

void jpeg_trace_release(struct jpeg_trace *trace)
{
	for (uint32_t i = 0; i < trace->count; i++)
		object_release(OBJECT_EVENT, trace->launch[i].event);
	for (int i = 0; i < 2; i++)
		object_release(OBJECT_EVENT, trace->scans[i]);
	*trace = (struct jpeg_trace){0};
}

void jpeg_pipeline_fini(struct jpeg_pipeline *pipeline)
{
	for (int i = 0; i < JPEG_STAGES_MAX; i++)
		object_release(OBJECT_KERNEL, pipeline->kernel[i]);
	for (int i = 0; i < JPEG_BUFFERS_MAX; i++)
		growing_buffer_free(&pipeline->buffer[i]);
	*pipeline = (struct jpeg_pipeline){0};
}

struct jpeg_image jpeg_frame(uint32_t width, uint32_t height, uint32_t components, uint32_t h,
                             uint32_t v)
{
	struct jpeg_image image = {.width = width,
	                           .height = height,
	                           .components = components,
	                           .h = h,
	                           .v = v,
	                           .mcus_x = jpeg_parts(width, 8 * h),
	                           .mcus_y = jpeg_parts(height, 8 * v),
	                           .luma_blocks = h * v,
	                           .restart_interval = 1,
	                           .subsequence = 4,
	                           .chroma_width = jpeg_parts(width, h),
	                           .chroma_height = jpeg_parts(height, v)};

	image.mcu_blocks = image.luma_blocks + components - 1;
	image.mcus.count = image.mcus_x * image.mcus_y;
	image.blocks.count = image.mcus.count * image.mcu_blocks;
	image.planes.count = image.blocks.count * 64;
	image.image.count = 1;
	for (uint32_t c = 0, at = 0; c < components; c++) {
		image.plane[c] = at;
		image.plane_pitch[c] = image.mcus_x * 8 * (c ? 1 : h);
		at += image.plane_pitch[c] * image.mcus_y * 8 * (c ? 1 : v);
	}
	return image;
}

/* Places a span behind those of the images before, with room for one further element. */
static bool place_span(struct jpeg_span *span, struct jpeg_span *all, uint32_t spare,
                       uint32_t alignment)
{
	const uint64_t size = roundup((uint64_t)span->count + spare, (uint64_t)alignment);

	span->first = all->count;
	all->count += (uint32_t)size;
	return span->first + size <= UINT32_MAX;
}

bool jpeg_pipeline_add(struct jpeg_pipeline *pipeline, const struct jpeg_image *image)
{
	struct jpeg_image *added = &pipeline->image[pipeline->count], all = pipeline->all;

	if (pipeline->count == JPEG_BATCH_MAX ||
	    (uint64_t)image->mcus_x * image->mcus_y * image->mcu_blocks > UINT32_MAX / 64)
		return false;
	*added = *image;
#define SPAN(name)                                                                                 \
	if (!place_span(&added->name, &all.name, &added->name == &added->image ? 0 : 1,            \
	                &added->name == &added->image ? 1 : SPAN_ALIGNMENT))                       \
		return false;
	JPEG_SPANS(SPAN)
#undef SPAN
	for (uint32_t c = 0; c < added->components; c++)
		added->plane[c] += added->planes.first;
	pipeline->all = all;
	pipeline->count++;
	return true;
}

/* Returns the number of elements of a span; buffers and stages name the span by its offset. */
static uint32_t span_count(const struct jpeg_image *image, uint16_t span)
{
	return ((const struct jpeg_span *)(const void *)((const char *)image + span))->count;
}

struct jpeg_room jpeg_room(const struct jpeg_direction *direction, uint32_t width, uint32_t height,
                           uint32_t components)
{
	static const uint32_t factors[][2] = {{1, 1}, {2, 1}, {2, 2}};
	struct jpeg_room room = {.images = JPEG_BATCH_MAX};

	for (int f = 0; f < (components == 1 ? 1 : 3); f++) {
		struct jpeg_image image =
		    jpeg_frame(width, height, components, factors[f][0], factors[f][1]);
		uint64_t bytes = direction->tables;

		direction->count_spans(&image);
		for (uint32_t i = 0; i < direction->buffer_count; i++) {
			const struct jpeg_buffer *b = &direction->buffers[i];
			uint64_t elements =
			    (uint64_t)span_count(&image, b->span) + 2 * SPAN_ALIGNMENT;

			bytes += elements * b->bytes;
			room.images = (uint32_t)MIN(room.images, UINT32_MAX / elements);
		}
		room.bytes = MAX(room.bytes, bytes);
	}
	return room;
}

cl_int jpeg_pipeline_prepare(struct jpeg_pipeline *pipeline, cl_command_queue queue)
{
	struct growing_buffer *buffer = pipeline->buffer;
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; !code && i < pipeline->direction->buffer_count; i++) {
		const struct jpeg_buffer *b = &pipeline->direction->buffers[i];
		const uint64_t count = span_count(&pipeline->all, b->span);

		if (b->bytes)
			code =
			    growing_buffer_reserve(&buffer[i], pipeline->device, count * b->bytes);
	}
	if (!code)
		code = clEnqueueWriteBuffer(queue, buffer[JPEG_IMAGES].memory, CL_FALSE, 0,
		                            pipeline->count * sizeof *pipeline->image,
		                            pipeline->image, 0, NULL, NULL);
	return code;
}

static cl_int launch(const struct jpeg_pipeline *pipeline, cl_command_queue queue, uint32_t number,
                     struct jpeg_trace *trace)
{
	const struct jpeg_stage *stage = &pipeline->direction->stages[number];
	const size_t items[3] = {stage->items, 1, 1};
	uint32_t most[2] = {1, 1};
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; i < pipeline->count; i++) {
		const struct jpeg_image *image = &pipeline->image[i];
		uint32_t groups[2] = {0};

		if (stage->groups)
			stage->groups(image, groups);
		else
			groups[0] = jpeg_parts(span_count(image, stage->span), stage->each);
		most[0] = MAX(most[0], groups[0]);
		most[1] = MAX(most[1], groups[1]);
	}
	for (uint32_t i = 0; !code && i <= stage->again && i < most[0]; i++) {
		const size_t global[3] = {(size_t)most[0] * stage->items, most[1], pipeline->count};
		cl_event *event = NULL;

		if (trace && trace->count < JPEG_LAUNCHES_MAX) {
			trace->launch[trace->count].name = stage->name;
			event = &trace->launch[trace->count].event;
		}
		code = clEnqueueNDRangeKernel(queue, pipeline->kernel[number], 3, NULL, global,
		                              items, 0, NULL, event);
		if (!code && event) {
			object_add(OBJECT_EVENT, *event);
			trace->count++;
		}
	}
	return code;
}

cl_int jpeg_pipeline_run(struct jpeg_pipeline *pipeline, cl_command_queue queue, cl_mem samples,
                         struct jpeg_trace *trace)
{
	const struct jpeg_direction *direction = pipeline->direction;
	const unsigned made = growing_buffers_made();
	const bool set = pipeline->set == made;
	cl_int code = CL_SUCCESS;

	pipeline->set = made;
	for (uint32_t i = 0; !code && i < direction->stage_count; i++) {
		const struct jpeg_stage *stage = &direction->stages[i];
		bool inner = i > 0 && i + 1 < direction->stage_count;

		for (cl_uint a = 0; !code && (!a || stage->buffers[a - 1]); a++) {
			uint8_t b = a ? stage->buffers[a - 1] : JPEG_IMAGES;
			bool own = direction->buffers[b].bytes;

			if (!own || !set)
				code = clSetKernelArg(pipeline->kernel[i], a, sizeof samples,
				                      own ? &pipeline->buffer[b].memory : &samples);
		}
		if (!code)
			code = launch(pipeline, queue, i,
			              trace && trace->ends && inner ? NULL : trace);
	}
	if (code)
		pipeline->set = 0;
	return code;
}

cl_int jpeg_pipeline_results(const struct jpeg_pipeline *pipeline, cl_command_queue queue,
                             struct jpeg_result *results, cl_event *event)
{
	return clEnqueueReadBuffer(queue, pipeline->buffer[JPEG_RESULTS].memory, CL_FALSE, 0,
	                           pipeline->count * sizeof *results, results, 0, NULL, event);
}

void jpeg_groups_transform(const struct jpeg_image *image, uint32_t groups[2])
{
	uint32_t across = image->mcus_x * (image->components == 1 ? image->h : 2);

	groups[0] = jpeg_parts(across, JPEG_IDCT_BLOCKS);
	groups[1] = image->mcus_y * (image->v + (image->components == 3));
}
