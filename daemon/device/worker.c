/* The worker's loop: one thread waits for messages and polls its lanes. The longer a lane has been
 * at work, the less often it is polled. A lane that reports its own end is hardly polled.
 *
 * An error of a tile is reported in its answer. After an error that leaves the device in doubt the
 * worker ends, and the front starts another. */
#include "device/worker.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "device/lane.h"
#include "device/plans.h"

enum {
	LANES = 3,
	LANES_POOL = 2,       /* with a pool, beside those for small tiles */
	LANES_PER_THREAD = 2, /* per pool thread: a tile in work and the next one */
	LANES_LIMIT = 128,
	IDLE_MS = 3600000,
	WAITING_MAX = 128, /* tiles received before some are started */
	TUNE_AFTER_MS = 100,
	TIMER_SLACK_NS = 1000,
	WAIT_CHECK_MS = 500,    /* between checks of tiles that wait for a program */
	FAILED_MAX = 3,         /* consecutive failed tiles before the process is replaced */
	STACK_BYTES = 32 << 20, /* maximum input of a stack, so that lanes overlap */
	/* largest small tile with scans, in pixels, and number of lanes for such tiles */
	SMALL_SCAN = 2048 * 2048,
	LANES_SMALL = 2,
	LOOK_NS_MIN = 10000,
	LOOK_NS_MAX = 500000,
	LOOK_SHARE = 16,   /* the next poll comes after 1/16 of a lane's time so far */
	REST_MS = 5000,    /* time until a lane without JPEGs releases its buffers for them */
	OBJECTS_MS = 1000, /* between counts of objects while jobs run, and while none does */
	LASTING_MS = 20,
	KEPT_MAX = 1 << 20, /* bytes that lanes for small tiles keep */
};

static const uint64_t ms = 1000000; /* nanoseconds */

/* A lane and the time of its next poll. */
struct watched_lane {
	struct lane *lane;
	struct known_plan *plan; /* the plan of the tiles in flight; NULL: it is idle */
	bool small;              /* true if they are small scans, is_small_scan() */
	uint64_t started, look;  /* nanoseconds */
	/* time when it releases buffers for JPEGs unless it is at work; 0: never */
	uint64_t rest_ms;
};

/* A tile that waits for a lane, and possibly for a program. */
struct queued_tile {
	TAILQ_ENTRY(queued_tile) place;
	struct message_tile message;
	uint64_t since_ms;
	uint32_t wait_ms; /* maximum wait for a program; 0: none */
	bool told;        /* the front knows that it waits for one */
};

struct worker {
	struct programs *programs;
	struct tuner *tuner;
	struct pool *pool; /* for a device that works in place, otherwise NULL */
	const struct device *device;
	int socket, notify_fd;
	struct message_programs programs_sent; /* the counts that the front knows */
	struct message_objects objects_sent;
	uint64_t objects_ms;     /* time of the last message */
	uint64_t objects_due_ms; /* and of the next; 0: none */
	uint32_t choices_sent;
	struct watched_lane lane[LANES_LIMIT];
	uint32_t lanes;
	uint32_t stack_max; /* tiles that may share a launch */
	GHashTable *arenas; /* struct device_arena by the front's numbers */
	struct plans plans;
	TAILQ_HEAD(queued_tiles, queued_tile)
	queue; /* in order of arrival: a few more tiles than lanes */
	uint32_t queued;
	unsigned failed; /* consecutive failed tiles */
	uint64_t jpeg_memory;
	struct jpeg_work work[STACK_MAX]; /* for the stack that is being started */
};

/* A lane's share of memory for JPEGs. */
static uint64_t jpeg_share(const struct worker *w)
{
	return w->jpeg_memory / w->lanes;
}

void worker_describe(const struct worker *w, struct message_ready *ready)
{
	const struct device *device = w->device;
	const uint64_t pixels = jpeg_share(w) / JPEG_PIXEL_BYTES;

	*ready = (struct message_ready){.memory = device->memory,
	                                .lanes = w->pool ? LANES_POOL : w->lanes,
	                                .small_max = w->pool ? w->lanes : w->stack_max,
	                                .jpeg_pixels = (uint32_t)MIN(pixels, JPEG_PIXELS_MAX)};
	memcpy(ready->name, device->name, sizeof ready->name);
	memcpy(ready->driver, device->driver, sizeof ready->driver);
}

