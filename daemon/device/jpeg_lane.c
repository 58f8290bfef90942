/* The device memory that a stack takes is worked out ahead, from its images' size alone, for the
 * sampling factors that take most. A quarter of the lane's memory is for scans, of which each byte
 * takes up to three: itself, its place in the bit stream, and the subsequences. */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "device/lane.h"

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

struct lane_layout lane_layout(const struct plan *plan, const struct tile *tile)
{
	const uint64_t pixel = image_pixel_size(&plan->image), left = plan->halo_x * pixel,
	               result_row = tile->width * pixel, row = left + result_row + left;
	struct lane_layout l = {
	    .in_pitch = tile->form & TILE_DECODE ? (uint32_t)row_pitch(row) : tile->in_pitch,
	    .out_pitch =
	        tile->form & TILE_ENCODE ? (uint32_t)row_pitch(result_row) : tile->out_pitch,
	    .distance = tile->height + 2 * plan->halo_y + 1,
	    .row = row,
	    .result_row = result_row};

	l.halo = plan->halo_y * (uint64_t)l.in_pitch + left;
	l.image = l.result = roundup(l.halo, (uint64_t)ROW_ALIGNMENT);
	/* With crop the halo is the image's own edge. Kernels may read aligned words ahead of it.
	 */
	if (tile->form & TILE_DECODE && plan->chain.border == BORDER_CROP) {
		l.image = ROW_ALIGNMENT;
		l.result = l.image + l.halo;
	}
	l.in = roundup(l.result + (tile->height - 1) * (uint64_t)l.in_pitch + l.halo + result_row,
	               (uint64_t)ROW_ALIGNMENT);
	l.out = (tile->height - 1) * (uint64_t)l.out_pitch + result_row;
	return l;
}

/* The encoding of a stack's i-th image. */
static struct jpeg_encode_job encode_job(const struct plan *plan, const struct tile *tile,
                                         const struct jpeg_target *target, uint32_t i)
{
	const struct lane_layout l = lane_layout(plan, tile);
	struct jpeg_encode_job job = {.width = tile->width,
	                              .height = tile->height,
	                              .components = plan->image.bands,
	                              .h = target->h,
	                              .v = target->v,
	                              .samples = i * (uint64_t)l.distance * l.out_pitch,
	                              .pitch = l.out_pitch};

	memcpy(job.quantization, target->quantization, sizeof job.quantization);
	return job;
}

bool jpeg_work_take(struct jpeg_work *work, const void *from, const struct tile *tile,
                    const struct plan *plan)
{
	const struct jpeg_scan *scan = &work->scan;
	struct jpeg_encode_job job;

	memcpy(work, from, sizeof *work);
	job = encode_job(plan, tile, &work->target, 0);
	return (!(tile->form & TILE_DECODE) ||
	        (jpeg_scan_valid(scan) && scan->width == plan->image.width &&
	         scan->height == plan->image.height && scan->components == plan->image.bands &&
	         !scan->offset && scan->size == tile->in_size)) &&
	       (!(tile->form & TILE_ENCODE) || jpeg_encode_job_valid(&job));
}

void jpeg_lane_scratch(const struct plan *plan, const struct tile *high, uint64_t size[PLACES])
{
	memset(size, 0, PLACES * sizeof *size);
	for (uint32_t i = 0; i < plan->list.count; i++) {
		const struct step *step = &plan->list.step[i];
		struct view view;
		uint64_t bytes = region_pack(step, high, &view);

		if (step->dst >= PLACE_A)
			size[step->dst] = MAX(size[step->dst], bytes);
	}
}

