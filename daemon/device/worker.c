/* The worker's loop: one thread that waits for a message or for a tile to be through.
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
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "device/lane.h"
#include "device/live.h"
#include "device/warm.h"

enum {
	LANES_SHARED = 2,
	LANES_OWN = 3,
	LANES_LIMIT = 3,
	TUNE_AFTER_MS = 100,
	WAIT_MS = 10000, /* for a program, at most: less than the front gives a tile */
	WAIT_CHECK_MS = 500,
	OBJECTS_MS = 1000, /* while busy */
	FAILED_MAX = 3,    /* tiles one after another: then a fresh process may do better */
};

struct job_plan {
	struct job_plan *next;
	uint64_t job;
	struct plan *plan; /* NULL if it could not be made: then the answer to its tiles */
	enum error error;
	char reason[sizeof(((struct message_tile_done *)0)->reason)];
};

struct waiting_tile {
	struct waiting_tile *next;
	struct tile tile;
	uint64_t since_ms;
};

struct worker {
	struct programs *programs;
	struct tuner *tuner;
	struct message_programs built;  /* as the front knows it */
	struct message_objects objects; /* likewise */
	uint64_t objects_ms;            /* when it was told */
	const struct device *device;
	int socket, notify_fd;
	struct lane *lane[LANES_LIMIT];
	uint32_t lanes;
	struct device_arena *arenas;
	uint32_t arena_count;
	struct job_plan *plans;
	struct waiting_tile *first, **last; /* tiles without a lane */
	unsigned failed;                    /* tiles since the last that was filtered */
};

