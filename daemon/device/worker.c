/* The worker's loop: one thread that waits for a message, and looks at its lanes in between: the
 * longer one has been at work, the less often.
 *
 * The front gives at most a few tiles more than there are lanes, so tiles wait here in a plain
 * list, in the order in which they came. What goes wrong with a tile is said in its answer; after
 * an error that leaves the device in doubt the worker ends, and the front starts another. */
#include "device/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "device/lane.h"
#include "device/live.h"
#include "device/plans.h"
#include "device/warm.h"

enum {
	LANES_SHARED = 2,
	LANES_OWN = 3,
	LANES_LIMIT = 3,
	IDLE_MS = 3600000,
	WAITING_MOST = 128, /* tiles, before some are started */
	TUNE_AFTER_MS = 100,
	TIMER_SLACK_NS = 1000,
	WAIT_MS = 10000, /* for a program, at most: less than the front gives a tile */
	WAIT_CHECK_MS = 500,
	OBJECTS_MS = 1000,      /* while busy */
	FAILED_MAX = 3,         /* tiles one after another: then a fresh process may do better */
	STACK_BYTES = 32 << 20, /* of tiles' input, at most: lanes are to overlap */
	LOOK_NS_LEAST = 10000,
	LOOK_NS_MOST = 500000,
	LOOK_SHARE = 16, /* part of the time that a lane has been at work, until the next look */
};

struct waiting_tile {
	struct waiting_tile *next;
	struct message_tile message;
	uint64_t since_ms;
};

/* A lane, and when to look at it next. */
struct watched_lane {
	struct lane *lane;
	struct known_plan *plan;
	uint64_t started, look; /* nanoseconds */
};

struct worker {
	struct programs *programs;
	struct tuner *tuner;
	struct message_programs built;  /* as the front knows it */
	struct message_objects objects; /* likewise */
	uint64_t objects_ms;            /* when it was told */
	const struct device *device;
	int socket, notify_fd;
	struct watched_lane lane[LANES_LIMIT];
	uint32_t lanes;
	uint32_t stack_most; /* tiles that may share a launch */
	struct device_arena *arenas;
	uint32_t arena_count;
	struct plans *plans;
	struct waiting_tile *first, **last; /* tiles without a lane */
	uint32_t waiting;
	unsigned failed; /* tiles since the last that was filtered */
};

uint32_t worker_lanes(const struct worker *worker)
{
	return worker->lanes;
}

uint32_t worker_stack_most(const struct worker *worker)
{
	return worker->stack_most;
}

enum error worker_new(const struct device *device, const struct worker_options *options, int socket,
                      struct worker **worker)
{
	struct worker *w = calloc(1, sizeof *w);
	enum error e = ERR_OK;

