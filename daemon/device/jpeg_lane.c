/* The device memory of a stack is computed in advance from its images' size alone, for the sampling
 * factors that need most. A quarter of the lane's memory is for scans. Each byte of a scan takes up
 * to three: itself, its place in the bit stream, and the subsequences. */
#include <string.h>
#include <sys/param.h>

#include "device/lane.h"

enum {
	SCAN_SHARE = 4 * 3,
	ROWS_MAX = 65535, /* per stack: work-groups across or down that GPUs can number */
};

/* The columns (or rows, down) of a buffer, counted in the image: those that are read, with the
 * halo, and if the image is decoded all of it. */
static struct extent buffered(const struct plan *plan, const struct tile *read, bool decodes,
                              bool down)
{
	const int32_t halo = (int32_t)(down ? plan->halo_y : plan->halo_x);
	const int32_t first = (int32_t)(down ? read->y0 : read->x0);
	const int32_t begin = first - halo;
	const int32_t end = first + (int32_t)(down ? read->height : read->width) + halo;
	const int32_t side = (int32_t)(down ? plan->image.height : plan->image.width);

	if (!decodes)
		return (struct extent){begin, (uint32_t)(end - begin)};
	return (struct extent){MIN(begin, 0), (uint32_t)(MAX(end, side) - MIN(begin, 0))};
}

struct lane_layout lane_layout(const struct plan *plan, const struct tile *tile)
{
	const struct step whole = {.stage = plan->geometry.resizes ? STAGE_SOURCE : STAGE_RESULT,
	                           .geometry = &plan->geometry};
	const struct tile read = step_tile(&whole, tile);
	const bool decodes = tile->form & TILE_DECODE;
	const struct extent columns = buffered(plan, &read, decodes, false),
	                    rows = buffered(plan, &read, decodes, true);
	const int64_t pixel = (int64_t)image_pixel_size(&plan->image);
	struct lane_layout l = {
	    .in_pitch =
	        decodes ? (uint32_t)row_pitch(columns.count * (uint64_t)pixel) : tile->in_pitch,
	    .out_pitch = tile->form & TILE_ENCODE
	                     ? (uint32_t)row_pitch(tile->width * (uint64_t)pixel)
	                     : tile->out_pitch,
	    .distance = MAX(rows.count, tile->height) + 1,
	    .row = columns.count * (uint64_t)pixel,
	    .result_row = tile->width * (uint64_t)pixel};
	const int64_t pitch = l.in_pitch;
	/* From the buffer's first pixel to the image's (0, 0), and on to the first read one. */
	const int64_t image = -rows.first * pitch - columns.first * pixel,
	              first = (int32_t)read.y0 * pitch + (int32_t)read.x0 * pixel;

	l.halo = plan->halo_y * (uint64_t)pitch + plan->halo_x * (uint64_t)pixel;
	l.result = roundup(l.halo, (uint64_t)ROW_ALIGNMENT);
	if (decodes) {
		/* Kernels may read aligned words before it. */
		l.image = MAX(roundup((uint64_t)image, (uint64_t)ROW_ALIGNMENT), ROW_ALIGNMENT);
		l.result = (uint64_t)((int64_t)l.image + first);
	}
	l.in = roundup(l.result + (uint64_t)((rows.count - 1) * pitch - image - first) + l.row,
	               (uint64_t)ROW_ALIGNMENT);
	l.out = (tile->height - 1) * (uint64_t)l.out_pitch + l.result_row;
	return l;
}

struct jpeg_encode_job jpeg_lane_job(const struct plan *plan, const struct tile *tile,
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
	job = jpeg_lane_job(plan, tile, &work->target, 0);
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

/* Returns the bytes of all buffers except scans; growing_buffer_reserve() adds an eighth. */
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
	if (plan->stacks)
		count = MIN(count, ROWS_MAX / lane_layout(plan, tile).distance);
	return (uint32_t)MIN(count, STACK_MAX);
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
