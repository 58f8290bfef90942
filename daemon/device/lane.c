/* A lane enqueues all commands of its tiles at once: upload, the plan's launches, download. Nothing
 * here waits; the worker polls the events of the last commands. Callbacks would be no cheaper,
 * because NVIDIA's driver calls them from a thread that blocks others while copies run. On a CPU,
 * tiles of pixels go to the pool instead.
 *
 * Several tiles are filtered as a stack (step.h), or, if a step cannot take one, one after the
 * other in the same scratch buffers; both ways they share copies, decoder and encoder. Tiles at
 * equal distances in one arena form a run,
 * which is one rectangular copy. The first run is copied on the kernels' queue, which measures
 * times (profiling). Profiling costs more than a small copy, so all other runs are copied on a
 * queue without it, and the first run's time represents them.
 *
 * Scans of JPEGs are decoded into the input buffer, with a halo around each image that
 * KERNEL_EXTEND fills, and encoded from the output buffer. The length of the result is known only
 * at the end, so the lane's last commands are enqueued when it is polled. */
#include "device/lane.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "device/plan/launch.h"

enum { PAGE = 4096 };

/* Consecutive tiles of an arena at equal distances. */
struct run {
	uint32_t first, count;
	uint64_t in_stride, out_stride; /* bytes; a single tile: 0 */
};

/* Results of both directions lie in memory that is registered with the device, because reads into
 * other memory may wait. */
struct jpeg_pair {
	struct jpeg_decoder decoder;
	struct jpeg_encoder encoder;
	struct jpeg_result *results; /* STACK_MAX of each direction */
	cl_mem registered;
};

struct lane {
	const struct device *device;
	struct pool *pool;      /* NULL: pixels are copied */
	cl_command_queue queue; /* with profiling */
	cl_command_queue quiet; /* without; NULL if there is a pool */
	/* Input and output: scans and, without a pool, pixels. */
	struct growing_buffer buffer[PLACES];
	struct view view[PLACES]; /* pixels of the tiles in flight */
	const struct plan *plan;
	struct lane_tile tiles[STACK_MAX];
	uint32_t count; /* 0: idle */
	struct stack stack;
	/* the first tile, with the stack's height if the plan takes one; all tiles have its form */
	struct tile high;
	struct lane_layout layout;
	struct run runs[STACK_MAX];
	uint32_t run_count;
	cl_event upload, download;
	cl_event last;                 /* one of the others, after which all is finished */
	cl_event last_quiet;           /* and after this; NULL: none */
	cl_int status;                 /* the first failure's */
	cl_event launch[LAUNCHES_MAX]; /* for the steps of `work`, unless it is the pool's */
	cl_event begun;                /* see enqueue_steps(); NULL: none */
	struct jpeg_lane jpeg;
	struct jpeg_pair *pair; /* NULL until it is needed */
	struct jpeg_trace decode, encode;
	cl_event told;    /* the last command of encode_scans() */
	bool reading;     /* encoded results are being copied */
	cl_event read[2]; /* copies of the first result's bytes and the last's, maybe one */
	/* One for each image, after read_scans(), if the result has no flags. */
	uint32_t flags[STACK_MAX], size[STACK_MAX];
	struct pool_work work;
	bool pooled; /* the tile is the pool's */
};

enum error lane_new(const struct device *device, struct pool *pool, struct lane **lane)
{
	struct lane *l = calloc(1, sizeof *l);