	*worker = w;
	if (!w)
		return ERR_MEMORY;
	w->device = device;
	w->socket = socket;
	w->last = &w->first;
	w->stack_most = device->unified ? 1 : options->stack_most;
	w->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->notify_fd < 0)
		e = ERR_IO;
	if (!e)
		e = programs_new(&w->programs, device, options->kernel_dir, options->cache_dir,
		                 w->notify_fd);
	while (!e && w->lanes < (device->unified ? LANES_SHARED : LANES_OWN)) {
		e = lane_new(device, device->unified, &w->lane[w->lanes].lane);
		w->lanes++;
	}
	if (!e)
		e = warm_up(w->programs, w->lane[0].lane);
	if (!e) {
		w->tuner = tuner_new(w->programs, options->state_dir, options->kernel_dir,
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

static void waiting_free(struct worker *w)
{
	struct waiting_tile *next;

	for (struct waiting_tile *t = w->first; t; t = next) {
		next = t->next;
		live_release(OBJECT_TILE, t);
	}
}

void worker_free(struct worker **worker)
{
	struct worker *w = *worker;

	if (!w)
		return;
	for (uint32_t i = 0; i < LANES_LIMIT; i++)
		lane_free(&w->lane[i].lane);
	for (uint32_t i = 0; i < w->arena_count; i++)
		device_arena_close(&w->arenas[i]);
	plans_free(&w->plans);
	waiting_free(w);
	tuner_free(&w->tuner);
	programs_free(&w->programs);
	if (w->notify_fd >= 0)
		close(w->notify_fd);
	free(w->arenas);
	free(w);
	*worker = NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static const struct device_arena *find_arena(const struct worker *w, uint32_t number)
{
	for (uint32_t i = 0; i < w->arena_count; i++)
		if (w->arenas[i].number == number)
			return &w->arenas[i];
	return NULL;
}

/* Sends an answer; an error that leaves the device in doubt is returned. */
static enum error answer(struct worker *w, const struct message_tile_done *done)
{
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};
	enum error e = wire_send(w->socket, &message, NULL);

	if (e) {
		log_error("cannot send to the front: %s", strerror(errno));
		return e;
	}
	if (done->error == ERR_DEVICE)
		log_error("job %llu tile %u: %s (%d)", (unsigned long long)done->job, done->index,
		          opencl_error_name(done->cl_error), done->cl_error);
	return ERR_OK;
}

/* reason: for the client, or NULL. */
static enum error answer_error(struct worker *w, const struct tile *tile, enum error error,
                               cl_int code, const char *reason)
{
	struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .error = error, .cl_error = code};

	snprintf(done.reason, sizeof done.reason, "%s", reason ? reason : "");
	return answer(w, &done);
}

/* A program that the plan insists on cannot be built. */
static enum error answer_unbuilt(struct worker *w, const struct tile *tile, const struct plan *plan)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s cannot be compiled on %s; the service's log says why",
	         kernel_name(chain_kernel(&plan->chain)), w->device->name);
	return answer_error(w, tile, ERR_DEVICE, CL_BUILD_PROGRAM_FAILURE, reason);
}

/* True if the tile lies within the arena that it names, and fits the plan. */
static bool is_sound(const struct worker *w, const struct plan *plan, const struct tile *tile)
{
	const struct device_arena *arena = find_arena(w, tile->arena);

	return arena && tile_valid(tile, &plan->image, &plan->chain, arena->memory.in_size,
	                           arena->memory.out_size);
}

/* How many tiles are to share a launch: no more than leaves each idle lane its part. */
static uint32_t stack_size(const struct worker *w, const struct tile *tile)
{
	uint64_t bytes = (uint64_t)tile->in_pitch * tile->height;
	uint32_t idle = 0, most = w->stack_most, part;

	for (uint32_t i = 0; i < w->lanes; i++)
		idle += lane_idle(w->lane[i].lane);
	part = idle ? (w->waiting + idle) / idle : 1; /* of all, this tile too, rounded up */
	if (most > part)
		most = part;
	if (most > STACK_BYTES / bytes)
		most = (uint32_t)(STACK_BYTES / bytes);
	return most;
}

/* By place: neighbours are copied together. */
static int compare_places(const void *a, const void *b)
{
	const struct tile *x = &((const struct lane_tile *)a)->tile,
	                  *y = &((const struct lane_tile *)b)->tile;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return x->in < y->in ? -1 : x->in > y->in;
}

/* Takes tiles that may go with the first one out of the waiting ones; returns how many there are
 * then. */
static uint32_t gather(struct worker *w, uint64_t id, const struct plan *plan,
                       struct lane_tile tiles[STACK_MAX])
{
	uint32_t count = 1, most = stack_size(w, &tiles[0].tile);
	struct waiting_tile **link = &w->first, *waiting;

	while (count < most && (waiting = *link)) {
		const struct tile *tile = &waiting->message.tile;

		if (waiting->message.plan != id || !lane_stacks(plan, &tiles[0].tile, tile) ||
		    !is_sound(w, plan, tile)) {
			link = &waiting->next;
			continue;
		}
		tiles[count++] = (struct lane_tile){*tile, find_arena(w, tile->arena)};
		*link = waiting->next;
		live_release(OBJECT_TILE, waiting);
		w->waiting--;
	}
	qsort(tiles, count, sizeof *tiles, compare_places);
	return count;
}