uint32_t worker_lanes(const struct worker *worker)
{
	return worker->lanes;
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
	w->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->notify_fd < 0)
		e = ERR_IO;
	if (!e)
		e = programs_new(&w->programs, device, options->kernel_dir, options->cache_dir,
		                 w->notify_fd);
	while (!e && w->lanes < (device->unified ? LANES_SHARED : LANES_OWN)) {
		e = lane_new(device, device->unified, w->notify_fd, &w->lane[w->lanes]);
		w->lanes++;
	}
	if (!e)
		e = warm_up(w->programs, w->lane[0], w->notify_fd);
	if (!e) {
		w->tuner = tuner_new(w->programs, options->state_dir, options->kernel_dir,
		                     options->platform, options->device);
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

static void plans_free(struct worker *w)
{
	struct job_plan *next;

	for (struct job_plan *p = w->plans; p; p = next) {
		next = p->next;
		plan_free(&p->plan);
		live_release(OBJECT_PLAN, p);
	}
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
		lane_free(&w->lane[i]);
	for (uint32_t i = 0; i < w->arena_count; i++)
		device_arena_close(&w->arenas[i]);
	plans_free(w);
	waiting_free(w);
	tuner_free(&w->tuner);
	programs_free(&w->programs);
	if (w->notify_fd >= 0)
		close(w->notify_fd);
	free(w->arenas);
	free(w);
	*worker = NULL;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const struct device_arena *find_arena(const struct worker *w, uint32_t number)
{
	for (uint32_t i = 0; i < w->arena_count; i++)
		if (w->arenas[i].number == number)
			return &w->arenas[i];
	return NULL;
}

/* The link that points to a job's plan, or the end of the list. */
static struct job_plan **find_plan(struct worker *w, uint64_t job)
{
	struct job_plan **link = &w->plans;

	while (*link && (*link)->job != job)
		link = &(*link)->next;
	return link;
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

/* Starts a tile on an idle lane, or answers why not. */
static enum error start_tile(struct worker *w, struct lane *lane, const struct tile *tile)
{
	struct job_plan *job = *find_plan(w, tile->job);
	const struct device_arena *arena = find_arena(w, tile->arena);
	enum error e;
	cl_int code;

	if (job && !job->plan)
		return answer_error(w, tile, job->error, 0, job->reason);
	if (!job || !arena ||
	    !tile_valid(tile, &job->plan->image, &job->plan->chain, arena->memory.in_size,
	                arena->memory.out_size)) {
		log_error("job %llu tile %u: no such plan or arena, or not within it",
		          (unsigned long long)tile->job, tile->index);
		return answer_error(w, tile, ERR_INTERNAL, 0, NULL);
	}
	if (plan_resolve(job->plan, w->programs) != PROGRAM_READY)
		return answer_unbuilt(w, tile, job->plan);
	code = lane_start(lane, job->plan, tile, arena);
	if (!code)
		return ERR_OK;
	e = answer_error(w, tile, ERR_DEVICE, code, NULL);
	w->failed++;
	return opencl_error_fatal(code) || w->failed == FAILED_MAX ? ERR_DEVICE : e;
}

static struct lane *idle_lane(const struct worker *w)
{
	for (uint32_t i = 0; i < w->lanes; i++)
		if (lane_idle(w->lane[i]))
			return w->lane[i];
	return NULL;
}

/* True if a tile has to wait for a program that its plan insists on. */
static bool must_wait(struct worker *w, const struct tile *tile)
{
	const struct job_plan *job = *find_plan(w, tile->job);

	return job && job->plan && plan_resolve(job->plan, w->programs) == PROGRAM_PENDING;
}

static enum error answer_late(struct worker *w, const struct tile *tile)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s is still being compiled on %s; ask again",
	         kernel_name(chain_kernel(&(*find_plan(w, tile->job))->plan->chain)),
	         w->device->name);
	return answer_error(w, tile, ERR_NOT_READY, 0, reason);
}

/* Gives waiting tiles to idle lanes. */
static enum error start_tiles(struct worker *w)
{
	struct waiting_tile **link = &w->first, *tile;
	struct lane *lane;
	bool late;
	enum error e = ERR_OK;

	while (!e && *link && (lane = idle_lane(w))) {
		tile = *link;
		late = must_wait(w, &tile->tile);
		if (late && now_ms() - tile->since_ms < WAIT_MS) {
			link = &tile->next;
			continue;
		}
		*link = tile->next;
		e = late ? answer_late(w, &tile->tile) : start_tile(w, lane, &tile->tile);
		live_release(OBJECT_TILE, tile);
	}
	for (w->last = &w->first; *w->last; w->last = &(*w->last)->next)
		;
	return e;
}

/* Answers for the tiles that are through. A command that failed while it ran is always fatal. */
static enum error finish_tiles(struct worker *w)
{
	struct message_tile_done done;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < w->lanes; i++) {
		if (!lane_finished(w->lane[i]))
			continue;
		lane_finish(w->lane[i], &done);
		e = answer(w, &done);
		if (!e && done.error)
			e = ERR_DEVICE;
		w->failed = 0;
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

/* Says why a job has no plan. That a variant can do nothing of it is for the client to know. */
static void describe_failure(const struct worker *w, const struct chain *chain,
                             struct job_plan *job)
{
	char what[sizeof job->reason - 72];

	if (job->error != ERR_BAD_PARAMETER || chain->variant == VARIANT_ANY) {
		log_error("job %llu has no plan: %s", (unsigned long long)job->job,
		          error_slug(job->error));
		job->error = ERR_INTERNAL;
		return;
	}
	variant_describe(chain_kernel(chain), what, sizeof what);
	snprintf(job->reason, sizeof job->reason, "on %.40s nothing here can be done by %s",
	         w->device->name, what);
}

/* Makes a job's plan. If that fails its tiles are answered with the error; only what no front would
 * send is returned, and the failure of a device that has no room for a few weights. */
static enum error take_plan(struct worker *w, const struct message_plan *message, int chain_fd)
{
	struct chain *chain = malloc(sizeof *chain);
	struct job_plan *job = live_add(OBJECT_PLAN, calloc(1, sizeof *job));
	enum error e = chain && job ? ERR_OK : ERR_MEMORY;

	if (!e)
		e = sealed_read(chain_fd, chain, sizeof *chain);
	if (!e &&
	    (!chain_valid(chain) || !image_valid(&message->image) || *find_plan(w, message->job)))
		e = ERR_INTERNAL;
	if (!e) {
		job->job = message->job;
		job->error = plan_new(w->programs, chain, &message->image, tuner_choose, w->tuner,
		                      &job->plan);
		e = job->error == ERR_DEVICE ? ERR_DEVICE : ERR_OK;
		if (job->error)
			describe_failure(w, chain, job);
		job->next = w->plans;
		w->plans = job;
		job = NULL;
	}
	live_release(OBJECT_PLAN, job);
	free(chain);
	return e;
}

static void drop_plan(struct worker *w, uint64_t job)
{
	struct job_plan **link = find_plan(w, job), *plan = *link;

	if (!plan)
		return;
	*link = plan->next;
	plan_free(&plan->plan);
	live_release(OBJECT_PLAN, plan);
}

static enum error take_tile(struct worker *w, const struct tile *tile)
{
	struct waiting_tile *waiting = live_add(OBJECT_TILE, malloc(sizeof *waiting));

	if (!waiting)
		return ERR_MEMORY;
	*waiting = (struct waiting_tile){.tile = *tile, .since_ms = now_ms()};
	*w->last = waiting;
	w->last = &waiting->next;
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
		return take_plan(w, &message->plan, fds[0]);
	case MSG_PLAN_DROP:
		drop_plan(w, message->plan_drop.job);
		return ERR_OK;
	case MSG_TILE:
		return take_tile(w, &message->tile.tile);
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

/* True if no tile is here. */
static bool is_idle(const struct worker *w)
{
	bool idle = !w->first;

	for (uint32_t i = 0; i < w->lanes; i++)
		idle &= lane_idle(w->lane[i]);
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

/* Waits for a message or a tile. While there is none, the tuner has its turns: the first after a
 * pause, each no longer than a launch. due: milliseconds until there is something to tell, or -1.
 */
static enum error wait_or_tune(struct worker *w, struct pollfd wait[2], int due, bool *tuning)
{
	struct message_choice choice;
	bool may_tune = is_idle(w) && tuner_ready(w->tuner);
	int pause = w->first && (due < 0 || due > WAIT_CHECK_MS) ? WAIT_CHECK_MS : due;
	int count = poll(wait, 2, !may_tune ? pause : *tuning ? 0 : TUNE_AFTER_MS);

	if (count < 0)
		return errno == EINTR ? ERR_OK : ERR_IO;
	*tuning = may_tune && count == 0;
	if (*tuning && tuner_step(w->tuner, &choice))
		return send_choice(w, &choice);
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

	while (!e && !closed) {
		wait[0].revents = wait[1].revents = 0;
		e = wait_or_tune(w, wait, due, &tuning);
		if (wait[1].revents && read(w->notify_fd, &count, sizeof count) < 0 &&
		    errno != EAGAIN)
			return ERR_IO;
		if (!e)
			e = finish_tiles(w);
		if (!e && wait[0].revents)
			e = receive(w, &closed);
		if (!e)
			e = start_tiles(w);
		if (!e)
			e = send_programs(w);
		if (!e)
			e = send_objects(w, &due);
	}
	return e;
}
