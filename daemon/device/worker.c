/* The worker's loop: one thread waits for messages and polls its lanes. The longer a lane has been
 * at work, the less often it is polled. A lane that will say when it has finished is hardly polled.
 *
 * An error of a tile is reported in its answer. After an error that leaves the device in doubt the
 * worker ends, and the front starts another. */
#include "device/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cl/object_counts.h"
#include "device/lane.h"
#include "device/plans.h"
#include "device/tile_queue.h"

enum {
	LANES = 3,
	LANES_POOL = 2,       /* with a pool, beside those for small tiles */
	LANES_PER_THREAD = 2, /* of a pool: a tile in work and the next one */
	LANES_LIMIT = 128,
	IDLE_MS = 3600000,
	WAITING_MAX = 128, /* tiles received before some are started */
	TUNE_AFTER_MS = 100,
	TIMER_SLACK_NS = 1000,
	WAIT_CHECK_MS = 500,    /* between checks of tiles that wait for a program */
	FAILED_MAX = 3,         /* consecutive failed tiles, before the process is replaced */
	STACK_BYTES = 32 << 20, /* maximum input of a stack, so that lanes overlap */
	LOOK_NS_MIN = 10000,
	LOOK_NS_MAX = 500000,
	LOOK_SHARE = 16,   /* the next poll comes after 1/16 of a lane's time so far */
	REST_MS = 5000,    /* until a lane without JPEGs releases their buffers */
	OBJECTS_MS = 1000, /* between counts of objects while jobs run, and while none does */
	LASTING_MS = 20,
};

/* Lanes for small tiles do not keep more memory than this. */
static const uint64_t kept_max = 1 << 20;

/* A lane and the time of its next poll. */
struct watched_lane {
	struct lane *lane;
	struct known_plan *plan;
	uint64_t started, look; /* nanoseconds */
	uint64_t jpeg_ms; /* when it was last at work since it has buffers for JPEGs; 0: none */
};

struct worker {
	struct programs *programs;
	struct tuner *tuner;
	struct pool *pool; /* of a device that works in place, otherwise NULL */
	const struct device *device;
	int socket, notify_fd;
	struct message_programs programs_sent; /* the counts that the front knows */
	struct message_objects objects_sent;
	uint64_t objects_ms; /* time of the last message */
	struct watched_lane lane[LANES_LIMIT];
	uint32_t lanes;
	uint32_t stack_max; /* tiles that may share a launch */
	struct arenas arenas;
	struct plans *plans;
	struct tile_queue queue;
	unsigned failed; /* consecutive failed tiles */
	uint64_t jpeg_memory;
	struct jpeg_work work[STACK_MAX]; /* of the stack that is being started */
};

uint32_t worker_lanes(const struct worker *worker)
{
	return worker->pool ? LANES_POOL : worker->lanes;
}

uint32_t worker_small_max(const struct worker *worker)
{
	return worker->pool ? worker->lanes : worker->stack_max;
}

/* A lane's share of memory for JPEGs. */
static uint64_t jpeg_share(const struct worker *worker)
{
	return worker->jpeg_memory / worker->lanes;
}

uint32_t worker_jpeg_pixels(const struct worker *worker)
{
	uint64_t pixels = jpeg_share(worker) / JPEG_PIXEL_BYTES;

	return pixels < JPEG_PIXELS_MAX ? (uint32_t)pixels : JPEG_PIXELS_MAX;
}

enum error worker_new(const struct device *device, const struct worker_options *options, int socket,
                      struct worker **worker)
{
	struct worker *w = calloc(1, sizeof *w);
	uint32_t lanes = LANES;
	enum error e = ERR_OK;