static enum error answer_failed(struct worker *w, const struct lane_tile *tiles, uint32_t count,
                                cl_int code)
{
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < count; i++)
		e = answer_error(w, &tiles[i].tile, ERR_DEVICE, code, NULL);
	w->failed++;
	return opencl_error_fatal(code) || w->failed == FAILED_MAX ? ERR_DEVICE : e;
}

/* Starts a tile on an idle lane, with others that may go with it, or answers why not. */
static enum error start_tile(struct worker *w, struct watched_lane *lane,
                             const struct message_tile *message)
{
	struct known_plan *known = plans_current(w->plans, message->plan);
	struct lane_tile tiles[STACK_MAX] = {{message->tile, find_arena(w, message->tile.arena)}};
	uint32_t count;
	cl_int code;

	if (known && !known->plan)
		return answer_error(w, &message->tile, known->error, 0, known->reason);
	if (!known || !is_sound(w, known->plan, &message->tile)) {
		log_error("job %llu tile %u: no such plan or arena, or not within it",
		          (unsigned long long)message->tile.job, message->tile.index);
		return answer_error(w, &message->tile, ERR_INTERNAL, 0, NULL);
	}
	if (plan_resolve(known->plan, w->programs) != PROGRAM_READY)
		return answer_unbuilt(w, &message->tile, known->plan);
	count = gather(w, message->plan, known->plan, tiles);
	code = lane_start(lane->lane, known->plan, tiles, count);
	if (code)
		return answer_failed(w, tiles, count, code);
	lane->plan = known;
	known->uses++;
	lane->started = now_ns();
	lane->look = lane->started + LOOK_NS_LEAST;
	return ERR_OK;
}

static struct watched_lane *idle_lane(struct worker *w)
{
	for (uint32_t i = 0; i < w->lanes; i++)
		if (lane_idle(w->lane[i].lane))
			return &w->lane[i];
	return NULL;
}

/* True if a tile has to wait for a program that its plan insists on. */
static bool must_wait(struct worker *w, const struct message_tile *tile)
{
	const struct known_plan *known = plans_find(w->plans, tile->plan);

	return known && known->plan && plan_resolve(known->plan, w->programs) == PROGRAM_PENDING;
}

static enum error answer_late(struct worker *w, const struct message_tile *tile)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s is still being compiled on %s; ask again",
	         kernel_name(chain_kernel(&plans_find(w->plans, tile->plan)->plan->chain)),
	         w->device->name);
	return answer_error(w, &tile->tile, ERR_NOT_READY, 0, reason);
}

/* The first tile that need not wait for a program, or has waited for too long; taken out. */
static struct waiting_tile *next_tile(struct worker *w, bool *late)
{
	for (struct waiting_tile **link = &w->first, *tile; (tile = *link); link = &tile->next) {
		*late = must_wait(w, &tile->message);
		if (*late && now_ms() - tile->since_ms < WAIT_MS)
			continue;
		*link = tile->next;
		w->waiting--;
		return tile;
	}
	return NULL;
}

/* Gives waiting tiles to idle lanes. */
static enum error start_tiles(struct worker *w)
{
	struct waiting_tile *tile;
	struct watched_lane *lane;
	bool late;
	enum error e = ERR_OK;

	while (!e && (lane = idle_lane(w)) && (tile = next_tile(w, &late))) {
		e = late ? answer_late(w, &tile->message) : start_tile(w, lane, &tile->message);
		live_release(OBJECT_TILE, tile);
	}
	for (w->last = &w->first; *w->last; w->last = &(*w->last)->next)
		;
	return e;
}

/* Answers for a lane's tiles. A command that failed while it ran is always fatal. */
static enum error finish_lane(struct worker *w, struct watched_lane *lane)
{
	struct message_tile_done done[STACK_MAX];
	uint32_t count = lane_finish(lane->lane, done);
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < count; i++)
		e = answer(w, &done[i]);
	if (!e && done->error)
		e = ERR_DEVICE;
	w->failed = 0;
	plans_release(w->plans, lane->plan);
	return e;
}