static void arena_free(void *arena)
{
	device_arena_close(arena);
	free(arena);
}

enum error worker_new(const struct device *device, const struct start *start, int socket,
                      struct worker **worker)
{
	const char *kernel_dir = *start->kernel_dir ? start->kernel_dir : NULL;
	struct worker *w = calloc(1, sizeof *w);
	uint32_t lanes = LANES;
	enum error e = ERR_OK;

	*worker = w;
	if (!w)
		return ERR_MEMORY;
	w->device = device;
	w->socket = socket;
	w->arenas = g_hash_table_new_full(NULL, NULL, NULL, arena_free);
	TAILQ_INIT(&w->queue);
	w->stack_max = device->in_place ? 1 : start->stack;
	w->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->notify_fd < 0)
		e = ERR_IO;
	if (!e)
		e = programs_new(&w->programs, device, kernel_dir,
		                 *start->cache_dir ? start->cache_dir : NULL, start->cache_size,
		                 start->programs, w->notify_fd);
	if (!e && device->in_place)
		e = pool_new(device, w->notify_fd, &w->pool);
	if (w->pool)
		lanes =
		    LANES_POOL + (device->serial ? LANES_PER_THREAD * pool_threads(w->pool) : 0);
	for (; !e && w->lanes < lanes && w->lanes < LANES_LIMIT; w->lanes++)
		e = lane_new(device, w->pool, &w->lane[w->lanes].lane);
	w->jpeg_memory = (uint64_t)(start->jpeg_memory * (double)device->memory);
	for (uint32_t i = 0; !e && w->jpeg_memory && i < w->lanes; i++)
		lane_allow_jpeg(w->lane[i].lane, w->programs, jpeg_share(w));
	if (!e) {
		w->tuner = tuner_new(w->programs, w->pool,
		                     *start->state_dir ? start->state_dir : NULL, kernel_dir);
		plans_init(&w->plans, w->programs, w->tuner);
		e = w->tuner ? ERR_OK : ERR_MEMORY;
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
	struct queued_tile *tile;

	if (!w)
		return;
	for (uint32_t i = 0; i < LANES_LIMIT; i++) {
		lane_free(&w->lane[i].lane);
		if (w->lane[i].plan)
			plans_release(w->lane[i].plan);
	}
	pool_free(&w->pool);
	g_hash_table_destroy(w->arenas);
	plans_fini(&w->plans);
	while ((tile = TAILQ_FIRST(&w->queue))) {
		TAILQ_REMOVE(&w->queue, tile, place);
		object_release(OBJECT_TILE, tile);
	}
	tuner_free(&w->tuner);
	programs_free(&w->programs);
	file_close(&w->notify_fd);
	free(w);
	*worker = NULL;
}

/* ---- messages to the front: after a failure, wire_send()'s, it cannot be reached any more ---- */

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

/* Answers a tile that was not filtered. code: OpenCL's, for ERR_DEVICE; reason: for the client. */
static enum error report_error(const struct worker *w, const struct tile *tile, enum error error,
                               cl_int code, const char *reason)
{
	struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .error = error, .cl_error = code};

	snprintf(done.reason, sizeof done.reason, "%s", reason);
	return report_tile(w, &done);
}

/* Answers a JPEG that this device cannot do. flags: the reasons. */
static enum error report_flags(const struct worker *w, const struct tile *tile, uint32_t flags)
{
	const struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .stack = 1, .jpeg_flags = flags};

	return report_tile(w, &done);
}

/* Reports that a tile waits for a program, for at most max_ms milliseconds; 0: no longer. */
static enum error report_waits(const struct worker *w, const struct tile *tile, uint32_t max_ms)
{
	struct message message = {.type = MSG_TILE_WAITS,
	                          .tile_waits = {tile->job, tile->index, max_ms}};

	return wire_send(w->socket, &message, NULL);
}

/* Sends the tuner's new choices, for the front to display. */
static enum error report_choices(struct worker *w)
{
	struct message message = {.type = MSG_CHOICE};
	uint32_t count;
	const struct message_choice *choices = tuner_choices(w->tuner, &count);
	enum error e = ERR_OK;

