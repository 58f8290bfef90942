/* A lane enqueues all commands of its tiles at once: upload, the plan's launches, download. Nothing
 * here waits; the events of the last commands tell when the tiles are finished, and the worker
 * polls them. Callbacks would be no cheaper: NVIDIA's driver calls them from a thread that blocks
 * others while copies run. On a CPU, tiles of pixels go to the pool instead.
 *
 * Several tiles are filtered as a stack (step.h). Tiles at equal distances in one arena form a run,
 * which is one rectangular copy. The first run is copied on the kernels' queue, which takes times
 * (profiling). Profiling costs more than a small copy, so all other runs are copied on a queue
 * without it, and the first run's time represents them.
 *
 * Scans of JPEGs are decoded into the input buffer, with a halo around each image that
 * KERNEL_EXTEND fills, and encoded from the output buffer. The length of the result is known only
 * at the end, so the lane's last commands are enqueued when it is polled. */
#include "device/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cl/object_counts.h"
#include "device/plan/launch.h"

/* A launched step. */
struct command {
	const struct step *step;
	cl_event event;
};

/* Consecutive tiles of an arena at equal distances. */
struct run {
	uint32_t first, count;
	uint64_t in_stride, out_stride; /* bytes; a single tile: 0 */
};

struct lane {
	const struct device *device;
	struct pool *pool;             /* NULL: pixels are copied */
	cl_command_queue queue;        /* with profiling */
	cl_command_queue quiet;        /* without; NULL if there is a pool */
	struct growing_buffer in, out; /* of scans and, without a pool, pixels */
	struct growing_buffer scratch[SCRATCHES];
	struct view view[PLACES]; /* of the tiles in flight */
	const struct plan *plan;
	struct lane_tile tiles[STACK_MAX];
	uint32_t count; /* 0: idle */
	bool narrow;    /* a single tile that shares its slot with others beside it */
	struct stack stack;
	struct tile high; /* the first tile, with the height of the stack */
	struct run runs[STACK_MAX];
	uint32_t run_count;
	cl_event last, last_quiet; /* all is finished after these; NULL: none */
	cl_int status;             /* of the first failure */
	cl_event upload, download;
	struct command launch[LAUNCHES_MAX];
	uint32_t launches;
	enum tile_form form;      /* of all tiles */
	bool reading;             /* encoded results are being copied */
	void *results[STACK_MAX]; /* for their bytes: the list of arenas may move */
	struct jpeg_lane jpeg;
	struct pool_work work;
	bool pooled; /* the tile is the pool's */
};

static cl_int make_queue(const struct lane *lane, cl_command_queue_properties properties,
                         cl_command_queue *queue)
{
	cl_int code;

	*queue =
	    object_add(OBJECT_QUEUE, clCreateCommandQueue(lane->device->context, lane->device->id,
	                                                  properties, &code));
	if (code)
		log_error("cannot create a command queue: %s", opencl_error_name(code));
	return code;
}

enum error lane_new(const struct device *device, struct pool *pool, struct lane **lane)
{
	struct lane *l = calloc(1, sizeof *l);
	cl_int code;

	*lane = l;
	if (!l)
		return ERR_MEMORY;
	l->device = device;
	l->pool = pool;
	code = make_queue(l, CL_QUEUE_PROFILING_ENABLE, &l->queue);
	if (!code && !pool)
		code = make_queue(l, 0, &l->quiet);
	if (!code)
		return ERR_OK;
	lane_free(lane);
	return ERR_DEVICE;
}

static void event_release(cl_event *event)
{
	object_release(OBJECT_EVENT, *event);
	*event = NULL;
}

/* Releases the tiles' events and makes the lane idle. */
static void lane_reset(struct lane *lane)
{
	event_release(&lane->last);
	event_release(&lane->last_quiet);
	event_release(&lane->upload);
	event_release(&lane->download);
	for (uint32_t i = 0; i < lane->launches; i++)
		event_release(&lane->launch[i].event);
	jpeg_lane_reset(&lane->jpeg);
	lane->launches = 0;
	lane->plan = NULL;
	lane->count = 0;
	lane->form = TILE_PIXELS;
	lane->reading = false;
}