	*worker = w;
	if (!w)
		return ERR_MEMORY;
	w->device = device;
	w->socket = socket;
	tile_queue_init(&w->queue);
	w->stack_max = device->in_place ? 1 : options->stack_max;
	w->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->notify_fd < 0)
		e = ERR_IO;
	if (!e)
		e = programs_new(&w->programs, device, options->kernel_dir, options->cache_dir,
		                 options->cache_size, w->notify_fd);
	if (!e && options->programs_max)
		programs_limit(w->programs, options->programs_max);
	if (!e && device->in_place)
		e = pool_new(device, w->notify_fd, &w->pool);
	if (w->pool)
		lanes =
		    LANES_POOL + (device->serial ? LANES_PER_THREAD * pool_threads(w->pool) : 0);
	for (; !e && w->lanes < lanes && w->lanes < LANES_LIMIT; w->lanes++)
		e = lane_new(device, w->pool, &w->lane[w->lanes].lane);
	w->jpeg_memory = options->jpeg_memory;
	for (uint32_t i = 0; !e && w->jpeg_memory && i < w->lanes; i++)
		lane_allow_jpeg(w->lane[i].lane, w->programs, jpeg_share(w));
	if (!e) {
		w->tuner = tuner_new(w->programs, w->pool, options->state_dir, options->kernel_dir,
		                     options->platform, options->device);
		w->plans = w->tuner ? plans_new(w->programs, w->tuner, device) : NULL;
		e = w->plans ? ERR_OK : ERR_MEMORY;
	}
	if (e)
		worker_free(worker);
	return e;
}

struct tuner *worker_tuner(const struct worker *worker)
{
	return worker->tuner;
}

void worker_free(struct worker **worker)
{
	struct worker *w = *worker;

	if (!w)
		return;
	for (uint32_t i = 0; i < LANES_LIMIT; i++)
		lane_free(&w->lane[i].lane);
	pool_free(&w->pool);
	arenas_fini(&w->arenas);
	plans_free(&w->plans);
	tile_queue_fini(&w->queue);
	tuner_free(&w->tuner);
	programs_free(&w->programs);
	if (w->notify_fd >= 0)
		close(w->notify_fd);
	free(w);
	*worker = NULL;
}

/* ---- messages to the front: after a failure, wire_send()'s, it cannot be reached any more ---- */

/* Sends the answer to a tile. */
static enum error report_tile(const struct worker *w, const struct message_tile_done *done)
{
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};
	enum error e = wire_send(w->socket, &message, NULL);

	if (e) {
		log_error("cannot send to the front: %s", strerror(errno));
		return e;
	}
	if (done->error == ERR_DEVICE)
		log_error("job %" PRIu64 " tile %u: %s (%d)", done->job, done->index,
		          opencl_error_name(done->cl_error), done->cl_error);
	return ERR_OK;
}

/* Answers a tile that was not filtered. code: OpenCL's, if the error is ERR_DEVICE; reason: for the
 * client. */
static enum error report_error(const struct worker *w, const struct tile *tile, enum error error,
                               cl_int code, const char *reason)
{
	struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .error = error, .cl_error = code};

	snprintf(done.reason, sizeof done.reason, "%s", reason);
	return report_tile(w, &done);
}

/* Answers a JPEG that is not for this device. flags: why. */
static enum error report_flags(const struct worker *w, const struct tile *tile, uint32_t flags)
{
	const struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .stack = 1, .jpeg_flags = flags};

	return report_tile(w, &done);
}

/* Tells that a tile waits for a program, for max_ms milliseconds at most; 0: no longer. */
static enum error report_waits(const struct worker *w, const struct tile *tile, uint32_t max_ms)
{
	struct message message = {.type = MSG_TILE_WAITS,
	                          .tile_waits = {tile->job, tile->index, max_ms}};

	return wire_send(w->socket, &message, NULL);
}

/* Sends one choice of the tuner, for the front to display. */
static enum error report_choice(const struct worker *w, const struct message_choice *choice)
{
	struct message message = {.type = MSG_CHOICE, .choice = *choice};

	return wire_send(w->socket, &message, NULL);
}

/* Sends the counts of programs, if they have changed. */
static enum error report_programs(struct worker *w)
{
	struct message message = {.type = MSG_PROGRAMS};

	programs_count(w->programs, &message.programs);
	if (!memcmp(&message.programs, &w->programs_sent, sizeof w->programs_sent))
		return ERR_OK;
	w->programs_sent = message.programs;
	return wire_send(w->socket, &message, NULL);
}

