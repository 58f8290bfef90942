/* Lanes: a tile's commands, enqueued all at once on an in-order queue: upload, the plan's launches,
 * download. Nothing here waits; the last command's event says when the tile is through.
 *
 * Threads: OpenCL calls lane_notify() from a thread of its own. It touches `state` and the eventfd
 * and nothing else; all the rest belongs to the worker's one thread. */
#include "device/lane.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "device/live.h"

enum { STATE_IDLE = 2, STATE_RUNNING = 1, STATE_DONE = CL_COMPLETE }; /* < 0: failed */

/* A command of the lane's tile. */
struct command {
	cl_event event;
	const struct step *step; /* NULL: a copy */
};

struct lane {
	const struct device *device;
	cl_command_queue queue;
	bool zero_copy;
	int notify_fd;
	_Atomic int state;
	struct growing_buffer in, out; /* unless zero_copy */
	struct growing_buffer scratch[SCRATCHES];
	struct view view[PLACES]; /* of the tile that is under way */
	const struct plan *plan;
	struct tile tile;
	struct command upload, download, launch[LAUNCHES_MAX];
	uint32_t launches;
};

enum error lane_new(const struct device *device, bool zero_copy, int notify_fd, struct lane **lane)
{
	cl_int code;

	*lane = calloc(1, sizeof **lane);
	if (!*lane)
		return ERR_MEMORY;
	(*lane)->device = device;
	(*lane)->zero_copy = zero_copy;
	(*lane)->notify_fd = notify_fd;
	(*lane)->state = STATE_IDLE;
	(*lane)->queue =
	    live_add(OBJECT_QUEUE, clCreateCommandQueue(device->context, device->id,
	                                                CL_QUEUE_PROFILING_ENABLE, &code));
	if (!code)
		return ERR_OK;
	log_error("cannot make a queue: %s", opencl_error_name(code));
	lane_free(lane);
	return ERR_DEVICE;
}

static void command_release(struct command *command)
{
	live_release(OBJECT_EVENT, command->event);
	*command = (struct command){0};
}

/* Lets go of the tile. */
static void lane_reset(struct lane *lane)
{
	command_release(&lane->upload);
	command_release(&lane->download);
	for (uint32_t i = 0; i < lane->launches; i++)
		command_release(&lane->launch[i]);
	lane->launches = 0;
	lane->plan = NULL;
	lane->state = STATE_IDLE;
}

void lane_free(struct lane **lane)
{
	struct lane *l = *lane;

	if (!l)
		return;
	if (l->queue) {
		clFinish(l->queue);
		while (l->state == STATE_RUNNING) /* the callback may still be on its way */
			usleep(100);
		lane_reset(l);
		live_release(OBJECT_QUEUE, l->queue);
	}
	growing_buffer_free(&l->in);
	growing_buffer_free(&l->out);
	for (int i = 0; i < SCRATCHES; i++)
		growing_buffer_free(&l->scratch[i]);
	free(l);
	*lane = NULL;
}

bool lane_idle(const struct lane *lane)
{
	return lane->state == STATE_IDLE;
}

bool lane_finished(const struct lane *lane)
{
	return lane->state <= STATE_DONE;
}

/* Bytes of a row of the tile's result, larger by x pixels on each side. */
static uint64_t row_bytes(const struct lane *lane, uint64_t x, enum pixel_type type)
{
	return (lane->tile.width + 2 * x) * lane->plan->image.bands * pixel_type_size(type);
}

static uint64_t align_up(uint64_t n)
{
	return (n + ROW_ALIGNMENT - 1) & ~(uint64_t)(ROW_ALIGNMENT - 1);
}

/* The part of the arena's input that the tile reads, out to where it is aligned: kernels load
 * aligned words. `before` is how far ahead of the tile's first sample it begins. */
static void input_span(const struct lane *lane, uint64_t *before, uint64_t *size)
{
	const struct plan *plan = lane->plan;
	const struct tile *tile = &lane->tile;
	uint64_t above = (uint64_t)plan->halo_y * tile->in_pitch;
	uint64_t row = row_bytes(lane, plan->halo_x, plan->image.type);
	uint64_t left = (row - row_bytes(lane, 0, plan->image.type)) / 2;

	*before = align_up(above + left);
	*size =
	    align_up(*before + (tile->height - 1) * (uint64_t)tile->in_pitch + above + row - left);
}

static uint64_t output_size(const struct lane *lane)
{
	const struct tile *tile = &lane->tile;

	return (uint64_t)(tile->height - 1) * tile->out_pitch +
	       row_bytes(lane, 0, lane->plan->image.type);
}

/* Input and output in the arena itself. */
static void use_arena(struct lane *lane, const struct device_arena *arena)
{
	const struct tile *tile = &lane->tile;

	lane->view[PLACE_IN] = (struct view){arena->in, tile->in, tile->in_pitch};
	lane->view[PLACE_OUT] = (struct view){arena->out, tile->out, tile->out_pitch};
}

/* Input and output in the lane's own buffers, laid out as in the arena. */
static cl_int use_buffers(struct lane *lane)
{
	const struct tile *tile = &lane->tile;
	uint64_t before, size;
	cl_int code;

	input_span(lane, &before, &size);
	code = growing_buffer_reserve(&lane->in, lane->device, size);
	if (!code)
		code = growing_buffer_reserve(&lane->out, lane->device, output_size(lane));
	lane->view[PLACE_IN] = (struct view){lane->in.memory, before, tile->in_pitch};
	lane->view[PLACE_OUT] = (struct view){lane->out.memory, 0, tile->out_pitch};
	return code;
}

/* Makes the scratch buffers large enough for every step that writes them, before the first is
 * enqueued: a buffer cannot grow under way. */