void lane_wait(struct lane *lane)
{
	if (lane->count && lane->pooled)
		pool_wait(lane->pool, &lane->work);
	clFinish(lane->queue);
	if (lane->quiet)
		clFinish(lane->quiet);
}

void lane_free(struct lane **lane)
{
	struct lane *l = *lane;

	if (!l)
		return;
	if (l->queue) {
		lane_wait(l);
		lane_reset(l);
		object_release(OBJECT_QUEUE, l->queue);
	}
	object_release(OBJECT_QUEUE, l->quiet);
	lane_rest(l);
	free(l);
	*lane = NULL;
}

void lane_rest(struct lane *lane)
{
	growing_buffer_free(&lane->in);
	growing_buffer_free(&lane->out);
	for (int i = 0; i < SCRATCHES; i++)
		growing_buffer_free(&lane->scratch[i]);
	jpeg_lane_fini(&lane->jpeg);
}

void lane_trim(struct lane *lane, uint64_t max)
{
	for (int i = 0; i < SCRATCHES; i++)
		if (lane->scratch[i].size > max)
			growing_buffer_free(&lane->scratch[i]);
}

bool lane_notifies(const struct lane *lane)
{
	return lane->pooled;
}

void lane_allow_jpeg(struct lane *lane, struct programs *programs, uint64_t memory)
{
	lane->jpeg.programs = programs;
	lane->jpeg.memory = memory;
}

uint32_t lane_jpeg_room(const struct lane *lane, const struct plan *plan, const struct tile *tile,
                        uint64_t *scans)
{
	uint32_t room = jpeg_lane_room(&lane->jpeg, plan, tile, scans);

	return lane->pool && tile->form != TILE_JPEG && room ? 1 : room;
}

bool lane_idle(const struct lane *lane)
{
	return !lane->count;
}

/* True if the event is complete or has failed; notes a failure. */
static bool has_happened(struct lane *lane, cl_event event)
{
	cl_int status = CL_COMPLETE, code;

	if (!event)
		return true;
	code =
	    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
	if (code)
		status = code;
	if (status < 0 && !lane->status)
		lane->status = status;
	return status <= CL_COMPLETE;
}

bool lane_finished(struct lane *lane)
{
	uint64_t room[STACK_MAX];
	cl_int code;

	if (lane->count && lane->pooled)
		return pool_done(&lane->work);
	if (!lane->count || !has_happened(lane, lane->last) ||
	    !has_happened(lane, lane->last_quiet))
		return false;
	if (!lane->form || lane->status)
		return true;
	if (!lane->reading) {
		for (uint32_t i = 0; i < lane->count; i++)
			room[i] = lane->tiles[i].tile.out_size;
		code = jpeg_lane_read(&lane->jpeg, lane->queue, lane->results, room);
		if (!code)
			code = clFlush(lane->queue);
		if (code)
			lane->status = code;
		lane->reading = true;
	}
	return has_happened(lane, lane->jpeg.read[0]) && has_happened(lane, lane->jpeg.read[1]);
}

/* Bytes in a row of the tiles' results, expanded by x pixels on each side. */
static uint64_t row_bytes(const struct lane *lane, uint64_t x, enum pixel_type type)
{
	return (lane->high.width + 2 * x) * lane->plan->image.bands * pixel_type_size(type);
}

static uint64_t align_up(uint64_t n)
{
	return (n + ROW_ALIGNMENT - 1) & ~(uint64_t)(ROW_ALIGNMENT - 1);
}

/* The bytes of the arena's input that a tile reads, rounded out to the alignment: kernels load
 * aligned words. *before: from their start to the tile's first sample. */