/* Sends the counts of live objects, if they have changed: soon if no object belongs to a request,
 * otherwise once a second, to save messages. *due: milliseconds until the next message, or -1. */
static enum error report_objects(struct worker *w, int *due)
{
	struct message message = {.type = MSG_OBJECTS};
	const uint64_t now = now_ms(), since = now - w->objects_ms;
	uint64_t interval;

	*due = -1;
	object_counts_get(&message.objects);
	if (!memcmp(&message.objects, &w->objects_sent, sizeof w->objects_sent))
		return ERR_OK;
	interval = object_counts_only_lasting(&message.objects) ? LASTING_MS : OBJECTS_MS;
	if (since < interval) {
		*due = (int)(interval - since);
		return ERR_OK;
	}
	w->objects_sent = message.objects;
	w->objects_ms = now;
	return wire_send(w->socket, &message, NULL);
}

/* ---- tiles ---- */

/* True if the device is in doubt after this error, or any (fatal). Then the worker ends without an
 * answer: to the front its tiles are lost, and filtered again; one with an answer would come back
 * to this device before the front knows. */
static bool is_in_doubt(struct worker *w, const struct tile *tile, cl_int code, bool fatal)
{
	w->failed++;
	if (!fatal && !opencl_error_fatal(code) && w->failed < FAILED_MAX)
		return false;
	log_error("job %" PRIu64 " tile %u: %s (%d)", tile->job, tile->index,
	          opencl_error_name(code), code);
	return true;
}

/* Answers a tile whose kernel cannot be compiled. If a compiler process could, or there is none,
 * the device is in doubt: without a general kernel the worker ends. */
static enum error answer_unbuilt(const struct worker *w, const struct tile *tile,
                                 enum program_state state, enum kernel kernel)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	if (state == PROGRAM_FAILED && variant_is_general(kernel)) {
		log_error("%s cannot be compiled", kernel_name(kernel));
		return ERR_DEVICE;
	}
	snprintf(reason, sizeof reason, "%s cannot be compiled on %s; the service's log says why",
	         kernel_name(kernel), w->device->name);
	return report_error(w, tile, ERR_DEVICE, CL_BUILD_PROGRAM_FAILURE, reason);
}

/* Tells the front which tiles no longer wait for a program. */
static enum error tell_over(struct worker *w)
{
	struct message_tile tile;
	enum error e = ERR_OK;

	while (!e && tile_queue_over(&w->queue, &tile))
		e = report_waits(w, &tile.tile, 0);
	return e;
}

/* Copies the descriptions of scans, and answers those that are not valid. *count: of those left. */
static enum error copy_works(struct worker *w, const struct plan *plan, struct lane_tile *tiles,
                             uint32_t *count)
{
	uint32_t valid = 0;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < *count; i++) {
		struct lane_tile *t = &tiles[i];
		const char *work = (const char *)t->arena->memory.in + t->tile.work;

		t->work = &w->work[valid];
		if (jpeg_work_take(&w->work[valid], work, &t->tile, plan))
			tiles[valid++] = *t;
		else
			e = report_flags(w, &t->tile, JPEG_FLAG_WORK);
	}
	*count = valid;
	return e;
}

/* Adds the tiles that go through the lane together with the first one: at most an idle lane's share
 * of those waiting. *count: 0 if all are answered already. */
