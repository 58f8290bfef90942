/* The scheduler. Which tile is next is for a fair queue to say. It goes to the device that would
 * finish it first, counting what each already holds; if that device is full the tile waits for it,
 * so a slow device never delays an image. The tiles of a job that may use only some of the devices
 * wait aside for those, and others pass. */
#include "front/workers/scheduler.h"

#include <math.h>
#include <stdio.h>

#include "common/log.h"
#include "front/base/loop.h"
#include "front/base/metrics.h"
#include "front/workers/codec_reports.h"
#include "front/workers/codecs.h"
#include "front/workers/cost.h"
#include "front/workers/device_table.h"
#include "front/workers/devices.h"
#include "front/workers/load.h"

enum {
	ATTEMPTS_MAX = 2,
	ATTEMPTS_MOST = 8, /* with those that failed by somebody else's doing */
	CHECK_MS = 500
};

/* A tile should not hold a device for longer; nor be smaller than a launch is worth. */
static const double tile_ns = 1e6, samples_least = 65536;
/* So many times slower than the fastest: such a device does not make tiles small for all. */
static const double too_slow = 16;
/* A job's turn: tiles that lie side by side are copied to a device together. */
static const double turn_ns = 5e5;
/* A tile that is predicted to take longer, as those of tall windows do however few their samples
 * are, is a long one: of these a device has so few that others are beside them. */
static const double long_ns = 1e7;
/* Tiles fail when no device has been up for so long. */
static const uint64_t no_device_ns = 4000000000u;

/* Batch work gets a tenth of the devices while other work waits. */
static const double weights[PRIORITIES] = {[PRIORITY_INTERACTIVE] = 9, [PRIORITY_BATCH] = 1};

enum { ALL_CLASSES = (1 << PRIORITIES) - 1 };

static struct fair ready;
static uint64_t returned;
/* When each device, and any, was last seen up or about to be, or first looked at. */
static uint64_t last_up[DEVICES_MAX], any_last_up;
static struct loop_timer check;

unsigned scheduler_waiting(void)
{
	return ready.count;
}

uint64_t scheduler_returned(void)
{
	return returned;
}

static void count_ready(void)
{
	metric_set(METRIC_TILES_QUEUED, NULL, NULL, ready.count);
}

/* reason: for the client, or NULL. */
static void task_fail(struct task *task, enum error error, const char *reason)
{
	struct message_tile_done done = {
	    .job = task->tile.job, .index = task->tile.index, .error = error};

	snprintf(done.reason, sizeof done.reason, "%s", reason ? reason : "");
	codec_task_done(task, &done);
}

/* The device that would finish these units of work first, full or not; NULL if none is up. allowed:
 * a bit for each that may be used, or 0 for any. */
static struct device *device_soonest(double units, uint64_t allowed)
{
	for (;;) {
		unsigned best = load_soonest(devices_count(), units, allowed);

		if (best == devices_count() || device_state(device_get(best)) == DEVICE_UP)
			return best < devices_count() ? device_get(best) : NULL;
		load_open(best, false);
	}
}

static bool is_long(const struct device *d, const struct task *task)
{
	return task->units * load_ns_per_unit(d->worker.number) > long_ns;
}

/* True if the device may have this tile now. A window is a tile more than the device has lanes:
 * this leaves a lane to short tiles, whose launches come between the pieces of a long one's. */
static bool has_room(const struct device *d, const struct task *task)
{
	unsigned held = 0, most = d->window > 3 ? d->window - 2 : 1;

	if (!device_has_room(d))
		return false;
	if (!is_long(d, task))
		return true;
	for (unsigned i = 0; i < d->held_count; i++)
		held += is_long(d, d->held[i]);
	return held < most;
}

/* The device for a task, full or not, and among which it was chosen (0: any). Those that it is to
 * prefer count only while one of them is up, and for the first attempt. */
static struct device *device_for(const struct task *task, uint64_t *allowed)
{
	struct device *d;

	*allowed = task->attempts ? 0 : task->prefer;
	d = *allowed ? device_soonest(task->units, *allowed) : NULL;
	if (d)
		return d;
	*allowed = task->job->terms.devices;
	return device_soonest(task->units, *allowed);
}

/* Gives a device the tile that is next, and then more of the same job for as long as its turn
 * lasts, even if that is a little more than it had room for. */
static void send_turn(struct device *d)
{
	struct fair_flow *flow = fair_next(&ready, ALL_CLASSES);
	double units = turn_ns / load_ns_per_unit(d->worker.number);

	while (flow->head && units > 0 && d->held_count < WINDOW_MAX) {
		struct task *task = (struct task *)fair_take(&ready, flow);

		units -= task->units;
		if (!device_send(d, task)) {
			fair_return(&ready, flow, &task->item);
			break;
		}
		if (flow->head && ((struct task *)flow->head)->prefer)
			break; /* perhaps another device */
	}
}