	while (!e && w->choices_sent < count) {
		message.choice = choices[w->choices_sent++];
		e = wire_send(w->socket, &message, NULL);
	}
	return e;
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
 * otherwise once a second, to save messages. */
static enum error report_objects(struct worker *w)
{
	struct message message = {.type = MSG_OBJECTS};
	const bool lasting = object_counts_get(&message.objects),
	           changed = memcmp(&message.objects, &w->objects_sent, sizeof w->objects_sent);
	const uint64_t now = now_ms(), due = w->objects_ms + (lasting ? LASTING_MS : OBJECTS_MS);

	w->objects_due_ms = changed && now < due ? due : 0;
	if (!changed || now < due)
		return ERR_OK;
	w->objects_sent = message.objects;
	w->objects_ms = now;
	return wire_send(w->socket, &message, NULL);
}

/* ---- arenas: the front drops those that no tile in flight is in ---- */

/* The arena with this number, or NULL. */
static const struct device_arena *find_arena(const struct worker *w, uint32_t number)
{
	return g_hash_table_lookup(w->arenas, GUINT_TO_POINTER(number));
}

static enum error add_arena(struct worker *w, const struct message_arena *message, const int fds[2])
{
	struct device_arena *arena;
	enum error e;

	if (find_arena(w, message->arena)) {
		log_error("arena %u is already known", message->arena);
		return ERR_INTERNAL;
	}
	arena = calloc(1, sizeof *arena);
	if (!arena)
		return ERR_MEMORY;
	e = device_arena_open(arena, w->device, fds[0], message->in_size, fds[1],
	                      message->out_size);
	if (e)
		free(arena);
	else
		g_hash_table_insert(w->arenas, GUINT_TO_POINTER(message->arena), arena);
	return e;
}

/* True if the tile lies within its arena and fits the plan's image and chain. */
static bool is_within_arena(const struct worker *w, const struct tile *tile,
                            const struct plan *plan)
{
	const struct device_arena *arena = find_arena(w, tile->arena);

	return arena && tile_valid(tile, &plan->image, &plan->chain, arena->memory.in_size,
	                           arena->memory.out_size);
}

/* ---- tiles ---- */

/* Returns true if the device is in doubt after this error, or after any (fatal). The worker then
 * ends without an answer: the front counts its tiles as lost, and they are filtered again. An
 * answered tile would come back to this device before the front knows. */
static bool is_in_doubt(struct worker *w, const struct tile *tile, cl_int code, bool fatal)
{
	w->failed++;
	if (!fatal && !opencl_error_fatal(code) && w->failed < FAILED_MAX)
		return false;
	log_error("job %" PRIu64 " tile %u: %s (%d)", tile->job, tile->index,
	          opencl_error_name(code), code);
	return true;
}

/* Answers a tile whose kernel is not compiled yet, or cannot be. If a compiler process could do it,
 * or there is none, the device is in doubt: without a general kernel the worker ends. */
static enum error answer_unbuilt(const struct worker *w, const struct tile *tile,
                                 enum program_state state, enum kernel kernel)
{
	const bool pending = state == PROGRAM_PENDING;
	char reason[sizeof((struct message_tile_done *)0)->reason];

	if (state == PROGRAM_FAILED && variant_is_general(kernel)) {
		log_error("%s cannot be compiled", kernel_name(kernel));
		return ERR_DEVICE;
	}
	snprintf(reason, sizeof reason,
	         pending ? "%s is still being compiled on %s; ask again"
	                 : "%s cannot be compiled on %s; the service's log says why",
	         kernel_name(kernel), w->device->name);
	return report_error(w, tile, pending ? ERR_NOT_READY : ERR_DEVICE,
	                    pending ? 0 : CL_BUILD_PROGRAM_FAILURE, reason);
}

/* Removes a queued tile, and tells the front if it no longer waits for a program. */
static enum error remove_tile(struct worker *w, struct queued_tile *tile)
{
	enum error e = tile->told ? report_waits(w, &tile->message.tile, 0) : ERR_OK;

	TAILQ_REMOVE(&w->queue, tile, place);
	w->queued--;
	object_release(OBJECT_TILE, tile);
	return e;
}

/* Returns true for a tile with scans whose launches take longer than their work: all waiting ones
 * go together, and others gather while their lanes are at work. (256x256 JPEGs on an H100: 9500 to
 * 13000 a second.) */
static bool is_small_scan(const struct tile *tile)
{
	return tile->form && (uint64_t)tile->width * tile->height <= SMALL_SCAN;
}

/* Returns the first tile that can start, with its plan up to date, or that has waited too long for
 * a program; NULL if there is none. Programs that cannot be made are not waited for. */
static struct queued_tile *next_tile(struct worker *w)
{
	const uint64_t now = now_ms();
	struct queued_tile *tile = TAILQ_FIRST(&w->queue);
	enum kernel lacks;
	uint32_t small = 0;