static void input_span(const struct lane *lane, uint64_t *before, uint64_t *size)
{
	const struct plan *plan = lane->plan;
	uint64_t pitch = lane->high.in_pitch, above = (uint64_t)plan->halo_y * pitch;
	uint64_t row = row_bytes(lane, plan->halo_x, plan->image.type);
	uint64_t left = (row - row_bytes(lane, 0, plan->image.type)) / 2;

	*before = align_up(above + left);
	*size = align_up(*before + (lane->stack.height - 1) * pitch + above + row - left);
}

/* The bytes of the arena's output that a tile writes. */
static uint64_t output_span(const struct lane *lane)
{
	return (uint64_t)(lane->stack.height - 1) * lane->high.out_pitch +
	       row_bytes(lane, 0, lane->plan->image.type);
}

/* True if other tiles lie beside this one in its slot. */
static bool is_narrow(const struct plan *plan, const struct tile *tile)
{
	return tile->width < plan->width;
}

bool lane_stacks(const struct plan *plan, const struct tile *a, const struct tile *b)
{
	return plan->stacks && !is_narrow(plan, a) && 2 * plan->halo_y <= a->height &&
	       a->form == b->form && a->x0 == b->x0 && a->width == b->width &&
	       a->height == b->height && a->in_pitch == b->in_pitch && a->out_pitch == b->out_pitch;
}

/* Uses the arena itself for input, or the lane's own buffer, with the arena's pitch or as scans are
 * decoded. The last tile gets as much room as the others, because some drivers require it for a
 * rectangular copy. */
static cl_int use_input(struct lane *lane)
{
	const struct tile *tile = &lane->tiles[0].tile;
	const struct jpeg_layout l = jpeg_layout(lane->plan, tile);
	const uint64_t rows = (uint64_t)lane->count * lane->stack.distance;
	struct view *view = &lane->view[PLACE_IN];
	uint64_t size;
	cl_int code;

	*view = (struct view){.pitch = l.in_pitch};
	if (lane->pool && !(lane->form & TILE_DECODE)) {
		view->buffer = lane->tiles[0].arena->in;
		view->origin = tile->in;
		return CL_SUCCESS;
	}
	code = growing_buffer_reserve(&lane->in, lane->device, rows * l.in_pitch);
	view->buffer = lane->in.memory;
	if (lane->form & TILE_DECODE)
		view->origin = l.result;
	else
		input_span(lane, &view->origin, &size);
	return code;
}

/* Does the same for output. */
static cl_int use_output(struct lane *lane)
{
	const struct tile *tile = &lane->tiles[0].tile;
	const struct jpeg_layout l = jpeg_layout(lane->plan, tile);
	const uint64_t rows = (uint64_t)lane->count * lane->stack.distance;
	struct view *view = &lane->view[PLACE_OUT];
	cl_int code;

	*view = (struct view){.pitch = l.out_pitch};
	if (lane->pool && !(lane->form & TILE_ENCODE)) {
		view->buffer = lane->tiles[0].arena->out;
		view->origin = tile->out;
		return CL_SUCCESS;
	}
	code = growing_buffer_reserve(&lane->out, lane->device, rows * l.out_pitch);
	view->buffer = lane->out.memory;
	return code;
}

/* Makes the scratch buffers large enough for every step before the first is enqueued: growing a
 * buffer loses its content. */
static cl_int reserve_scratch(struct lane *lane)
{
	uint64_t size[SCRATCHES] = {0};
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; i < lane->plan->list.count; i++) {
		const struct step *step = &lane->plan->list.step[i];
		struct view view;
		uint64_t needed = region_pack(step, &lane->high, &view);

		if (step->dst >= PLACE_A && needed > size[step->dst - PLACE_A])
			size[step->dst - PLACE_A] = needed;
	}
	for (int i = 0; !code && i < SCRATCHES; i++) {
		code = growing_buffer_reserve(&lane->scratch[i], lane->device, size[i]);
		lane->view[PLACE_A + i].buffer = lane->scratch[i].memory;
	}
	return code;
}

