/* The scheduler. A fair queue chooses the next tile. It goes to the device that would finish it
 * first, counting the work that each device holds; if that device is full, the tile waits for it,
 * so a slow device never delays an image. Tiles of a job that may use only some devices are parked
 * until one of those has room, and other tiles pass them. */
#include "front/workers/scheduler.h"

#include <math.h>
#include <stdio.h>

#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/workers/codecs.h"
#include "front/workers/device_load.h"
#include "front/workers/device_table.h"
#include "front/workers/devices.h"
#include "front/workers/discovery.h"

enum {
	ATTEMPTS_MAX = 2,
	ATTEMPTS_ALL_MAX = 8, /* including those that failed because a process was killed */
	CHECK_MS = 250
};

/* The duration of a job's turn: adjacent tiles are copied to a device together. */
static const double turn_ns = 5e5;
/* A tile predicted to take longer is long, such as one of tall windows, however few its samples
 * are. A device gets few long tiles at a time, so that others can run beside them. */
static const double long_ns = 1e7;
/* Tiles fail when no device has been up for this share of `job-timeout`, and for this long. */
static const double no_device_share = 0.1, no_device_s = 4;

/* Batch work gets a tenth of the devices while other work waits. */
static const double weights[PRIORITIES] = {[PRIORITY_INTERACTIVE] = 9, [PRIORITY_BATCH] = 1};

enum { ALL_CLASSES = (1 << PRIORITIES) - 1 };

static struct fair ready;
static uint64_t returned;
static struct loop_timer check;

unsigned scheduler_waiting(void)
{
	return ready.count;
}

uint64_t scheduler_returned(void)
{
	return returned;
}

/* Returns true if the device is wanted and up, or has neither come up nor failed since it was
 * wanted. One that is being ended was up a moment ago. */
static bool is_hopeful(const struct device *d)
{
	return !d->unwanted && (d->up_since || d->fresh);
}

bool scheduler_has_hope(uint64_t which)
{
	const double s = fmax(no_device_s, no_device_share * (double)config->job_timeout);
	const struct device *d;

	if (!which && !discovery_done())
		return true;
	for (unsigned i = 0; (d = device_get(i)); i++)
		if ((which ? which >> i & 1 : !d->unwanted) &&
		    (is_hopeful(d) || (double)(loop_now() - d->last_up) <= s * 1e9))
			return true;
	return false;
}

/* Returns a task to its codec worker as failed. reason: a text for the client, or NULL. */
static void task_fail(struct task *task, enum error error, const char *reason)
{
	struct message_tile_done done = {
	    .job = task->tile.job, .index = task->tile.index, .error = error};

	snprintf(done.reason, sizeof done.reason, "%s", reason ? reason : "");
	codec_task_done(task, &done);
}

static bool is_long(const struct device *d, const struct task *task)
{
	return task->units * d->load.ns_per_unit > long_ns;
}

/* True if the device may get this tile now. Long tiles leave one lane free (the window is the
 * number of lanes plus 1), so that launches of short tiles run between the pieces of a long one. */
static bool has_room(const struct device *d, const struct task *task)
{
	unsigned held = 0, max = d->window > 3 ? d->window - 2 : 1;

	if (!device_has_room(d, task->tile.form))
		return false;
	if (!is_long(d, task))
		return true;
	for (unsigned i = 0; i < d->held_count; i++)
		held += is_long(d, d->held[i]);
	return held < max;
}

/* Gives a device the next tile, and then more tiles of the same job until its turn ends, even if
 * the device then holds slightly more than its window. */
static void send_turn(struct device *d)
{
	struct fair_flow *flow = fair_next(&ready, ALL_CLASSES);
	double units = turn_ns / d->load.ns_per_unit;

	while (flow->head && units > 0 && d->held_count < WINDOW_MAX) {
		struct task *task = (struct task *)fair_take(&ready, flow);

		units -= task->units;
		if (!task_is_current(task)) {
			task_fail(task, ERR_CANCELLED, NULL);
			continue;
		}
		if (!device_send(d, task)) {
			fair_return(&ready, flow, &task->item);
			break;
		}
		if (flow->head && ((struct task *)flow->head)->prefer)
			break; /* it may go to another device */
	}
}