static enum error fill_stack(struct worker *w, const struct watched_lane *lane, uint64_t id,
                             const struct plan *plan, struct lane_tile tiles[STACK_MAX],
                             uint32_t *count)
{
	const struct tile *tile = &tiles[0].tile;
	bool jpeg = tile->form != TILE_PIXELS;
	uint64_t bytes = (uint64_t)tile->in_pitch * tile->height; /* JPEG: 0 */
	uint64_t scans = 0;
	uint32_t idle = 0, max = w->stack_max, part, room;
	enum error e;

	*count = 0;
	for (uint32_t i = 0; i < w->lanes; i++)
		idle += lane_idle(w->lane[i].lane);
	part = idle ? (w->queue.count + idle) / idle : 1; /* with this tile, rounded up */
	if (max > part)
		max = part;
	if (bytes && max > STACK_BYTES / bytes)
		max = (uint32_t)(STACK_BYTES / bytes);
	if (jpeg) {
		room = lane_jpeg_room(lane->lane, plan, tile, &scans);
		if (!room || tile->in_size > scans)
			return report_flags(w, tile, JPEG_FLAG_DEVICE);
		max = room < max ? room : max;
	}
	*count = tile_queue_stack(&w->queue, &w->arenas, id, plan, max, scans, tiles);
	e = tell_over(w);
	return e || !jpeg ? e : copy_works(w, plan, tiles, count);
}

/* The next time to poll a lane that is still at work. */
static uint64_t look_again(const struct watched_lane *lane, uint64_t now)
{
	uint64_t pause = (now - lane->started) / LOOK_SHARE;

	if (pause < LOOK_NS_MIN)
		pause = LOOK_NS_MIN;
	return now + (pause < LOOK_NS_MAX && !lane_notifies(lane->lane) ? pause : LOOK_NS_MAX);
}

/* Starts a tile on an idle lane, with others that fit its stack, or answers with an error. */
static enum error start_tile(struct worker *w, struct watched_lane *lane,
                             const struct message_tile *message)
{
	const struct tile *tile = &message->tile;
	struct known_plan *known = plans_find(w->plans, message->plan);
	struct plan *plan = known ? known->plan : NULL;
	struct lane_tile tiles[STACK_MAX] = {{*tile, arenas_find(&w->arenas, tile->arena), NULL}};
	enum program_state state;
	uint32_t count;
	cl_int code;
	enum error e;

	if (known && !plan)
		return report_error(w, tile, known->error, 0, known->reason);
	if (!known || !arenas_hold(&w->arenas, tile, &plan->image, &plan->chain)) {
		log_error("job %" PRIu64 " tile %u: unknown plan or arena, or outside the arena",
		          tile->job, tile->index);
		return report_error(w, tile, ERR_INTERNAL, 0, "");
	}
	state = plan_resolve(plan, w->programs, tile->form);
	if (state != PROGRAM_READY)
		return answer_unbuilt(w, tile, state, plan_lacks(plan));
	/* Compilations requested for this plan may delay the launch: report them first. */
	e = report_programs(w);
	if (e)
		return e;
	e = fill_stack(w, lane, message->plan, plan, tiles, &count);
	if (e || !count)
		return e;
	if (tile->form)
		lane->jpeg_ms = now_ms();
	code = lane_start(lane->lane, plan, tiles, count);
	if (code) {
		e = is_in_doubt(w, &tiles[0].tile, code, false) ? ERR_DEVICE : ERR_OK;
		for (uint32_t i = 0; !e && i < count; i++)
			e = report_error(w, &tiles[i].tile, ERR_DEVICE, code, "");
		return e;
	}
	lane->plan = known;
	known->uses++;
	lane->started = now_ns();
	lane->look = look_again(lane, lane->started);
	return ERR_OK;
}

static struct watched_lane *idle_lane(struct worker *w)
{
	for (uint32_t i = 0; i < w->lanes; i++)
		if (lane_idle(w->lane[i].lane))
			return &w->lane[i];
	return NULL;
}

/* Answers a tile that has waited too long for a program. */
static enum error answer_late(const struct worker *w, const struct message_tile *message)
{
	const struct plan *plan = plans_find(w->plans, message->plan)->plan;
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s is still being compiled on %s; ask again",
	         kernel_name(plan_lacks(plan)), w->device->name);
	return report_error(w, &message->tile, ERR_NOT_READY, 0, reason);
}

/* Starts waiting tiles on idle lanes. */
static enum error start_tiles(struct worker *w)
{
	struct message_tile tile;
	struct watched_lane *lane;
	uint32_t wait_ms;
	bool late;
	enum error e = ERR_OK;