/* True if tile i continues the run: same arena, same strides. */
static bool continues(const struct lane *lane, const struct run *run, uint32_t i)
{
	const struct lane_tile *first = &lane->tiles[run->first], *t = &lane->tiles[i];
	uint64_t before, size, in = t->tile.in - lane->tiles[i - 1].tile.in,
	                       out = t->tile.out - lane->tiles[i - 1].tile.out;

	input_span(lane, &before, &size);
	if (lane->form || t->arena != first->arena || t->tile.in < first->tile.in ||
	    t->tile.out < first->tile.out || in < size || out < output_span(lane))
		return false;
	return run->count == 1 || (in == run->in_stride && out == run->out_stride);
}

static void find_runs(struct lane *lane)
{
	struct run *run = lane->runs;

	*run = (struct run){.count = 1};
	for (uint32_t i = 1; i < lane->count; i++) {
		if (!continues(lane, run, i)) {
			*++run = (struct run){.first = i, .count = 1};
			continue;
		}
		run->in_stride = lane->tiles[i].tile.in - lane->tiles[i - 1].tile.in;
		run->out_stride = lane->tiles[i].tile.out - lane->tiles[i - 1].tile.out;
		run->count++;
	}
	lane->run_count = (uint32_t)(run - lane->runs) + 1;
}

/* Uploads a tile that shares its slot with others, without the bytes beside it. */
static cl_int write_narrow(struct lane *lane)
{
	const struct lane_tile *t = &lane->tiles[0];
	const size_t pitch = lane->high.in_pitch, above = lane->plan->halo_y;
	const size_t row = row_bytes(lane, lane->plan->halo_x, lane->plan->image.type);
	const size_t left = (row - row_bytes(lane, 0, lane->plan->image.type)) / 2;
	const size_t before = above * pitch + left;
	const size_t to[3] = {lane->view[PLACE_IN].origin - before, 0, 0}, zero[3] = {0, 0, 0},
	             region[3] = {row, lane->stack.height + 2 * above, 1};

	return clEnqueueWriteBufferRect(
	    lane->queue, lane->in.memory, CL_FALSE, to, zero, region, pitch, 0, pitch, 0,
	    (const char *)t->arena->memory.in + t->tile.in - before, 0, NULL, &lane->upload);
}

static cl_int read_narrow(struct lane *lane)
{
	const struct lane_tile *t = &lane->tiles[0];
	const size_t pitch = lane->high.out_pitch, zero[3] = {0, 0, 0},
	             region[3] = {row_bytes(lane, 0, lane->plan->image.type), lane->stack.height,
	                          1};

	return clEnqueueReadBufferRect(
	    lane->queue, lane->out.memory, CL_FALSE, zero, zero, region, pitch, 0, pitch, 0,
	    (char *)t->arena->memory.out + t->tile.out, 0, NULL, &lane->download);
}

static cl_int enqueue_write(struct lane *lane, const struct run *run, cl_command_queue queue,
                            cl_event *event)
{
	const struct lane_tile *first = &lane->tiles[run->first];
	const size_t apart = (size_t)lane->stack.distance * lane->high.in_pitch;
	uint64_t before, size;

	input_span(lane, &before, &size);

	const size_t to[3] = {0, run->first, 0}, zero[3] = {0, 0, 0},
	             region[3] = {size, run->count, 1};

	return clEnqueueWriteBufferRect(
	    queue, lane->in.memory, CL_FALSE, to, zero, region, apart, 0, run->in_stride, 0,
	    (const char *)first->arena->memory.in + first->tile.in - before, 0, NULL, event);
}

/* Enqueues the download of a run. after: an event to wait for, or NULL. */
static cl_int enqueue_read(struct lane *lane, const struct run *run, cl_command_queue queue,
                           cl_event after, cl_event *event)
{
	const struct lane_tile *first = &lane->tiles[run->first];
	const size_t apart = (size_t)lane->stack.distance * lane->high.out_pitch;
	const size_t from[3] = {0, run->first, 0}, zero[3] = {0, 0, 0},
	             region[3] = {output_span(lane), run->count, 1};

	return clEnqueueReadBufferRect(queue, lane->out.memory, CL_FALSE, from, zero, region, apart,
	                               0, run->out_stride, 0,
	                               (char *)first->arena->memory.out + first->tile.out,
	                               after ? 1 : 0, after ? &after : NULL, event);
}