	*lane = l;
	if (!l)
		return ERR_MEMORY;
	l->device = device;
	l->pool = pool;
	l->queue = device_queue(device, CL_QUEUE_PROFILING_ENABLE);
	if (l->queue && !pool)
		l->quiet = device_queue(device, 0);
	if (l->queue && (l->quiet || pool))
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
	event_release(&lane->last_quiet);
	event_release(&lane->upload);
	event_release(&lane->download);
	for (uint32_t i = 0; i < lane->work.steps; i++)
		event_release(&lane->launch[i]);
	event_release(&lane->begun);
	jpeg_trace_release(&lane->decode);
	jpeg_trace_release(&lane->encode);
	event_release(&lane->told);
	event_release(&lane->read[0]);
	event_release(&lane->read[1]);
	lane->last = NULL;
	lane->work.steps = 0;
	lane->plan = NULL;
	lane->count = 0;
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

void lane_rest(struct lane *lane)
{
	for (int i = 0; i < PLACES; i++)
		growing_buffer_free(&lane->buffer[i]);
	pair_free(lane->pair);
	lane->pair = NULL;
	memset(lane->jpeg.held, 0, sizeof lane->jpeg.held);
}

void lane_trim(struct lane *lane, uint64_t max)
{
	for (int i = PLACE_A; i < PLACES; i++)
		if (lane->buffer[i].size > max)
			growing_buffer_free(&lane->buffer[i]);
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

/* Returns true if the event is complete or has failed; records a failure. */
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

/* Fills in `flags` and `size` when all results are known, and enqueues reads of those encoded
 * results that fit their tiles. Their last event is read[1], or read[0] if that is NULL. */
static cl_int read_scans(struct lane *lane)
{
	const struct jpeg_result *decoded = lane->pair->results, *encoded = decoded + STACK_MAX;
	const enum tile_form form = lane->high.form;
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
		code = jpeg_encoder_read(&lane->pair->encoder, lane->queue, i, lane->size[i],
		                         (char *)t->arena->memory.out + t->tile.out, event);
		if (!code && event)
			object_add(OBJECT_EVENT, *event);
	}
	return code ? code : clFlush(lane->queue);
}

bool lane_finished(struct lane *lane)
{
	if (lane->count && lane->pooled)
		return pool_done(&lane->work);
	if (!lane->count || !has_happened(lane, lane->last) ||
	    !has_happened(lane, lane->last_quiet))
		return false;
	if (!lane->high.form || lane->status)
		return true;
	if (!lane->reading)
		lane->status = read_scans(lane);
	lane->reading = true;
	return has_happened(lane, lane->read[0]) && has_happened(lane, lane->read[1]);
}

/* True if other tiles lie beside this one in its slot. */
static bool is_narrow(const struct plan *plan, const struct tile *tile)
{
	return tile->width < plan->width;
}

bool lane_stacks(const struct plan *plan, const struct tile *a, const struct tile *b)
{
	return (plan->stacks ? 2 * plan->halo_y <= a->height : a->y0 == b->y0) &&
	       !is_narrow(plan, a) && a->form == b->form && a->x0 == b->x0 &&
	       a->width == b->width && a->height == b->height && a->in_pitch == b->in_pitch &&
	       a->out_pitch == b->out_pitch;
}

/* Replaces an arena by a buffer of the lane, with rows as in the view. The last tile gets as much
 * room as the others, because some drivers require it for a rectangular copy. */
static cl_int use_own(struct lane *lane, enum place place, uint64_t origin)
{
	const uint64_t rows = (uint64_t)lane->count * lane->stack.distance;
	struct view *view = &lane->view[place];
	cl_int code =
	    growing_buffer_reserve(&lane->buffer[place], lane->device, rows * view->pitch);

	view->buffer = lane->buffer[place].memory;
	view->origin = origin;
	return code;
}

/* Finds the buffers of all steps before the first one is enqueued, since growing a buffer loses its
 * content. Buffers make room for scans if they hold much more than these need. */
static cl_int use_buffers(struct lane *lane)
{
	const struct lane_tile *first = &lane->tiles[0];
	const enum tile_form form = first->tile.form;
	uint64_t size[PLACES];
	cl_int code = CL_SUCCESS;

	if (form && !jpeg_lane_hold(&lane->jpeg, lane->plan, &first->tile, lane->count)) {
		lane_rest(lane);
		if (!jpeg_lane_hold(&lane->jpeg, lane->plan, &first->tile, lane->count))
			return CL_MEM_OBJECT_ALLOCATION_FAILURE;
	}
	if (form && !lane->pair)
		lane->pair = pair_new(lane->jpeg.programs);
	if (form && !lane->pair)
		return CL_OUT_OF_HOST_MEMORY;
	lane->view[PLACE_IN] = (struct view){
	    .buffer = first->arena->in, .origin = first->tile.in, .pitch = lane->layout.in_pitch};
	lane->view[PLACE_OUT] = (struct view){.buffer = first->arena->out,
	                                      .origin = first->tile.out,
	                                      .pitch = lane->layout.out_pitch};
	if (!lane->pool || form & TILE_DECODE)
		code = use_own(lane, PLACE_IN, lane->layout.result);
	if (!code && (!lane->pool || form & TILE_ENCODE))
		code = use_own(lane, PLACE_OUT, 0);
	jpeg_lane_scratch(lane->plan, &lane->high, size);
	for (int i = PLACE_A; !code && i < PLACES; i++) {
		code = growing_buffer_reserve(&lane->buffer[i], lane->device, size[i]);
		lane->view[i].buffer = lane->buffer[i].memory;
	}
	return code;
}

/* Finds runs: tiles of pixels in one arena that do not overlap, at equal distances. */
static void find_runs(struct lane *lane)
{
	struct run *run = lane->runs;

	*run = (struct run){.count = 1};
	for (uint32_t i = 1; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i], *last = t - 1;
		const uint64_t in = t->tile.in - last->tile.in, out = t->tile.out - last->tile.out;

		if (t->tile.form || t->arena != last->arena || t->tile.in < last->tile.in ||
		    t->tile.out < last->tile.out || in < lane->layout.in ||
		    out < lane->layout.out ||
		    (run->count > 1 && (in != run->in_stride || out != run->out_stride))) {
			*++run = (struct run){.first = i, .count = 1};
			continue;
		}
		run->in_stride = in;
		run->out_stride = out;
		run->count++;
	}
	lane->run_count = (uint32_t)(run - lane->runs) + 1;
}

