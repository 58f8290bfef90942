/* The device memory that a stack takes is worked out ahead, from its images' size alone, for the
 * sampling factors that take most. A quarter of the lane's memory is for scans, of which each byte
 * takes up to three: itself, its place in the bit stream, and the subsequences. */
#include "device/jpeg_lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cl/object_counts.h"

enum {
	SCAN_SHARE = 4 * 3,
	ROWS_MAX = 65535, /* of a stack: work-groups across or down that GPUs can number */
	PAGE = 4096,
};

/* Results of both directions lie in memory that is registered with the device: reads into other
 * memory may wait. */
struct jpeg_pair {
	struct jpeg_decoder decoder;
	struct jpeg_encoder encoder;
	struct jpeg_result *results; /* STACK_MAX of each direction */
	cl_mem registered;
};

struct jpeg_layout jpeg_layout(const struct plan *plan, const struct tile *tile)
{
	const uint64_t left = plan->halo_x * image_pixel_size(&plan->image);
	const uint64_t row = tile->width * image_pixel_size(&plan->image);
	struct jpeg_layout l = {
	    .in_pitch =
	        tile->form & TILE_DECODE ? (uint32_t)row_pitch(left + row + left) : tile->in_pitch,
	    .out_pitch = tile->form & TILE_ENCODE ? (uint32_t)row_pitch(row) : tile->out_pitch,
	    .distance = tile->height + 2 * plan->halo_y + 1};
	const uint64_t before = plan->halo_y * (uint64_t)l.in_pitch + left;