static void dispatch(void)
{
	struct fair_flow *flow;

	fair_unpark(&ready);
	while ((flow = fair_next(&ready, ALL_CLASSES))) {
		const struct task *task = (struct task *)flow->head;
		uint64_t allowed;
		struct device *d = device_for(task, &allowed);

		if (d && has_room(d, task))
			send_turn(d);
		else if (allowed || (d && device_has_room(d)))
			fair_park(&ready, flow);
		else
			break;
	}
	count_ready();
}

static void task_ready(struct task *task)
{
	struct job *job = task->job;

	if (!job->tasks.client && fair_open(&ready, &job->tasks, job->terms.priority,
	                                    job->terms.client, job->terms.share)) {
		task_fail(task, ERR_MEMORY, NULL);
		return;
	}
	if (task->prefer) /* a repetition, which the encoder waits for */
		fair_return(&ready, &job->tasks, &task->item);
	else
		fair_push(&ready, &job->tasks, &task->item);
	dispatch();
}

/* A tile that its device could not filter is tried once more, elsewhere if there is another. */
static bool task_retry(struct task *task)
{
	if (!task_is_current(task) || task->attempts - task->excused >= ATTEMPTS_MAX ||
	    task->attempts >= ATTEMPTS_MOST)
		return false;
	metric_add(METRIC_TILE_RETRIES, NULL, NULL, 1);
	fair_return(&ready, &task->job->tasks, &task->item);
	return true;
}

static void task_done(struct task *task, const struct message_tile_done *done)
{
	returned++;
	if (done->error != ERR_DEVICE || !task_retry(task))
		codec_task_done(task, done);
}

static void task_lost(struct task *task)
{
	returned++;
	if (!task_retry(task))
		task_fail(task, ERR_DEVICE, NULL);
	dispatch();
}

static void fail_flow(struct fair_flow *flow, enum error error, const char *reason)
{
	struct fair_item *item = fair_take_all(&ready, flow), *next;

	count_ready();
	for (; item; item = next) {
		next = item->next;
		task_fail((struct task *)item, error, reason);
	}
}

/* Takes the tasks of a job out of the queue. */
static void job_ended(struct job *job)
{
	if (!job->tasks.client)
		return;
	fail_flow(&job->tasks, ERR_DEVICE, NULL);
	fair_close(&ready, &job->tasks);
}

/* By the slowest device, but for those that are too slow to matter beside the fastest. */
static uint64_t samples_max(const struct chain *chain)
{
	double fastest = INFINITY, slowest = 0, samples;

	for (unsigned i = 0; i < devices_count(); i++)
		if (!device_get(i)->unwanted)
			fastest = fmin(fastest, load_ns_per_unit(i));
	for (unsigned i = 0; i < devices_count(); i++)
		if (!device_get(i)->unwanted && load_ns_per_unit(i) <= fastest * too_slow)
			slowest = fmax(slowest, load_ns_per_unit(i));
	samples = slowest > 0 ? tile_ns / (slowest * cost_per_sample(chain)) : samples_least;
	return (uint64_t)fmax(samples, samples_least);
}

static double device_ns(double units)
{
	return load_together(devices_count(), units);
}

static void fail_waiting(enum error error)
{
	struct fair_flow *flow;

	fair_unpark(&ready);
	while ((flow = fair_next(&ready, ALL_CLASSES)))
		fail_flow(flow, error, NULL);
}

/* True if none of these devices has been up for too long. */
static bool given_up(uint64_t allowed)
{
	for (unsigned i = 0; i < devices_count(); i++)
		if (allowed >> i & 1 && loop_now() - last_up[i] <= no_device_ns)
			return false;
	return true;
}

/* A job that waits for such devices, or NULL. */
static struct fair_flow *hopeless(void)
{
	struct fair_flow *flow = LIST_FIRST(&ready.parked);

	for (; flow; flow = LIST_NEXT(flow, place)) {
		uint64_t allowed = ((struct task *)flow->head)->job->terms.devices;

		if (allowed && given_up(allowed))
			break;
	}
	return flow;
}

static void check_devices(void *context)
{
	static uint64_t looked;
	bool blind = loop_held_up(&looked, CHECK_MS);
	struct fair_flow *flow;

	(void)context;
	for (unsigned i = 0; i < devices_count(); i++)
		if (blind || !last_up[i] || devices_hopeful(UINT64_C(1) << i))
			last_up[i] = loop_now();
	if (blind || devices_up() || devices_starting())
		any_last_up = loop_now();
	else if (loop_now() - any_last_up > no_device_ns)
		fail_waiting(ERR_NO_DEVICE);
	while ((flow = hopeless()))
		fail_flow(flow, ERR_NO_DEVICE, "no device is up that the request may use");
}

static const struct codec_owner for_codecs = {samples_max,    device_ns,       task_ready,
                                              device_examine, device_distrust, job_ended};
static const struct device_owner for_devices = {task_done, task_lost, codecs_retire, dispatch};

enum error scheduler_init(const struct config *config)
{
	enum error e = loop_timer_init(&check, check_devices, NULL);

	fair_init(&ready, weights, PRIORITIES);
	any_last_up = loop_now();
	if (!e)
		e = codecs_init(config, &for_codecs);
	if (!e)
		e = devices_init(config, &for_devices);
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