static cl_int reserve_scratch(struct lane *lane)
{
	uint64_t size[SCRATCHES] = {0};
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; i < lane->plan->count; i++) {
		const struct step *step = &lane->plan->step[i];
		struct view view;
		uint64_t needed = step_pack(step, &lane->tile, &view);

		if (step->dst >= PLACE_A && needed > size[step->dst - PLACE_A])
			size[step->dst - PLACE_A] = needed;
	}
	for (int i = 0; !code && i < SCRATCHES; i++) {
		code = growing_buffer_reserve(&lane->scratch[i], lane->device, size[i]);
		lane->view[PLACE_A + i].buffer = lane->scratch[i].memory;
	}
	return code;
}

static cl_int enqueue_upload(struct lane *lane, const struct device_arena *arena)
{
	const char *from = arena->memory.in;
	uint64_t before, size;
	cl_int code;

	input_span(lane, &before, &size);
	code = clEnqueueWriteBuffer(lane->queue, lane->in.memory, CL_FALSE, 0, size,
	                            from + lane->tile.in - before, 0, NULL, &lane->upload.event);
	live_add(OBJECT_EVENT, lane->upload.event);
	return code;
}

static cl_int enqueue_download(struct lane *lane, const struct device_arena *arena)
{
	char *to = arena->memory.out;
	cl_int code =
	    clEnqueueReadBuffer(lane->queue, lane->out.memory, CL_FALSE, 0, output_size(lane),
	                        to + lane->tile.out, 0, NULL, &lane->download.event);

	live_add(OBJECT_EVENT, lane->download.event);
	return code;
}

static cl_int enqueue_steps(struct lane *lane)
{
	cl_int code = CL_SUCCESS;

	for (uint32_t i = 0; !code && i < lane->plan->count; i++) {
		const struct step *step = &lane->plan->step[i];
		struct command *command = &lane->launch[lane->launches];

		if (!plan_step_needed(lane->plan, step, &lane->tile))
			continue;
		if (step->dst >= PLACE_A && step->kernel != KERNEL_EXTEND)
			step_pack(step, &lane->tile, &lane->view[step->dst]);
		code = step_launch(step, lane->device, &lane->tile, lane->queue, lane->view,
		                   &command->event);
		if (code)
			break;
		live_add(OBJECT_EVENT, command->event);
		command->step = step;
		lane->launches++;
	}
	return code;
}

static void CL_CALLBACK lane_notify(cl_event event, cl_int status, void *user)
{
	struct lane *lane = user;
	int fd = lane->notify_fd;
	uint64_t one = 1;

	(void)event;
	lane->state = status < 0 ? status : STATE_DONE; /* the lane may be reused from here on */
	if (write(fd, &one, sizeof one) < 0)
		log_error("cannot write to the eventfd");
}

static cl_int enqueue_tile(struct lane *lane, const struct device_arena *arena)
{
	cl_int code = lane->zero_copy ? CL_SUCCESS : use_buffers(lane);
	cl_event last;

	if (lane->zero_copy)
		use_arena(lane, arena);
	if (!code)
		code = reserve_scratch(lane);
	if (!code && !lane->zero_copy)
		code = enqueue_upload(lane, arena);
	if (!code)
		code = enqueue_steps(lane);
	if (!code && !lane->zero_copy)
		code = enqueue_download(lane, arena);
	if (code)
		return code;
	last = lane->zero_copy ? lane->launch[lane->launches - 1].event : lane->download.event;
	lane->state = STATE_RUNNING;
	code = clSetEventCallback(last, CL_COMPLETE, lane_notify, lane);
	if (code)
		return code;
	/* A failure here comes when the callback may already be on its way: say so with a code that
	 * ends the worker. */
	return clFlush(lane->queue) ? CL_INVALID_COMMAND_QUEUE : CL_SUCCESS;
}

cl_int lane_start(struct lane *lane, const struct plan *plan, const struct tile *tile,
                  const struct device_arena *arena)
{
	cl_int code;

	lane->plan = plan;
	lane->tile = *tile;
	code = enqueue_tile(lane, arena);
	if (code) {
		clFinish(lane->queue);
		lane_reset(lane);
	}
	return code;
}

/* How long a command ran, by the device's clock. */
static uint64_t command_time(const struct command *command)
{
	cl_ulong start = 0, end = 0;

	if (!command->event)
		return 0;
	clGetEventProfilingInfo(command->event, CL_PROFILING_COMMAND_START, sizeof start, &start,
	                        NULL);
	clGetEventProfilingInfo(command->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
	return end > start ? end - start : 0;
}

static void report_launches(const struct lane *lane, struct message_tile_done *done)
{
	done->launches = lane->launches;
	for (uint32_t i = 0; i < lane->launches; i++) {
		const struct command *command = &lane->launch[i];
		uint64_t ns = command_time(command);

		done->launch[i].kernel = command->step->kernel;
		done->launch[i].ns = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
		done->launch[i].bytes = step_bytes(command->step, &lane->tile);
	}
}

static void report_copies(const struct lane *lane, struct message_tile_done *done)
{
	uint64_t before;

	input_span(lane, &before, &done->upload_bytes);
	done->download_bytes = output_size(lane);
	done->upload_ns = command_time(&lane->upload);
	done->download_ns = command_time(&lane->download);
}

void lane_finish(struct lane *lane, struct message_tile_done *done)
{
	int state = lane->state;

	*done = (struct message_tile_done){.job = lane->tile.job, .index = lane->tile.index};
	if (state < 0) {
		done->error = ERR_DEVICE;
		done->cl_error = state;
	} else {
		report_launches(lane, done);
		if (!lane->zero_copy)
			report_copies(lane, done);
	}
	lane_reset(lane);
}