static void dispatch(void)
{
	struct fair_flow *flow;

	fair_unpark(&ready);
	while ((flow = fair_next(&ready, ALL_CLASSES))) {
		const struct task *task = (struct task *)flow->head;
		/* Preferred devices count at the first attempt only, while one is up. */
		uint64_t allowed = task->attempts ? 0 : task->prefer;
		struct device *d = allowed ? load_soonest(task->units, allowed) : NULL;

		if (!d) {
			allowed = task->devices;
			d = load_soonest(task->units, allowed);
		}
		if (d && has_room(d, task))
			send_turn(d);
		else if (allowed || (d && device_has_room(d, task->tile.form)))
			fair_park(&ready, flow);
		else
			break;
	}
}

static void task_ready(struct task *task)
{
	struct job *job = task->job;

	if (!job->tasks.client && fair_open(&ready, &job->tasks, job->terms.priority,
	                                    job->terms.client, job->terms.share)) {
		task_fail(task, ERR_MEMORY, NULL);
		return;
	}
	if (task->prefer) /* a repetition: the encoder waits for it */
		fair_return(&ready, &job->tasks, &task->item);
	else
		fair_push(&ready, &job->tasks, &task->item);
	dispatch();
}

/* Queues a failed tile again, unless it has failed too often, its run has ended, or it has scans:
 * tiles of pixels replace it. */
static void task_done(struct task *task, const struct message_tile_done *done)
{
	returned++;
	if (done->error == ERR_DEVICE && task_is_current(task) && task->tile.form == TILE_PIXELS &&
	    task->attempts - task->excused < ATTEMPTS_MAX && task->attempts < ATTEMPTS_ALL_MAX) {
		metric_add(METRIC_TILE_RETRIES, NULL, NULL, 1);
		fair_return(&ready, &task->job->tasks, &task->item);
	} else {
		codec_task_done(task, done);
	}
	dispatch();
}

static void fail_flow(struct fair_flow *flow, enum error error, const char *reason)
{
	struct fair_item *item = fair_take_all(&ready, flow), *next;

	for (; item; item = next) {
		next = item->next;
		task_fail((struct task *)item, error, reason);
	}
}

static void job_ended(struct job *job)
{
	if (!job->tasks.client)
		return;
	fail_flow(&job->tasks, ERR_DEVICE, NULL);
	fair_close(&ready, &job->tasks);
}

static void fail_waiting(enum error error)
{
	struct fair_flow *flow;

	fair_unpark(&ready);
	while ((flow = fair_next(&ready, ALL_CLASSES)))
		fail_flow(flow, error, NULL);
}

/* Returns a parked job whose devices have all been down for too long, or NULL. */
static struct fair_flow *hopeless(void)
{
	struct fair_flow *flow = LIST_FIRST(&ready.parked);

	for (; flow; flow = LIST_NEXT(flow, place)) {
		uint64_t allowed = ((struct task *)flow->head)->devices;

		if (allowed && !scheduler_has_hope(allowed))
			break;
	}
	return flow;
}

static void check_devices(void *)
{
	static uint64_t looked;
	bool blind = loop_held_up(&looked, CHECK_MS);
	struct fair_flow *flow;
	struct device *d;

	devices_check(blind);
	for (unsigned i = 0; (d = device_get(i)); i++)
		if (blind || is_hopeful(d))
			d->last_up = loop_now();
	admission_stalled(!devices_up());
	if (!scheduler_has_hope(0))
		fail_waiting(ERR_NO_DEVICE);
	while ((flow = hopeless()))
		fail_flow(flow, ERR_NO_DEVICE, "no device that the request may use is up");
}

static const struct codec_owner for_codecs = {.task_ready = task_ready, .job_ended = job_ended};
static const struct device_owner for_devices = {
    .task_done = task_done, .arena_lost = codecs_retire, .room = dispatch};

enum error scheduler_init(void)
{
	enum error e = loop_timer_init(&check, check_devices, NULL);

	fair_init(&ready, weights, PRIORITIES);
	if (!e)
		e = codecs_init(&for_codecs);
	if (!e)
		e = devices_init(&for_devices);
	if (!e)
		loop_timer_repeat(&check, CHECK_MS);
	return e;
}

void scheduler_fini(void)
{
	devices_fini();
	fail_waiting(ERR_DEVICE);
	codecs_fini();
	plans_fini();
	loop_timer_fini(&check);
}