static cl_event last_launch(const struct lane *lane)
{
	return lane->launch[lane->work.steps - 1];
}

/* Enqueues the upload or the download of a run, after an event or NULL. A tile that shares its slot
 * is copied without the bytes beside it. */
static cl_int enqueue_copy(struct lane *lane, bool up, const struct run *run,
                           cl_command_queue queue, cl_event after, cl_event *event)
{
	const struct lane_tile *first = &lane->tiles[run->first];
	const struct lane_layout *l = &lane->layout;
	const struct arena *arena = &first->arena->memory;
	const size_t pitch = up ? l->in_pitch : l->out_pitch, zero[3] = {0};
	size_t place[3] = {0, run->first, 0}, region[3] = {up ? l->in : l->out, run->count, 1};
	size_t apart = lane->stack.distance * pitch, stride = up ? run->in_stride : run->out_stride;
	uint64_t before = l->result;

	if (is_narrow(lane->plan, &lane->high)) {
		before = l->halo;
		place[0] = up ? l->result - before : 0;
		region[0] = up ? l->row : l->result_row;
		region[1] = lane->stack.height + (up ? 2 * (size_t)lane->plan->halo_y : 0);
		apart = stride = pitch;
	}
	if (up)
		return clEnqueueWriteBufferRect(queue, lane->buffer[PLACE_IN].memory, CL_FALSE,
		                                place, zero, region, apart, 0, stride, 0,
		                                (const char *)arena->in + first->tile.in - before,
		                                after ? 1 : 0, after ? &after : NULL, event);
	return clEnqueueReadBufferRect(
	    queue, lane->buffer[PLACE_OUT].memory, CL_FALSE, place, zero, region, apart, 0, stride,
	    0, (char *)arena->out + first->tile.out, after ? 1 : 0, after ? &after : NULL, event);
}

/* Enqueues all uploads or downloads: of the first run, and of the others, if any, up to `last`. */
static cl_int enqueue_copies(struct lane *lane, bool up, cl_event *first, cl_event *last)
{
	cl_event made = up ? NULL : last_launch(lane);
	cl_int code = enqueue_copy(lane, up, &lane->runs[0], lane->queue, NULL, first);

	object_add(OBJECT_EVENT, *first);
	for (uint32_t i = 1; !code && i < lane->run_count; i++)
		code = enqueue_copy(lane, up, &lane->runs[i], lane->quiet, i == 1 ? made : NULL,
		                    i + 1 == lane->run_count ? last : NULL);
	object_add(OBJECT_EVENT, *last);
	return code;
}

/* Uploads all runs; later commands on the lane's queue wait for them. */
static cl_int upload(struct lane *lane)
{
	cl_event last = NULL;
	cl_int code = enqueue_copies(lane, true, &lane->upload, &last);

	if (!code && last)
		code = clFlush(lane->quiet);
	if (!code && last)
		code = clEnqueueMarkerWithWaitList(lane->queue, 1, &last, NULL);
	event_release(&last);
	return code;
}