	for (uint32_t i = 0; i < w->lanes; i++)
		small += w->lane[i].plan && w->lane[i].small;
	for (; tile; tile = TAILQ_NEXT(tile, place)) {
		const struct known_plan *known;
		struct plan *plan;

		if (small >= LANES_SMALL && is_small_scan(&tile->message.tile))
			continue;
		known = plans_current(&w->plans, tile->message.plan);
		plan = known ? known->plan : NULL;
		tile->wait_ms = 0;
		if (plan && plan_resolve(plan, w->programs, tile->message.tile.form, &lacks) ==
		                PROGRAM_PENDING)
			tile->wait_ms =
			    variant_is_general(lacks) ? GENERAL_WAIT_MS : PROGRAM_WAIT_MS;
		if (now - tile->since_ms >= tile->wait_ms)
			break;
	}
	return tile;
}

/* Orders tiles by their place in the arenas, because neighbours are copied together. */
static int compare_places(const void *a, const void *b)
{
	const struct tile *x = &((const struct lane_tile *)a)->tile,
	                  *y = &((const struct lane_tile *)b)->tile;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return x->in < y->in ? -1 : x->in > y->in;
}

static uint32_t count_idle(const struct worker *w)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->lanes; i++)
		count += !w->lane[i].plan;
	return count;
}

/* Appends a tile to a stack, or answers it if the description of its scans is not valid. */
static enum error add_tile(struct worker *w, const struct plan *plan, const struct tile *tile,
                           struct lane_tile *tiles, uint32_t *count)
{
	const struct device_arena *arena = find_arena(w, tile->arena);
	struct jpeg_work *work = &w->work[*count];

	if (tile->form &&
	    !jpeg_work_take(work, (const char *)arena->memory.in + tile->work, tile, plan))
		return report_flags(w, tile, JPEG_FLAG_WORK);
	tiles[(*count)++] = (struct lane_tile){*tile, arena, work};
	return ERR_OK;
}

/* Makes a stack of a tile and of waiting tiles of its plan that fit: at most an idle lane's share
 * of those waiting. *count: 0 if all are answered already. */
static enum error fill_stack(struct worker *w, const struct watched_lane *lane,
                             const struct known_plan *known, const struct tile *first,
                             struct lane_tile *tiles, uint32_t *count)
{
	const struct plan *plan = known->plan;
	const uint64_t bytes = (uint64_t)first->in_pitch * first->height; /* JPEG: 0 */
	const uint32_t idle = is_small_scan(first) ? 1 : count_idle(w),
	               part = (w->queued + idle) / idle; /* with this tile, rounded up */
	uint64_t scans = 0 /* bytes that JPEGs may have */, used = first->in_size;
	uint32_t room = MIN(w->stack_max, part), jpegs = room;
	struct queued_tile *queued, *next = TAILQ_FIRST(&w->queue);
	enum error e;

	if (bytes)
		room = (uint32_t)MIN(room, MAX(STACK_BYTES / bytes, 1));
	if (first->form)
		jpegs = lane_jpeg_room(lane->lane, plan, first, &scans);
	room = MIN(room, jpegs);
	*count = 0;
	if (!room || used > scans)
		return report_flags(w, first, JPEG_FLAG_DEVICE);
	e = add_tile(w, plan, first, tiles, count);
	while (!e && *count < room && (queued = next)) {
		const struct tile tile = queued->message.tile;

		next = TAILQ_NEXT(queued, place);
		if (queued->message.plan != known->id || !lane_stacks(plan, first, &tile) ||
		    !is_within_arena(w, &tile, plan) || tile.in_size > scans - used)
			continue;
		used += tile.in_size;
		e = remove_tile(w, queued);
		if (!e)
			e = add_tile(w, plan, &tile, tiles, count);
	}
	qsort(tiles, *count, sizeof *tiles, compare_places);
	return e;
}