	while (!e && (lane = idle_lane(w)) &&
	       tile_queue_next(&w->queue, w->plans, w->programs, now_ms(), &tile, &late)) {
		e = tell_over(w);
		if (!e)
			e = late ? answer_late(w, &tile) : start_tile(w, lane, &tile);
	}
	while (!e && tile_queue_lacking(&w->queue, &tile, &wait_ms))
		e = report_waits(w, &tile.tile, wait_ms);
	return e;
}

/* Answers a lane's tiles. The pool fails before or while it launches; elsewhere a command failed
 * that was running, after which the device is in doubt. */
static enum error finish_lane(struct worker *w, struct watched_lane *lane)
{
	struct message_tile_done done[STACK_MAX];
	const bool pooled = lane_notifies(lane->lane);
	uint32_t count = lane_finish(lane->lane, done);
	const struct tile first = {.job = done->job, .index = done->index};
	enum error e = ERR_OK;

	if (done->error && is_in_doubt(w, &first, done->cl_error, !pooled))
		return ERR_DEVICE;
	for (uint32_t i = 0; !e && i < count; i++)
		e = report_tile(w, &done[i]);
	if (!done->error)
		w->failed = 0;
	if (lane >= &w->lane[LANES])
		lane_trim(lane->lane, kept_max);
	if (lane->jpeg_ms)
		lane->jpeg_ms = now_ms();
	plans_release(w->plans, lane->plan);
	return e;
}

/* Polls the lanes that are due. */
static enum error finish_tiles(struct worker *w)
{
	uint64_t now = now_ns();
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < w->lanes; i++) {
		struct watched_lane *lane = &w->lane[i];

		if (lane_idle(lane->lane) || lane->look > now)
			continue;
		if (lane_finished(lane->lane))
			e = finish_lane(w, lane);
		else
			lane->look = look_again(lane, now);
	}
	return e;
}

/* Handles a message. The caller keeps the descriptors. */
static enum error handle(struct worker *w, const struct message *message, const int *fds)
{
	switch ((enum message_type)message->type) {
	case MSG_ARENA:
		return arenas_add(&w->arenas, w->device, &message->arena, fds);
	case MSG_ARENA_DROP:
		return arenas_drop(&w->arenas, message->arena_drop.arena);
	case MSG_PLAN:
		return plans_add(w->plans, &message->plan, fds[0]);
	case MSG_PLAN_DROP:
		plans_drop(w->plans, message->plan_drop.plan);
		return ERR_OK;
	case MSG_TILE:
		return tile_queue_add(&w->queue, &message->tile, now_ms());
	default:
		log_error("message %s is not for a device", message_name(message->type));
		return ERR_INTERNAL;
	}
}

/* Receives and handles one message. *closed: the front has closed the socket. */
static enum error receive(struct worker *w, bool *closed)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX] = {-1, -1, -1};
	enum error e = ERR_OK;

	switch (wire_receive(w->socket, &message, fds)) {
	case WIRE_MESSAGE:
		e = handle(w, &message, fds);
		for (int i = 0; i < MESSAGE_FDS_MAX; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		return e;
	case WIRE_NOTHING:
		return ERR_OK;
	case WIRE_CLOSED:
		*closed = true;
		return ERR_OK;
	case WIRE_BROKEN:
		break;
	}
	log_error("the front sent an invalid message");
	return ERR_INTERNAL;
}

/* Receives all messages that have arrived, so that their tiles can be launched together; one if
 * tiles are launched alone. */
static enum error receive_all(struct worker *w, bool *closed)
{
	struct pollfd more = {.fd = w->socket, .events = POLLIN};
	enum error e;

	do
		e = receive(w, closed);
	while (!e && !*closed && worker_small_max(w) > 1 && w->queue.count < WAITING_MAX &&
	       poll(&more, 1, 0) > 0);
	return e;
}

/* True if no tile is queued or in flight. */
static bool is_idle(const struct worker *w)
{
	bool idle = !w->queue.count;

	for (uint32_t i = 0; i < w->lanes; i++)
		idle &= lane_idle(w->lane[i].lane);
	return idle;
}