/* Lists the steps that any tile needs. */
static void list_steps(struct lane *lane)
{
	const struct step_list *list = &lane->plan->list;
	struct pool_work *work = &lane->work;

	*work = (struct pool_work){.tile = &lane->high, .views = lane->view};
	if (lane->high.form & TILE_DECODE && lane->plan->border.kernel != KERNELS)
		work->step[work->steps++] = &lane->plan->border;
	for (uint32_t i = 0; i < list->count; i++) {
		bool needed = false;

		for (uint32_t t = 0; !needed && t < lane->count; t++)
			needed = plan_step_needed(lane->plan, &list->step[i], &lane->tiles[t].tile);
		if (needed)
			work->step[work->steps++] = &list->step[i];
	}
}

/* Enqueues the stages that decode the images, and a read of their results. */
static cl_int decode_scans(struct lane *lane)
{
	const struct lane_layout *l = &lane->layout;
	struct jpeg_decoder *decoder = &lane->pair->decoder;
	struct jpeg_decode_job jobs[STACK_MAX];
	cl_int code;

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];

		jobs[i] = (struct jpeg_decode_job){
		    .scan = &t->work->scan,
		    .bytes = (const char *)t->arena->memory.in + t->tile.in,
		    .samples = l->image + i * (uint64_t)l->distance * l->in_pitch,
		    .pitch = l->in_pitch};
	}
	lane->decode.ends = true;
	code = jpeg_decoder_enqueue(decoder, lane->queue, jobs, lane->count,
	                            lane->buffer[PLACE_IN].memory, &lane->decode);
	return code ? code
	            : jpeg_pipeline_results(&decoder->pipeline, lane->queue, lane->pair->results,
	                                    NULL);
}

static cl_int encode_scans(struct lane *lane)
{
	struct jpeg_encoder *encoder = &lane->pair->encoder;
	struct jpeg_encode_job jobs[STACK_MAX];
	cl_int code;

	for (uint32_t i = 0; i < lane->count; i++) {
		const struct lane_tile *t = &lane->tiles[i];

		jobs[i] = jpeg_lane_job(lane->plan, &t->tile, &t->work->target, i);
	}
	lane->encode.ends = true;
	code = jpeg_encoder_enqueue(encoder, lane->queue, jobs, lane->count,
	                            lane->buffer[PLACE_OUT].memory, &lane->encode);
	if (!code)
		code = jpeg_pipeline_results(&encoder->pipeline, lane->queue,
		                             lane->pair->results + STACK_MAX, &lane->told);
	object_add(OBJECT_EVENT, lane->told);
	lane->last = lane->told;
	return code;
}

/* Enqueues the steps of all tiles: one stack, or each tile's. The last tile's launches have events,
 * and if there are others the first one of all. */
static cl_int enqueue_steps(struct lane *lane)
{
	const struct stack *stack = lane->plan->stacks && lane->count > 1 ? &lane->stack : NULL;
	const uint32_t turns = stack ? 1 : lane->count;
	cl_int code = CL_SUCCESS;

	for (uint32_t turn = 0; turn < turns; turn++) {
		const uint64_t rows = turn * (uint64_t)lane->stack.distance;
		struct view view[PLACES];

		memcpy(view, lane->view, sizeof view);
		view[PLACE_IN].origin += rows * view[PLACE_IN].pitch;
		view[PLACE_OUT].origin += rows * view[PLACE_OUT].pitch;
		for (uint32_t i = 0; !code && i < lane->work.steps; i++) {
			const struct step *step = lane->work.step[i];
			cl_event *event = turn + 1 == turns ? &lane->launch[i]
			                  : !turn && !i     ? &lane->begun
			                                    : NULL;

			region_lay_out(step, &lane->high, view);
			code = launch_step(step, lane->device, &lane->high, stack, lane->queue,
			                   view, event);
			if (event)
				object_add(OBJECT_EVENT, *event);
		}
	}
	return code;
}

static cl_int enqueue_all(struct lane *lane)
{
	cl_int code = CL_SUCCESS;

	if (lane->high.form & TILE_DECODE)
		code = decode_scans(lane);
	else if (!lane->pool)
		code = upload(lane);
	if (!code)
		code = enqueue_steps(lane);
	if (!code && lane->high.form & TILE_ENCODE) {
		code = encode_scans(lane);
	} else if (!code) {
		code = lane->pool ? CL_SUCCESS
		                  : enqueue_copies(lane, false, &lane->download, &lane->last_quiet);
		lane->last = lane->pool ? last_launch(lane) : lane->download;
	}
	if (!code)
		code = clFlush(lane->queue);
	if (!code && lane->last_quiet)
		code = clFlush(lane->quiet);
	return code;
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
	lane->layout = lane_layout(plan, first);
	stack->count = count;
	stack->height = first->height;
	stack->distance = lane->layout.distance;
	lane->high = *first;
	if (plan->stacks)
		lane->high.height += (count - 1) * stack->distance;
	find_runs(lane);
	lane->pooled = lane->pool && !first->form;
	code = use_buffers(lane);
	if (!code)
		list_steps(lane);
	if (!code && lane->pooled)
		pool_add(lane->pool, &lane->work);
	else if (!code)
		code = enqueue_all(lane);
	if (code) {
		lane->pooled = false;
		lane_wait(lane);
		lane_reset(lane);
		if (lane->pair) /* it may have taken all memory */
			lane_rest(lane);
	}
	return code;
}