/* Returns the next time to poll a lane that is still at work. */
static uint64_t look_again(const struct watched_lane *lane, uint64_t now)
{
	const uint64_t pause = MAX((now - lane->started) / LOOK_SHARE, LOOK_NS_MIN);

	return now + (lane_notifies(lane->lane) ? LOOK_NS_MAX : MIN(pause, LOOK_NS_MAX));
}

/* Starts a tile on an idle lane, with others that fit its stack, or answers with an error. */
static enum error start_tile(struct worker *w, struct watched_lane *lane,
                             const struct message_tile *message)
{
	const struct tile *tile = &message->tile;
	struct known_plan *known = plans_find(&w->plans, message->plan);
	struct plan *plan = known ? known->plan : NULL;
	struct lane_tile tiles[STACK_MAX];
	enum program_state state;
	enum kernel lacks;
	uint32_t count;
	cl_int code;
	enum error e;

	if (known && !plan)
		return report_error(w, tile, known->error, 0, known->reason);
	if (!known || !is_within_arena(w, tile, plan)) {
		log_error("job %" PRIu64 " tile %u: unknown plan or arena, or outside the arena",
		          tile->job, tile->index);
		return report_error(w, tile, ERR_INTERNAL, 0, "");
	}
	state = plan_resolve(plan, w->programs, tile->form, &lacks);
	if (state != PROGRAM_READY)
		return answer_unbuilt(w, tile, state, lacks);
	/* Compilations requested for this plan may delay the launch: report them first. */
	e = report_programs(w);
	if (e)
		return e;
	e = fill_stack(w, lane, known, tile, tiles, &count);
	if (e || !count)
		return e;
	if (tile->form)
		lane->rest_ms = now_ms() + REST_MS;
	code = lane_start(lane->lane, plan, tiles, count);
	if (code) {
		e = is_in_doubt(w, &tiles[0].tile, code, false) ? ERR_DEVICE : ERR_OK;
		for (uint32_t i = 0; !e && i < count; i++)
			e = report_error(w, &tiles[i].tile, ERR_DEVICE, code, "");
		return e;
	}
	lane->plan = known;
	lane->small = is_small_scan(tile);
	known->uses++;
	lane->started = now_ns();
	lane->look = look_again(lane, lane->started);
	return ERR_OK;
}

static struct watched_lane *idle_lane(struct worker *w)
{
	for (uint32_t i = 0; i < w->lanes; i++)
		if (!w->lane[i].plan)
			return &w->lane[i];
	return NULL;
}

static enum error start_tiles(struct worker *w)
{
	struct watched_lane *lane;
	struct queued_tile *queued;
	struct message_tile tile;
	enum error e = ERR_OK;

	while (!e && (lane = idle_lane(w)) && (queued = next_tile(w))) {
		tile = queued->message;
		e = remove_tile(w, queued);
		if (!e)
			e = start_tile(w, lane, &tile);
	}
	for (queued = TAILQ_FIRST(&w->queue); !e && queued; queued = TAILQ_NEXT(queued, place)) {
		if (!queued->wait_ms || queued->told)
			continue;
		queued->told = true;
		e = report_waits(w, &queued->message.tile, queued->wait_ms);
	}
	return e;
}

/* Answers a lane's tiles. The pool fails before or while it launches; elsewhere a running command
 * failed, and the device is in doubt. */
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
		lane_trim(lane->lane, KEPT_MAX);
	if (lane->rest_ms)
		lane->rest_ms = now_ms() + REST_MS;
	plans_release(lane->plan);
	lane->plan = NULL;
	return e;
}

/* Answers finished tiles, and releases buffers of lanes that have been idle for long. */
static enum error finish_tiles(struct worker *w)
{
	uint64_t now = now_ns();
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < w->lanes; i++) {
		struct watched_lane *lane = &w->lane[i];

		if (!lane->plan && lane->rest_ms && now >= lane->rest_ms * ms) {
			lane_rest(lane->lane);
			lane->rest_ms = 0;
		}
		if (!lane->plan || lane->look > now)
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
	struct queued_tile *tile;

	switch ((enum message_type)message->type) {
	case MSG_ARENA:
		return add_arena(w, &message->arena, fds);
	case MSG_ARENA_DROP:
		if (g_hash_table_remove(w->arenas, GUINT_TO_POINTER(message->arena_drop.arena)))
			return ERR_OK;
		log_error("unknown arena %u", message->arena_drop.arena);
		return ERR_INTERNAL;
	case MSG_PLAN:
		return plans_add(&w->plans, &message->plan, fds[0]);
	case MSG_PLAN_DROP:
		plans_drop(&w->plans, message->plan_drop.plan);
		return ERR_OK;
	case MSG_TILE:
		tile = object_add(OBJECT_TILE, malloc(sizeof *tile));
		if (!tile)
			return ERR_MEMORY;
		*tile = (struct queued_tile){.message = message->tile, .since_ms = now_ms()};
		TAILQ_INSERT_TAIL(&w->queue, tile, place);
		w->queued++;
		return ERR_OK;
	default:
		log_error("message %s is not for a device", message_name(message->type));
		return ERR_INTERNAL;
	}
}