/* The maximum time of the next wait, in nanoseconds. */
static uint64_t wait_limit(const struct worker *w, uint64_t pause_ms)
{
	uint64_t limit = pause_ms * 1000000, now = now_ns();

	if (w->queue.count && limit > WAIT_CHECK_MS * UINT64_C(1000000))
		limit = WAIT_CHECK_MS * UINT64_C(1000000);
	for (uint32_t i = 0; i < w->lanes; i++) {
		const struct watched_lane *lane = &w->lane[i];

		if (!lane_idle(lane->lane) && lane->look < now + limit)
			limit = lane->look > now ? lane->look - now : 0;
	}
	return limit;
}

/* Has lanes release what they no longer need. Returns milliseconds until the next, or -1. */
static int rest_lanes(struct worker *w)
{
	uint64_t now = now_ms();
	int due = -1;

	for (uint32_t i = 0; i < w->lanes; i++) {
		struct watched_lane *lane = &w->lane[i];
		uint64_t end = lane->jpeg_ms + REST_MS;

		if (!lane->jpeg_ms || !lane_idle(lane->lane))
			continue;
		if (now >= end) {
			lane_rest(lane->lane);
			lane->jpeg_ms = 0;
		} else if (due < 0 || end - now < (uint64_t)due) {
			due = (int)(end - now);
		}
	}
	return due;
}

/* Waits for a message, or until a lane is due. While the worker is idle, the tuner runs: its first
 * step after a pause, each step no longer than a launch. due: milliseconds until the next report,
 * or -1. */
static enum error wait_or_tune(struct worker *w, struct pollfd wait[2], int due, bool *tuning)
{
	struct message_choice choice;
	bool may_tune = is_idle(w) && tuner_ready(w->tuner);
	uint64_t idle = due < 0 ? IDLE_MS : (uint64_t)due;
	uint64_t limit = wait_limit(w, !may_tune ? idle : *tuning ? 0 : TUNE_AFTER_MS);
	struct timespec timeout = {.tv_sec = (time_t)(limit / 1000000000),
	                           .tv_nsec = (long)(limit % 1000000000)};
	int count = ppoll(wait, 2, &timeout, NULL);

	if (count < 0)
		return errno == EINTR ? ERR_OK : ERR_IO;
	*tuning = may_tune && count == 0;
	if (*tuning && tuner_step(w->tuner, &choice)) {
		plans_outdate(w->plans);
		return report_choice(w, &choice);
	}
	return ERR_OK;
}

enum error worker_run(struct worker *w)
{
	struct pollfd wait[2] = {{.fd = w->socket, .events = POLLIN},
	                         {.fd = w->notify_fd, .events = POLLIN}};
	bool closed = false, tuning = false;
	struct message_choice choice;
	enum error e = ERR_OK;
	uint64_t count;
	int due = 0, rest;

	for (uint32_t i = 0; !e && tuner_get(w->tuner, i, &choice); i++)
		e = report_choice(w, &choice);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	programs_prepare(w->programs, false);
	if (w->jpeg_memory)
		programs_prepare(w->programs, true);
	while (!e && !closed) {
		wait[0].revents = wait[1].revents = 0;
		e = wait_or_tune(w, wait, due, &tuning);
		if (wait[1].revents && read(w->notify_fd, &count, sizeof count) < 0 &&
		    errno != EAGAIN)
			return ERR_IO;
		/* A lane may have said that it has finished. */
		for (uint32_t i = 0; wait[1].revents && i < w->lanes; i++)
			if (lane_notifies(w->lane[i].lane))
				w->lane[i].look = 0;
		if (!e)
			e = finish_tiles(w);
		if (!e && wait[0].revents)
			e = receive_all(w, &closed);
		if (!e)
			e = start_tiles(w);
		programs_at_work(w->programs, tuning || !is_idle(w));
		if (!e)
			e = report_programs(w);
		rest = rest_lanes(w); /* before the report of what it releases */
		if (!e)
			e = report_objects(w, &due);
		if (rest >= 0 && (due < 0 || rest < due))
			due = rest;
	}
	return e;
}