/* Returns the nanoseconds from the start of a command to the end of another by the device's clock.
 * If the other is NULL: of one command. */
static uint64_t time_between(cl_event first, cl_event last)
{
	uint64_t ns;

	return first && !opencl_time_between(first, last ? last : first, &ns) ? ns : 0;
}

/* Fills in each step's time for all tiles. If these ran in turn, the last tells steps' shares. */
static void find_times(const struct lane *lane, uint64_t ns[])
{
	const struct pool_work *work = &lane->work;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < work->steps; i++) {
		ns[i] = lane->pooled ? work->ns[i] : time_between(lane->launch[i], NULL);
		sum += ns[i];
	}
	if (!lane->begun || !sum)
		return;
	for (uint32_t i = 0; i < work->steps; i++)
		ns[i] = (uint64_t)((double)ns[i] / (double)sum *
		                   (double)time_between(lane->begun, last_launch(lane)));
}

static uint64_t direction_ns(const struct jpeg_trace *trace)
{
	return time_between(trace->launch[0].event, trace->launch[trace->count - 1].event);
}

static void report_launch(struct message_tile_done *done, enum kernel kernel, uint64_t ns,
                          uint64_t bytes)
{
	done->launch[done->launches].kernel = kernel;
	done->launch[done->launches].ns = (uint32_t)MIN(ns, UINT32_MAX);
	done->launch[done->launches++].bytes = bytes;
}

/* Reports the launches, each of all tiles together, and the copies, whose bytes are the same for
 * all tiles of pixels. */
static void report_times(const struct lane *lane, struct message_tile_done *done)
{
	const struct image *image = &lane->plan->image;
	const struct pool_work *work = &lane->work;
	const uint64_t result = lane->layout.result_row * lane->stack.height;
	uint64_t scans = 0, encoded = 0, ns[LAUNCHES_MAX];

	find_times(lane, ns);
	for (uint32_t i = 0; i < lane->count && lane->high.form; i++) {
		scans += lane->tiles[i].tile.in_size;
		encoded += lane->size[i];
	}
	if (lane->high.form & TILE_DECODE) {
		report_launch(done, KERNEL_JPEG_DECODE, direction_ns(&lane->decode),
		              scans + lane->count * image_size(image));
		done->upload_ns =
		    time_between(lane->decode.scans[0], lane->decode.scans[1]) / lane->count;
	} else if (!lane->pool) {
		done->upload_bytes = lane->layout.in;
		done->upload_ns = time_between(lane->upload, NULL) / lane->runs[0].count;
	}
	for (uint32_t i = 0; i < work->steps; i++)
		report_launch(done, work->step[i]->kernel, ns[i],
		              lane->count * region_bytes(work->step[i], &lane->tiles[0].tile));
	if (lane->high.form & TILE_ENCODE) {
		report_launch(done, KERNEL_JPEG_ENCODE, direction_ns(&lane->encode),
		              lane->count * result + encoded);
		done->download_ns = time_between(lane->read[0], lane->read[1]) / lane->count;
	} else if (!lane->pool) {
		done->download_bytes = lane->layout.out;
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
		report_times(lane, &done[0]);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			done[i] = done[0];
		done[i].place = i;
		done[i].job = lane->tiles[i].tile.job;
		done[i].index = lane->tiles[i].tile.index;
		if (!lane->high.form || lane->status)
			continue;
		done[i].jpeg_flags = lane->flags[i];
		if (lane->high.form & TILE_DECODE)
			done[i].upload_bytes = lane->tiles[i].tile.in_size;
		if (lane->high.form & TILE_ENCODE)
			done[i].size = done[i].download_bytes = lane->size[i];
	}
	lane_reset(lane);
	return count;
}