/* When to look at a lane again that has not been through. */
static uint64_t look_again(const struct watched_lane *lane, uint64_t now)
{
	uint64_t pause = (now - lane->started) / LOOK_SHARE;

	if (pause < LOOK_NS_LEAST)
		pause = LOOK_NS_LEAST;
	return now + (pause < LOOK_NS_MOST ? pause : LOOK_NS_MOST);
}

/* Looks at the lanes for which it is time. */
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

static enum error take_arena(struct worker *w, const struct message_arena *message, const int *fds)
{
	struct device_arena *grown;
	enum error e;

	if (find_arena(w, message->arena)) {
		log_error("arena %u is already known", message->arena);
		return ERR_INTERNAL;
	}
	grown = reallocarray(w->arenas, w->arena_count + 1, sizeof *grown);
	if (!grown)
		return ERR_MEMORY;
	w->arenas = grown;
	e = device_arena_open(&grown[w->arena_count], w->device, fds[0], message->in_size, fds[1],
	                      message->out_size);
	if (!e)
		grown[w->arena_count++].number = message->arena;
	return e;
}

static enum error drop_arena(struct worker *w, uint32_t number)
{
	for (uint32_t i = 0; i < w->arena_count; i++) {
		if (w->arenas[i].number != number)
			continue;
		device_arena_close(&w->arenas[i]);
		w->arenas[i] = w->arenas[--w->arena_count];
		return ERR_OK;
	}
	log_error("arena %u is not known", number);
	return ERR_INTERNAL;
}

static enum error take_tile(struct worker *w, const struct message_tile *tile)
{
	struct waiting_tile *waiting = live_add(OBJECT_TILE, malloc(sizeof *waiting));

	if (!waiting)
		return ERR_MEMORY;
	*waiting = (struct waiting_tile){.message = *tile, .since_ms = now_ms()};
	*w->last = waiting;
	w->last = &waiting->next;
	w->waiting++;
	return ERR_OK;
}

/* The descriptors stay the caller's. */
static enum error handle(struct worker *w, const struct message *message, const int *fds)
{
	switch ((enum message_type)message->type) {
	case MSG_ARENA:
		return take_arena(w, &message->arena, fds);
	case MSG_ARENA_DROP:
		return drop_arena(w, message->arena_drop.arena);
	case MSG_PLAN:
		return plans_take(w->plans, &message->plan, fds[0]);
	case MSG_PLAN_DROP:
		plans_drop(w->plans, message->plan_drop.plan);
		return ERR_OK;
	case MSG_TILE:
		return take_tile(w, &message->tile);
	default:
		log_error("message %s is not for a device", message_name(message->type));
		return ERR_INTERNAL;
	}
}

/* Receives one message and acts on it. *closed: the front is gone. */
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
	default:
		log_error("the front sent a message that is not one");
		return ERR_INTERNAL;
	}
}

/* Receives what there is by now: tiles that have come together may go together. */
static enum error receive_all(struct worker *w, bool *closed)
{
	struct pollfd more = {.fd = w->socket, .events = POLLIN};
	enum error e;

	do
		e = receive(w, closed);
	while (!e && !*closed && w->waiting < WAITING_MOST && poll(&more, 1, 0) > 0);
	return e;
}

/* True if no tile is here. */
static bool is_idle(const struct worker *w)
{
	bool idle = !w->first;

	for (uint32_t i = 0; i < w->lanes; i++)
		idle &= lane_idle(w->lane[i].lane);
	return idle;
}

static enum error send_choice(const struct worker *w, const struct message_choice *choice)
{
	struct message message = {.type = MSG_CHOICE, .choice = *choice};

	return wire_send(w->socket, &message, NULL);
}

/* Tells the front of programs that have been built since. */
static enum error send_programs(struct worker *w)
{
	struct message message = {.type = MSG_PROGRAMS};