/* The room that an image of a stack takes, and the number that may be in a batch. */
static struct jpeg_room find_room(const struct plan *plan, const struct tile *tile,
                                  uint64_t need[PLACES + 1])
{
	const struct lane_layout layout = lane_layout(plan, tile);
	struct jpeg_room decode = {.images = UINT32_MAX}, encode = decode;
	struct tile high = *tile;

	if (tile->form & TILE_DECODE)
		decode = jpeg_room(&jpeg_decode_direction, plan->image.width, plan->image.height,
		                   plan->image.bands);
	if (tile->form & TILE_ENCODE)
		encode =
		    jpeg_room(&jpeg_encode_direction, tile->width, tile->height, plan->image.bands);
	high.height = layout.distance;
	jpeg_lane_scratch(plan, &high, need);
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

uint32_t jpeg_lane_room(const struct jpeg_lane *lane, const struct plan *plan,
                        const struct tile *tile, uint64_t *scans)
{
	uint64_t need[PLACES + 1], bytes = 0, count;
	struct message_programs programs = {0};
	struct jpeg_room room;

	*scans = MIN(lane->memory / SCAN_SHARE, UINT32_MAX / 2);
	if (lane->programs)
		programs_count(lane->programs, &programs);
	if (!programs.jpeg || (uint64_t)plan->image.width * plan->image.height > JPEG_PIXELS_MAX)
		return 0;
	room = find_room(plan, tile, need);
	for (int i = 0; i <= PLACES; i++)
		bytes += need[i];
	count = MIN(room.images, limit(lane) / bytes);
	count = MIN(count, ROWS_MAX / lane_layout(plan, tile).distance);
	return (uint32_t)MIN(count, plan->stacks ? STACK_MAX : 1);
}

bool jpeg_lane_hold(struct jpeg_lane *lane, const struct plan *plan, const struct tile *tile,
                    uint32_t count)
{
	uint64_t need[PLACES + 1], bytes = 0;

	find_room(plan, tile, need);
	for (int i = 0; i <= PLACES; i++) {
		need[i] = MAX(need[i] * count, lane->held[i]);
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
	    device_buffer(programs_device(programs), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, PAGE,
	                  pair->results, &code);
	if (code)
		log_warning("cannot register memory for results: %s", opencl_error_name(code));
	return pair;
}

cl_int jpeg_lane_begin(struct jpeg_lane *lane, const struct plan *plan,
                       const struct lane_tile *tiles, uint32_t count)
{
	lane->pair = lane->pair ? lane->pair : pair_new(lane->programs);
	lane->plan = plan;
	lane->tiles = tiles;
	lane->count = count;
	lane->decode.ends = lane->encode.ends = true;
	return lane->pair ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

cl_int jpeg_lane_decode(struct jpeg_lane *lane, cl_command_queue queue, cl_mem samples)
{
	const struct lane_layout l = lane_layout(lane->plan, &lane->tiles->tile);
	struct jpeg_decoder *decoder = &lane->pair->decoder;
	struct jpeg_decode_job jobs[STACK_MAX];
	cl_int code;

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];

		jobs[i] = (struct jpeg_decode_job){
		    .scan = &t->work->scan,
		    .bytes = (const char *)t->arena->memory.in + t->tile.in,
		    .samples = l.image + i * (uint64_t)l.distance * l.in_pitch,
		    .pitch = l.in_pitch};
	}
	code = jpeg_decoder_enqueue(decoder, queue, jobs, lane->count, samples, &lane->decode);
	return code ? code
	            : jpeg_pipeline_results(&decoder->pipeline, queue, lane->pair->results, NULL);
}

cl_int jpeg_lane_encode(struct jpeg_lane *lane, cl_command_queue queue, cl_mem samples)
{
	struct jpeg_encoder *encoder = &lane->pair->encoder;
	struct jpeg_encode_job jobs[STACK_MAX];
	cl_int code;

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];

		jobs[i] = encode_job(lane->plan, &t->tile, &t->work->target, i);
	}
	code = jpeg_encoder_enqueue(encoder, queue, jobs, lane->count, samples, &lane->encode);
	if (!code)
		code = jpeg_pipeline_results(&encoder->pipeline, queue,
		                             lane->pair->results + STACK_MAX, &lane->told);
	object_add(OBJECT_EVENT, lane->told);
	return code;
}

cl_int jpeg_lane_read(struct jpeg_lane *lane, cl_command_queue queue)
{
	const struct jpeg_result *decoded = lane->pair->results, *encoded = decoded + STACK_MAX;
	const enum tile_form form = lane->tiles->tile.form;
	uint32_t last = 0;
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; i < lane->count; i++) {
		lane->flags[i] = (form & TILE_DECODE ? decoded[i].flags : 0) |
		                 (form & TILE_ENCODE ? encoded[i].flags : 0);
		if (form & TILE_ENCODE && !lane->flags[i] &&
		    encoded[i].size > lane->tiles[i].tile.out_size)
			lane->flags[i] = JPEG_FLAG_ROOM;
		lane->size[i] = !(form & TILE_ENCODE) || lane->flags[i] ? 0 : encoded[i].size;
		last = lane->size[i] ? i : last;
	}
	for (uint32_t i = 0; !code && i <= last && i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];
		cl_event *event = !lane->read[0] ? &lane->read[0]
		                  : i == last    ? &lane->read[1]
		                                 : NULL;

		if (!lane->size[i])
			continue;
		code = jpeg_encoder_read(&lane->pair->encoder, queue, i, lane->size[i],
		                         (char *)t->arena->memory.out + t->tile.out, event);
		if (!code && event)
			object_add(OBJECT_EVENT, *event);
	}
	return code;
}

void jpeg_lane_reset(struct jpeg_lane *lane)
{
	jpeg_trace_release(&lane->decode);
	jpeg_trace_release(&lane->encode);
	object_release(OBJECT_EVENT, lane->told);
	object_release(OBJECT_EVENT, lane->read[0]);
	object_release(OBJECT_EVENT, lane->read[1]);
	lane->told = lane->read[0] = lane->read[1] = NULL;
	lane->count = 0;
}

void jpeg_lane_fini(struct jpeg_lane *lane)
{
	pair_free(lane->pair);
	lane->pair = NULL;
	memset(lane->held, 0, sizeof lane->held);
}