/* Uploads all runs; later commands on the lane's queue wait for them. */
static cl_int upload(struct lane *lane)
{
	cl_int code = lane->narrow
	                  ? write_narrow(lane)
	                  : enqueue_write(lane, &lane->runs[0], lane->queue, &lane->upload);
	cl_event last = NULL;

	object_add(OBJECT_EVENT, lane->upload);
	for (uint32_t i = 1; !code && i < lane->run_count; i++)
		code = enqueue_write(lane, &lane->runs[i], lane->quiet,
		                     i + 1 == lane->run_count ? &last : NULL);
	object_add(OBJECT_EVENT, last);
	if (!code && last)
		code = clFlush(lane->quiet);
	if (!code && last)
		code = clEnqueueMarkerWithWaitList(lane->queue, 1, &last, NULL);
	event_release(&last);
	return code;
}

static cl_event last_launch(const struct lane *lane)
{
	return lane->launch[lane->launches - 1].event;
}

static cl_int download(struct lane *lane)
{
	cl_event made = last_launch(lane);
	cl_int code = lane->narrow
	                  ? read_narrow(lane)
	                  : enqueue_read(lane, &lane->runs[0], lane->queue, NULL, &lane->download);

	object_add(OBJECT_EVENT, lane->download);
	for (uint32_t i = 1; !code && i < lane->run_count; i++)
		code = enqueue_read(lane, &lane->runs[i], lane->quiet, i == 1 ? made : NULL,
		                    i + 1 == lane->run_count ? &lane->last_quiet : NULL);
	object_add(OBJECT_EVENT, lane->last_quiet);
	return code;
}

static cl_int decode_scans(struct lane *lane)
{
	const struct jpeg_layout l = jpeg_layout(lane->plan, &lane->tiles[0].tile);
	struct jpeg_decode_job jobs[STACK_MAX];

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];

		jobs[i] = (struct jpeg_decode_job){
		    .scan = &t->work->scan,
		    .bytes = (const char *)t->arena->memory.in + t->tile.in,
		    .samples = l.image + i * (uint64_t)l.distance * l.in_pitch,
		    .pitch = l.in_pitch};
	}
	return jpeg_lane_decode(&lane->jpeg, lane->queue, jobs, lane->in.memory);
}

static cl_int encode_scans(struct lane *lane)
{
	const struct jpeg_layout l = jpeg_layout(lane->plan, &lane->tiles[0].tile);
	struct jpeg_encode_job jobs[STACK_MAX];

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];
		const struct tile *tile = &t->tile;
		const struct jpeg_target *target = &t->work->target;

		lane->results[i] = (char *)t->arena->memory.out + tile->out;
		jobs[i] =
		    (struct jpeg_encode_job){.width = tile->width,
		                             .height = tile->height,
		                             .components = lane->plan->image.bands,
		                             .h = target->h,
		                             .v = target->v,
		                             .samples = i * (uint64_t)l.distance * l.out_pitch,
		                             .pitch = l.out_pitch};
		memcpy(jobs[i].quantization, target->quantization, sizeof jobs[i].quantization);
	}
	return jpeg_lane_encode(&lane->jpeg, lane->queue, jobs, lane->out.memory, &lane->last);
}

/* True if any tile needs this step. */
static bool step_needed(const struct lane *lane, const struct step *step)
{
	for (uint32_t i = 0; i < lane->count; i++)
		if (plan_step_needed(lane->plan, step, &lane->tiles[i].tile))
			return true;
	return false;
}

static cl_int enqueue_step(struct lane *lane, const struct step *step)
{
	const struct stack *stack = lane->count > 1 ? &lane->stack : NULL;
	struct command *command = &lane->launch[lane->launches];
	cl_int code;

	if (step->dst >= PLACE_A && step->kernel != KERNEL_EXTEND)
		region_pack(step, &lane->high, &lane->view[step->dst]);
	command->step = step;
	code = launch_step(step, lane->device, &lane->high, stack, lane->queue, lane->view,
	                   &command->event);
	object_add(OBJECT_EVENT, command->event);
	lane->launches++;
	return code;
}