	programs_count(w->programs, &message.programs);
	if (!memcmp(&message.programs, &w->built, sizeof w->built))
		return ERR_OK;
	w->built = message.programs;
	return wire_send(w->socket, &message, NULL);
}

/* Tells the front of the objects that live here: when nothing is left of requests, so that it is
 * not told of every job, but after a while in any case. *due: milliseconds until then, or -1. */
static enum error send_objects(struct worker *w, int *due)
{
	struct message message = {.type = MSG_OBJECTS};
	uint64_t since;

	*due = -1;
	live_count(&message.objects);
	if (!memcmp(&message.objects, &w->objects, sizeof w->objects))
		return ERR_OK;
	since = now_ms() - w->objects_ms;
	if (!live_only_lasting(&message.objects) && since < OBJECTS_MS) {
		*due = (int)(OBJECTS_MS - since);
		return ERR_OK;
	}
	w->objects = message.objects;
	w->objects_ms += since;
	return wire_send(w->socket, &message, NULL);
}

/* What the tuner remembers, for the front to show. */
static enum error send_choices(const struct worker *w)
{
	struct message_choice choice;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && tuner_get(w->tuner, i, &choice); i++)
		e = send_choice(w, &choice);
	return e;
}

/* How long the next wait may last, in nanoseconds. */
static uint64_t wait_limit(const struct worker *w, uint64_t pause_ms)
{
	uint64_t limit = pause_ms * 1000000, now = now_ns();

	if (w->first && limit > WAIT_CHECK_MS * UINT64_C(1000000))
		limit = WAIT_CHECK_MS * UINT64_C(1000000);
	for (uint32_t i = 0; i < w->lanes; i++) {
		const struct watched_lane *lane = &w->lane[i];

		if (!lane_idle(lane->lane) && lane->look < now + limit)
			limit = lane->look > now ? lane->look - now : 0;
	}
	return limit;
}

/* Waits for a message, or until it is time to look at a lane. While there is nothing to do, the
 * tuner has its turns: the first after a pause, each no longer than a launch. due: milliseconds
 * until there is something to tell, or -1. */
static enum error wait_or_tune(struct worker *w, struct pollfd wait[2], int due, bool *tuning)
{
	struct message_choice choice;
	bool may_tune = is_idle(w) && tuner_ready(w->tuner);
	uint64_t idle = due < 0 ? IDLE_MS : (uint64_t)due;
	uint64_t limit = wait_limit(w, !may_tune ? idle : *tuning ? 0 : TUNE_AFTER_MS);
	struct timespec most = {.tv_sec = (time_t)(limit / 1000000000),
	                        .tv_nsec = (long)(limit % 1000000000)};
	int count = ppoll(wait, 2, &most, NULL);

	if (count < 0)
		return errno == EINTR ? ERR_OK : ERR_IO;
	*tuning = may_tune && count == 0;
	if (*tuning && tuner_step(w->tuner, &choice)) {
		plans_outdate(w->plans);
		return send_choice(w, &choice);
	}
	return ERR_OK;
}

enum error worker_run(struct worker *w)
{
	struct pollfd wait[2] = {{.fd = w->socket, .events = POLLIN},
	                         {.fd = w->notify_fd, .events = POLLIN}};
	bool closed = false, tuning = false;
	enum error e = send_choices(w);
	uint64_t count;
	int due = 0;

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	while (!e && !closed) {
		wait[0].revents = wait[1].revents = 0;
		e = wait_or_tune(w, wait, due, &tuning);
		if (wait[1].revents && read(w->notify_fd, &count, sizeof count) < 0 &&
		    errno != EAGAIN)
			return ERR_IO;
		if (!e)
			e = finish_tiles(w);
		if (!e && wait[0].revents)
			e = receive_all(w, &closed);
		if (!e)
			e = start_tiles(w);
		if (!e)
			e = send_programs(w);
		if (!e)
			e = send_objects(w, &due);
	}
	return e;
}