	/* With crop the halo is the image's own edge. Kernels may read aligned words ahead of it.
	 */
	if (plan->chain.border == BORDER_CROP) {
		l.image = ROW_ALIGNMENT;
		l.result = l.image + before;
	} else {
		l.image = (before + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
		l.result = l.image;
	}
	return l;
}

static bool target_valid(const struct jpeg_target *target, const struct plan *plan,
                         const struct tile *tile)
{
	struct jpeg_encode_job job = {.width = tile->width,
	                              .height = tile->height,
	                              .components = plan->image.bands,
	                              .h = target->h,
	                              .v = target->v,
	                              .pitch = jpeg_layout(plan, tile).out_pitch};

	memcpy(job.quantization, target->quantization, sizeof job.quantization);
	return jpeg_encode_job_valid(&job);
}

bool jpeg_work_take(struct jpeg_work *work, const void *from, const struct tile *tile,
                    const struct plan *plan)
{
	const struct jpeg_scan *scan = &work->scan;

	memcpy(work, from, sizeof *work);
	return (!(tile->form & TILE_DECODE) ||
	        (jpeg_scan_valid(scan) && scan->width == plan->image.width &&
	         scan->height == plan->image.height && scan->components == plan->image.bands &&
	         !scan->offset && scan->size == tile->in_size)) &&
	       (!(tile->form & TILE_ENCODE) || target_valid(&work->target, plan, tile));
}

/* The room that an image of a stack takes, and the number that may be in a batch. */
static struct jpeg_room find_room(const struct plan *plan, const struct tile *tile,
                                  uint64_t need[PLACES + 1])
{
	const struct jpeg_layout layout = jpeg_layout(plan, tile);
	struct jpeg_room decode = {.images = UINT32_MAX}, encode = decode;
	struct tile high = *tile;
	struct view view;

	if (tile->form & TILE_DECODE)
		decode =
		    jpeg_decoder_room(plan->image.width, plan->image.height, plan->image.bands);
	if (tile->form & TILE_ENCODE)
		encode = jpeg_encoder_room(tile->width, tile->height, plan->image.bands);
	high.height = layout.distance;
	memset(need, 0, (PLACES + 1) * sizeof *need);
	for (uint32_t i = 0; i < plan->list.count; i++) {
		const struct step *step = &plan->list.step[i];
		uint64_t bytes = region_pack(step, &high, &view);

		if (step->dst >= PLACE_A && bytes > need[step->dst])
			need[step->dst] = bytes;
	}
	need[PLACE_IN] = (uint64_t)layout.distance * layout.in_pitch;
	need[PLACE_OUT] = (uint64_t)layout.distance * layout.out_pitch;
	need[PLACES] = decode.bytes + encode.bytes;
	return encode.images < decode.images ? encode : decode;
}

/* Bytes of all buffers but those of scans; growing_buffer_reserve() takes an eighth more. */
static uint64_t limit(const struct jpeg_lane *lane)
{
	return lane->memory / 3 * 2;
}

static uint32_t min_u32(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

uint32_t jpeg_lane_room(const struct jpeg_lane *lane, const struct plan *plan,
                        const struct tile *tile, uint64_t *scans)
{
	uint64_t need[PLACES + 1], bytes = 0;
	struct message_programs programs = {0};
	struct jpeg_room room;
	uint32_t count;

	*scans = min_u32(lane->memory / SCAN_SHARE, UINT32_MAX / 2);
	if (lane->programs)
		programs_count(lane->programs, &programs);
	if (!programs.jpeg || (uint64_t)plan->image.width * plan->image.height > JPEG_PIXELS_MAX)
		return 0;
	room = find_room(plan, tile, need);
	for (int i = 0; i <= PLACES; i++)
		bytes += need[i];
	count = min_u32(room.images, limit(lane) / bytes);
	count = min_u32(count, ROWS_MAX / jpeg_layout(plan, tile).distance);
	return min_u32(count, plan->stacks ? STACK_MAX : 1);
}

bool jpeg_lane_hold(struct jpeg_lane *lane, const struct plan *plan, const struct tile *tile,
                    uint32_t count)
{
	uint64_t need[PLACES + 1], bytes = 0;

	find_room(plan, tile, need);
	for (int i = 0; i <= PLACES; i++) {
		need[i] *= count;
		if (need[i] < lane->held[i])
			need[i] = lane->held[i];
		bytes += need[i];
	}
	if (bytes > limit(lane))
		return false;
	memcpy(lane->held, need, sizeof need);
	return true;
}

static void pair_free(struct jpeg_pair *pair)
{
	if (!pair)
		return;
	object_release(OBJECT_BUFFER, pair->registered);
	free(pair->results);
	jpeg_decoder_fini(&pair->decoder);
	jpeg_encoder_fini(&pair->encoder);
	free(pair);
}

static struct jpeg_pair *pair_new(struct programs *programs)
{
	struct jpeg_pair *pair = calloc(1, sizeof *pair);
	cl_int code;

	if (!pair)
		return NULL;
	pair->results = aligned_alloc(PAGE, PAGE);
	_Static_assert((size_t)PAGE >= 2 * STACK_MAX * sizeof(struct jpeg_result), "room for all");
	if (!pair->results || jpeg_decoder_init(&pair->decoder, programs) ||
	    jpeg_encoder_init(&pair->encoder, programs)) {
		pair_free(pair);
		return NULL;
	}
	pair->registered =
	    object_add(OBJECT_BUFFER, clCreateBuffer(programs_device(programs)->context,
	                                             CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, PAGE,
	                                             pair->results, &code));
	if (code)
		log_warning("cannot register memory for results: %s", opencl_error_name(code));
	return pair;
}

/* Counts the events of a trace. */
static void add_events(const struct jpeg_trace *trace)
{
	for (uint32_t i = 0; i < trace->count; i++)
		object_add(OBJECT_EVENT, trace->launch[i].event);
	for (int i = 0; i < 2; i++)
		object_add(OBJECT_EVENT, trace->scans[i]);
}

static void release_events(struct jpeg_trace *trace)
{
	for (uint32_t i = 0; i < trace->count; i++)
		object_release(OBJECT_EVENT, trace->launch[i].event);
	for (int i = 0; i < 2; i++)
		object_release(OBJECT_EVENT, trace->scans[i]);
	*trace = (struct jpeg_trace){0};
}

cl_int jpeg_lane_begin(struct jpeg_lane *lane, enum tile_form form, uint32_t count)
{
	lane->pair = lane->pair ? lane->pair : pair_new(lane->programs);
	lane->form = form;
	lane->count = count;
	lane->scans = 0;
	lane->decode.ends = lane->encode.ends = true;
	return lane->pair ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

cl_int jpeg_lane_decode(struct jpeg_lane *lane, cl_command_queue queue,
                        const struct jpeg_decode_job *jobs, cl_mem samples)
{
	struct jpeg_pair *pair = lane->pair;
	cl_int code =
	    jpeg_decoder_enqueue(&pair->decoder, queue, jobs, lane->count, samples, &lane->decode);

	for (uint32_t i = 0; i < lane->count; i++)
		lane->scans += jobs[i].scan->size;
	add_events(&lane->decode);
	return code ? code
	            : jpeg_pipeline_results(&pair->decoder.pipeline, queue, pair->results, NULL);
}

cl_int jpeg_lane_encode(struct jpeg_lane *lane, cl_command_queue queue,
                        const struct jpeg_encode_job *jobs, cl_mem samples, cl_event *last)
{
	struct jpeg_pair *pair = lane->pair;
	cl_int code =
	    jpeg_encoder_enqueue(&pair->encoder, queue, jobs, lane->count, samples, &lane->encode);

	add_events(&lane->encode);
	if (!code)
		code = jpeg_pipeline_results(&pair->encoder.pipeline, queue,
		                             pair->results + STACK_MAX, last);
	if (!code)
		object_add(OBJECT_EVENT, *last);
	return code;
}

cl_int jpeg_lane_read(struct jpeg_lane *lane, cl_command_queue queue, void *const *to,
                      const uint64_t *room)
{
	const struct jpeg_result *decoded = lane->pair->results, *encoded = decoded + STACK_MAX;
	const bool encodes = lane->form & TILE_ENCODE;
	uint32_t last = 0;
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; i < lane->count; i++) {
		lane->flags[i] = (lane->form & TILE_DECODE ? decoded[i].flags : 0) |
		                 (encodes ? encoded[i].flags : 0);
		if (encodes && !lane->flags[i] && encoded[i].size > room[i])
			lane->flags[i] = JPEG_FLAG_ROOM;
		lane->size[i] = !encodes || lane->flags[i] ? 0 : encoded[i].size;
		last = lane->size[i] ? i : last;
	}
	for (uint32_t i = 0; !code && i <= last && i < lane->count; i++) {
		cl_event *event = !lane->read[0] ? &lane->read[0]
		                  : i == last    ? &lane->read[1]
		                                 : NULL;

		if (!lane->size[i])
			continue;
		code =
		    jpeg_encoder_read(&lane->pair->encoder, queue, i, lane->size[i], to[i], event);
		if (!code && event)
			object_add(OBJECT_EVENT, *event);
	}
	return code;
}

void jpeg_lane_reset(struct jpeg_lane *lane)
{
	release_events(&lane->decode);
	release_events(&lane->encode);
	for (int i = 0; i < 2; i++) {
		object_release(OBJECT_EVENT, lane->read[i]);
		lane->read[i] = NULL;
	}
	lane->count = 0;
}

void jpeg_lane_fini(struct jpeg_lane *lane)
{
	pair_free(lane->pair);
	lane->pair = NULL;
	memset(lane->held, 0, sizeof lane->held);
}