static cl_int enqueue_all(struct lane *lane)
{
	const struct step *border = &lane->plan->border;
	cl_int code = CL_SUCCESS;

	if (lane->form & TILE_DECODE) {
		code = decode_scans(lane);
		if (!code && border->kernel != KERNELS)
			code = enqueue_step(lane, border);
	} else if (!lane->pool) {
		code = upload(lane);
	}
	for (uint32_t i = 0; !code && i < lane->plan->list.count; i++)
		if (step_needed(lane, &lane->plan->list.step[i]))
			code = enqueue_step(lane, &lane->plan->list.step[i]);
	if (!code && lane->form & TILE_ENCODE) {
		code = encode_scans(lane);
	} else if (!code) {
		code = lane->pool ? CL_SUCCESS : download(lane);
		if (!code) {
			lane->last = lane->pool ? last_launch(lane) : lane->download;
			clRetainEvent(object_add(OBJECT_EVENT, lane->last));
		}
	}
	if (!code)
		code = clFlush(lane->queue);
	if (!code && lane->last_quiet)
		code = clFlush(lane->quiet);
	return code;
}

/* Enqueues all commands of the tiles, or adds the tile to the pool's work. */
static cl_int start_tiles(struct lane *lane)
{
	const struct tile *first = &lane->tiles[0].tile;
	struct pool_work *work = &lane->work;
	cl_int code = CL_SUCCESS;

	if (lane->form && !jpeg_lane_hold(&lane->jpeg, lane->plan, first, lane->count)) {
		lane_rest(lane);
		if (!jpeg_lane_hold(&lane->jpeg, lane->plan, first, lane->count))
			return CL_MEM_OBJECT_ALLOCATION_FAILURE;
	}
	if (lane->form)
		code = jpeg_lane_begin(&lane->jpeg, lane->form, lane->count);
	if (!code)
		code = use_input(lane);
	if (!code)
		code = use_output(lane);
	if (!code)
		code = reserve_scratch(lane);
	if (code || !lane->pooled)
		return code ? code : enqueue_all(lane);
	*work = (struct pool_work){.tile = &lane->high, .views = lane->view};
	for (uint32_t i = 0; i < lane->plan->list.count; i++)
		if (step_needed(lane, &lane->plan->list.step[i]))
			work->step[work->steps++] = &lane->plan->list.step[i];
	pool_add(lane->pool, work);
	return CL_SUCCESS;
}

cl_int lane_start(struct lane *lane, const struct plan *plan, const struct lane_tile *tiles,
                  uint32_t count)
{
	const struct tile *first = &tiles[0].tile;
	struct stack *stack = &lane->stack;
	cl_int code;

	lane->plan = plan;
	lane->count = count;
	lane->status = CL_SUCCESS;
	for (uint32_t i = 0; i < count; i++) {
		lane->tiles[i] = tiles[i];
		stack->y0[i] = tiles[i].tile.y0;
	}
	lane->form = first->form;
	lane->narrow = is_narrow(plan, first);
	stack->count = count;
	stack->height = first->height;
	/* This covers the longest span: a tile with its halo on both sides and up to a row of
	 * alignment. */
	stack->distance = first->height + 2 * plan->halo_y + 1;
	lane->high = *first;
	lane->high.height += (count - 1) * stack->distance;
	find_runs(lane);
	lane->pooled = lane->pool && lane->form == TILE_PIXELS;
	code = start_tiles(lane);
	if (code) {
		lane->pooled = false;
		lane_wait(lane);
		lane_reset(lane);
		if (lane->jpeg.pair) /* which may have taken all memory */
			lane_rest(lane);
	}
	return code;
}

/* The time from the start of a command to the end of another by the device's clock, in
 * nanoseconds. The other may be NULL: that of one command. */