/* Receives and handles all messages that have arrived, so that their tiles can be launched
 * together; only one if tiles are launched alone. *closed: the front has closed the socket. */
static enum error receive_all(struct worker *w, bool *closed)
{
	const bool together = (w->pool ? w->lanes : w->stack_max) > 1;
	struct pollfd more = {.fd = w->socket, .events = POLLIN};
	enum error e = ERR_OK;

	do {
		struct message message;
		int fds[MESSAGE_FDS_MAX];
		const enum wire_result result = wire_receive(w->socket, &message, fds);

		*closed = result == WIRE_CLOSED;
		if (result == WIRE_BROKEN) {
			log_error("the front sent an invalid message");
			return ERR_INTERNAL;
		}
		if (result != WIRE_MESSAGE)
			continue;
		e = handle(w, &message, fds);
		for (unsigned i = 0; i < message_fds(message.type); i++)
			close(fds[i]);
	} while (!e && !*closed && together && w->queued < WAITING_MAX && poll(&more, 1, 0) > 0);
	return e;
}

static bool is_idle(const struct worker *w)
{
	return !w->queued && count_idle(w) == w->lanes;
}

/* Returns the time until something is due without a message, in nanoseconds. */
static uint64_t time_left(const struct worker *w)
{
	const uint64_t now = now_ns();
	uint64_t due = now + IDLE_MS * ms;

	if (w->queued)
		due = now + WAIT_CHECK_MS * ms;
	if (w->objects_due_ms && w->objects_due_ms * ms < due)
		due = w->objects_due_ms * ms;
	for (uint32_t i = 0; i < w->lanes; i++) {
		const struct watched_lane *lane = &w->lane[i];
		const uint64_t next = lane->plan ? lane->look : lane->rest_ms * ms;

		if (next < due && (lane->plan || next))
			due = next;
	}
	return due > now ? due - now : 0;
}

/* Waits for a message, or until a lane is due. While the worker is idle, the tuner runs: its first
 * step after a pause, each step no longer than a launch. */
static enum error wait_or_tune(struct worker *w, struct pollfd wait[2], bool *tuning)
{
	const bool may_tune = is_idle(w) && tuner_ready(w->tuner);
	const uint64_t limit = !may_tune ? time_left(w) : *tuning ? 0 : TUNE_AFTER_MS * ms;
	struct timespec timeout = {.tv_sec = (time_t)(limit / 1000000000),
	                           .tv_nsec = (long)(limit % 1000000000)};
	int count = ppoll(wait, 2, &timeout, NULL);

	if (count < 0)
		return errno == EINTR ? ERR_OK : ERR_IO;
	*tuning = may_tune && count == 0;
	if (*tuning)
		tuner_step(w->tuner);
	return report_choices(w);
}

enum error worker_run(struct worker *w)
{
	struct pollfd wait[2] = {{.fd = w->socket, .events = POLLIN},
	                         {.fd = w->notify_fd, .events = POLLIN}};
	bool closed = false, tuning = false;
	enum error e = report_choices(w);

	w->objects_due_ms = now_ms();
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	programs_prepare(w->programs, false);
	if (w->jpeg_memory)
		programs_prepare(w->programs, true);
	while (!e && !closed) {
		wait[0].revents = wait[1].revents = 0;
		e = wait_or_tune(w, wait, &tuning);
		if (wait[1].revents)
			loop_await(w->notify_fd);
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
		programs_at_work(w->programs, tuning || count_idle(w) < w->lanes);
		if (!e)
			e = report_programs(w);
		if (!e)
			e = report_objects(w);
	}
	return e;
}