static uint64_t time_between(cl_event first, cl_event last)
{
	uint64_t ns;

	return first && !opencl_time_between(first, last ? last : first, &ns) ? ns : 0;
}

static void report_launch(struct message_tile_done *done, enum kernel kernel, uint64_t ns,
                          uint64_t bytes)
{
	done->launch[done->launches].kernel = kernel;
	done->launch[done->launches].ns = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	done->launch[done->launches++].bytes = bytes;
}

/* Reports all launches of a direction as one. */
static void report_direction(const struct jpeg_trace *trace, struct message_tile_done *done,
                             enum kernel kernel, uint64_t bytes)
{
	report_launch(done, kernel,
	              time_between(trace->launch[0].event, trace->launch[trace->count - 1].event),
	              bytes);
}

/* Reports the launches, which are of all tiles together. */
static void report_launches(const struct lane *lane, struct message_tile_done *done)
{
	const struct jpeg_lane *j = &lane->jpeg;
	const struct image *image = &lane->plan->image;
	const struct pool_work *work = &lane->work;
	const uint32_t count = lane->pooled ? work->steps : lane->launches;
	uint64_t result = row_bytes(lane, 0, image->type) * lane->stack.height, encoded = 0;

	for (uint32_t i = 0; i < lane->count && lane->form; i++)
		encoded += j->size[i];
	if (lane->form & TILE_DECODE)
		report_direction(&j->decode, done, KERNEL_JPEG_DECODE,
		                 j->scans + lane->count * image_size(image));
	for (uint32_t i = 0; i < count; i++) {
		const struct step *step = lane->pooled ? work->step[i] : lane->launch[i].step;

		report_launch(done, step->kernel,
		              lane->pooled ? work->ns[i]
		                           : time_between(lane->launch[i].event, NULL),
		              lane->count * region_bytes(step, &lane->tiles[0].tile));
	}
	if (lane->form & TILE_ENCODE)
		report_direction(&j->encode, done, KERNEL_JPEG_ENCODE,
		                 lane->count * result + encoded);
}

/* Reports the copies, whose bytes are the same for all tiles of pixels. */
static void report_copies(const struct lane *lane, struct message_tile_done *done)
{
	const struct jpeg_lane *j = &lane->jpeg;
	uint64_t before;

	if (lane->form & TILE_DECODE) {
		done->upload_ns =
		    time_between(j->decode.scans[0], j->decode.scans[1]) / lane->count;
	} else if (!lane->pool) {
		input_span(lane, &before, &done->upload_bytes);
		done->upload_ns = time_between(lane->upload, NULL) / lane->runs[0].count;
	}
	if (lane->form & TILE_ENCODE) {
		done->download_ns = time_between(j->read[0], j->read[1]) / lane->count;
	} else if (!lane->pool) {
		done->download_bytes = output_span(lane);
		done->download_ns = time_between(lane->download, NULL) / lane->runs[0].count;
	}
}

uint32_t lane_finish(struct lane *lane, struct message_tile_done done[STACK_MAX])
{
	uint32_t count = lane->count;

	if (lane->pooled)
		lane->status = lane->work.status;
	done[0] = (struct message_tile_done){.stack = count};
	if (lane->status) {
		done[0].error = ERR_DEVICE;
		done[0].cl_error = lane->status;
	} else {
		report_launches(lane, &done[0]);
		report_copies(lane, &done[0]);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			done[i] = done[0];
		done[i].place = i;
		done[i].job = lane->tiles[i].tile.job;
		done[i].index = lane->tiles[i].tile.index;
		if (!lane->form || lane->status)
			continue;
		done[i].jpeg_flags = lane->jpeg.flags[i];
		if (lane->form & TILE_DECODE)
			done[i].upload_bytes = lane->tiles[i].tile.in_size;
		if (lane->form & TILE_ENCODE)
			done[i].size = done[i].download_bytes = lane->jpeg.size[i];
	}
	lane_reset(lane);
	return count;
}
