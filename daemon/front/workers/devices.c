/* Devices: one worker process each.
 *
 * After a reload a device may no longer match the option `device`. It then drains: it gets no new
 * tiles, and its worker is ended when the last tile is back. Its place in the device table is kept
 * in case it returns. */
#include "front/workers/devices.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/workers/arenas.h"
#include "front/workers/device_table.h"
#include "front/workers/discovery.h"
#include "front/workers/reports.h"
#include "front/workers/self_test.h"
#include "front/workers/tracer.h"

enum {
	QUARANTINE_FIRST_MS = 1000,
	QUARANTINE_STEPS = 6,
	QUARANTINE_MAX_MS = 60000,
	QUARANTINE_ALONE_MS = 2000, /* while no device is up */
};

/* The shortest intervals at which reports of codec workers, which may be false, have a device
 * tested (examined_ns) and quarantined (distrusted_ns). The latter is long enough for served time
 * to cancel the failures, so that such quarantines do not add up. */
static const uint64_t examined_ns = 1000000000u, distrusted_ns = 120000000000u;

/* A device may hold more tiles than its window while their predicted time is below this: of pixels;
 * of scans, which take a third of their time in full stacks; and on a CPU. */
static const double window_ns = 8e6, window_scans_ns = 32e6, window_cpu_ns = 3e6;

/* The served time that makes good one failure. */
static const uint64_t amends_ns = 5000000000u;

/* A device hangs if it takes `factor` times the predicted time and `ns` more: on a CPU denormals
 * alone make kernels 250 times slower, and a tile may have to wait for a tuner's launch. A driver
 * that compiles in another thread can block launches for seconds. */
static const struct hung {
	double factor, ns;
} hung_gpu = {100, 1.5e9}, hung_cpu = {500, 1e9};
static const double hung_blocked_ns = 2.5e9;

/* The initial speed of a device, that of one core with wide vectors; replaced by measurements. */
static const double ns_per_unit_guess = 0.05;

static const struct device_owner *owner;

static void device_admit(struct device *d)
{
	d->quarantined = false;
	d->fresh = false;
	d->up_since = loop_now();
	arenas_join(&d->arenas, &d->worker, d->found.type == DEVICE_CPU);
	owner->room();
}

/* Sends the test tiles; if that fails, device_down() follows. */
static void send_test(struct device *d)
{
	d->test_sent = loop_now();
	d->test_wait_ms = 0;
	self_test_send(d->self_test, &d->worker);
}

static void receive_test_tile(struct device *d, const struct message_tile_done *done)
{
	switch (self_test_take(d->self_test, done)) {
	case SELF_TEST_OPEN:
		break;
	case SELF_TEST_RIGHT:
		d->test_sent = 0;
		self_test_withdraw(d->self_test, &d->worker);
		self_test_free(&d->self_test);
		if (d->quarantined) {
			log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.device = d->label),
			          "%s filtered the test tiles correctly and is up again", d->label);
			device_admit(d);
		} else {
			log_event(LOG_LEVEL_INFO, LOG_FIELDS(.device = d->label),
			          "%s was in doubt and filtered the test tiles correctly",
			          d->label);
		}
		break;
	case SELF_TEST_WRONG: /* the self test is kept for the next attempt */
		metric_add(METRIC_DEVICE_SUSPECTED, d->label, "test", 1);
		worker_kill(&d->worker, d->quarantined ? "probe" : "mismatch");
		d->quarantined = true;
		break;
	}
}

static void device_up(struct worker *worker, const struct message_ready *ready)
{
	struct device *d = device_get(worker->number);

	if (!reports_ready_valid(d, ready)) {
		worker_refuse(worker, message_name(MSG_READY));
		return;
	}
	d->ready = *ready;
	wire_text(d->ready.name, sizeof d->ready.name);
	wire_text(d->ready.driver, sizeof d->ready.driver);
	d->window = ready->lanes + 1;
	reports_begin(d);
	log_event(LOG_LEVEL_INFO,
	          LOG_FIELDS(.device = d->label, .duration_us = UINT64_C(1000) * ready->startup_ms),
	          "%s is %s: %s, %s, ready after %u ms", d->label, device_states[device_state(d)],
	          d->ready.name, d->ready.driver, ready->startup_ms);
	if (!d->quarantined)
		device_admit(d);
	else if (!d->self_test)
		d->self_test = self_test_new(NULL, NULL);
	if (d->self_test)
		send_test(d);
	else if (d->quarantined)
		worker_kill(&d->worker, "memory");
}

/* Returns the index of a tile in `held`, or held_count. */
static unsigned find_held(const struct device *d, uint64_t job, uint32_t index)
{
	unsigned i = 0;

	while (i < d->held_count &&
	       (d->held[i]->tile.job != job || d->held[i]->tile.index != index))
		i++;
	return i;
}

static void set_wait(struct task *task, uint32_t ms)
{
	if (!ms != !task->wait_ms)
		job_waits(task->job, ms ? 1 : -1);
	task->wait_ms = ms;
}

static void begin_task(const struct device *d, struct task *task)
{
	task->sent = loop_now();
	task->worked = d->worker.stall.worked_ns;
}

/* Limits the wait for a general program to a worker's start-up: beyond it the driver hangs. */
static uint32_t limit_wait(uint32_t ms)
{
	uint64_t start_ms = config->start_timeout * 1000;

	return ms > PROGRAM_WAIT_MS && ms > start_ms ? (uint32_t)start_ms : ms;
}

/* Receives a message that a tile waits for a program, for at most max_ms, or (0) no longer does.
 * Returns false if it is invalid. */
static bool receive_waits(struct device *d, const struct message_tile_waits *waits)
{
	unsigned i = find_held(d, waits->job, waits->index);
	struct task *task = i < d->held_count ? d->held[i] : NULL;
	uint32_t ms = waits->max_ms;

	if (ms > GENERAL_WAIT_MS)
		return false;
	if (!task) {
		if (waits->job != SELF_TEST_JOB || !d->self_test)
			return false;
		d->test_wait_ms = MAX(d->test_wait_ms, limit_wait(ms));
		return true;
	}
	if (ms ? task->waited : !task->wait_ms)
		return false;
	if (!ms)
		begin_task(d, task);
	set_wait(task, limit_wait(ms));
	task->waited = true;
	return true;
}

static void leave_if_idle(struct device *d)
{
	if (d->unwanted && !d->held_count)
		worker_stop(&d->worker);
}

/* Receives the i-th tile that the device holds: it is back, filtered or failed. */
static void receive_tile(struct device *d, unsigned i, const struct message_tile_done *done)
{
	struct task *task = d->held[i];

	set_wait(task, 0);
	memmove(&d->held[i], &d->held[i + 1], (--d->held_count - i) * sizeof *d->held);
	d->load.units = d->held_count ? d->load.units - task->units : 0;
	if (error_row(done->error)->status >= 500)
		log_event(LOG_LEVEL_WARNING,
		          LOG_FIELDS(.job = done->job, .device = d->label,
		                     .error = error_row(done->error)->slug),
		          "%s: tile %u of job %" PRIu64 ": %s (OpenCL %d)", d->label, done->index,
		          done->job, error_row(done->error)->title, done->cl_error);
	if (!done->error) {
		d->worker.served = loop_now();
		reports_book(d, task, done);
	}
	tracer_tile(task, done, d->label);
	d->arenas.fresh &= done->error != ERR_OK;
	owner->task_done(task, done);
	leave_if_idle(d);
}

static void device_message(struct worker *worker, const struct message *message)
{
	struct device *d = device_get(worker->number);
	bool valid;

	if (message->type == MSG_TILE_DONE) { /* a test tile, or a client's */
		const struct message_tile_done *done = &message->tile_done;
		const unsigned i = find_held(d, done->job, done->index);
		const bool test = d->self_test && done->job == SELF_TEST_JOB;

		valid = (test || i < d->held_count) &&
		        reports_done_valid(test ? NULL : d->held[i], done);
		if (valid && test)
			receive_test_tile(d, done);
		else if (valid)
			receive_tile(d, i, done);
	} else {
		valid = reports_in_bounds(d) &&
		        (message->type == MSG_TILE_WAITS ? receive_waits(d, &message->tile_waits)
		                                         : reports_take(d, message));
	}
	if (!valid)
		worker_refuse(worker, message_name(message->type));
}

/* Counts a failure, unless another process killed or stopped the worker. Failures that have not
 * been cancelled by served time, from coming up to the last filtered tile, lead to quarantine:
 * restarts at growing intervals, and no client's tiles until the test tiles are correct. */
static void count_failure(struct device *d, const char *reason)
{
	unsigned limit = (unsigned)config->quarantine_failures, more;
	uint64_t ms, amends;

	if (d->up_since && d->worker.served > d->up_since)
		d->served_ns += d->worker.served - d->up_since;
	amends = d->served_ns / amends_ns;
	d->failures -= amends < d->failures ? (unsigned)amends : d->failures;
	d->served_ns = d->failures ? d->served_ns % amends_ns : 0;
	d->up_since = 0;
	d->fresh = false;
	if (worker_was_killed(reason))
		return;
	if (d->failures < limit + QUARANTINE_STEPS)
		d->failures++;
	if (d->quarantined && d->failures < limit)
		d->failures = limit;
	if (d->failures < limit)
		return;
	more = d->failures - limit;
	ms = more < QUARANTINE_STEPS ? (uint64_t)QUARANTINE_FIRST_MS << more : QUARANTINE_MAX_MS;
	if (!devices_up() && ms > QUARANTINE_ALONE_MS)
		ms = QUARANTINE_ALONE_MS;
	d->quarantined = true;
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(.device = d->label, .error = reason),
	          "%s is quarantined (%s, %u failures): tried again in %" PRIu64 " s", d->label,
	          reason, d->failures, ms / 1000);
	loop_timer_start(&d->worker.timer, ms);
}

void device_examine(unsigned i, const struct plan *plan, const struct kernel_set *kernels)
{
	struct device *d = device_get(i);

	if (device_state(d) != DEVICE_UP || d->self_test ||
	    (d->examined && loop_now() - d->examined < examined_ns))
		return;
	d->examined = loop_now();
	d->self_test = self_test_new(plan, kernels);
	if (d->self_test)
		send_test(d);
}

void device_distrust(unsigned i, const struct plan *plan, const struct kernel_set *kernels)
{
	struct device *d = device_get(i);

	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "repetition", 1);
	if (d->quarantined)
		return;
	if (d->distrusted && loop_now() - d->distrusted < distrusted_ns) {
		device_examine(i, plan, kernels);
		return;
	}
	d->distrusted = loop_now();
	if (!d->self_test)
		d->self_test = self_test_new(plan, kernels);
	d->quarantined = true;
	worker_kill(&d->worker, "mismatch");
}

static void lose_tasks(struct device *d, bool excused)
{
	while (d->held_count) {
		struct task *task = d->held[--d->held_count];
		const struct message_tile_done done = {
		    .job = task->tile.job, .index = task->tile.index, .error = ERR_DEVICE};

		task->excused += excused;
		set_wait(task, 0);
		owner->task_done(task, &done);
	}
}

static void device_down(struct worker *worker, const char *reason)
{
	struct device *d = device_get(worker->number);

	if (d->up_since) /* perhaps only since the scheduler last looked */
		d->last_up = loop_now();
	memset(d->plan, 0, sizeof d->plan);
	arenas_leave(&d->arenas);
	d->programs.pending = d->programs.compiling = 0;
	d->objects = (struct message_objects){0};
	/* A test by a client's plan that ends its worker is a failure like any other. If it were
	 * sent again, it would keep the device away for ever. */
	if (d->test_sent && !d->quarantined && !worker_was_killed(reason))
		self_test_free(&d->self_test);
	d->test_sent = 0;
	if (reason == WORKER_STOPPING) {
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(.device = d->label), "%s is removed",
		          d->label);
	} else {
		log_event(LOG_LEVEL_WARNING,
		          LOG_FIELDS(.device = d->label, .error = reason, .tiles = d->held_count),
		          "%s is down (%s) with %u tiles", d->label, reason, d->held_count);
		count_failure(d, reason);
	}
	d->load.units = 0;
	for (unsigned i = 0; reason == WORKER_LOST && i < d->held_count; i++)
		owner->arena_lost(d->held[i]->tile.arena);
	lose_tasks(d, worker_was_killed(reason));
	leave_if_idle(d);
}

static void device_prepare(const struct worker *worker, struct start *start)
{
	const struct message_device *m = &device_get(worker->number)->found;

	discovery_prepare(worker, start);
	start->has_device = 1;
	start->platform = m->platform;
	start->device = m->device;
	start->stack = (uint32_t)config->stack;
	start->programs = (uint32_t)config->programs;
	if (m->type == DEVICE_GPU || config->jpeg_on_any)
		start->jpeg_memory = config->jpeg_memory;
}

/* A worker that holds a tile uses processor time, because it polls. */
static bool device_busy(const struct worker *worker)
{
	const struct device *d = device_get(worker->number);

	return d->held_count || d->test_sent;
}

static const struct worker_owner device_worker = {.kind = "device",
                                                  .program = "convolved-device",
                                                  .prepare = device_prepare,
                                                  .up = device_up,
                                                  .message = device_message,
                                                  .down = device_down,
                                                  .busy = device_busy};

/* Handles a discovered device. wanted: a pattern of the option `device` matches it. */
static void device_found(const struct message_device *m, bool wanted)
{
	struct device *d = device_table_find(m);

	if (!d && wanted) {
		d = device_table_add(m);
		if (!d) {
			log_error("cannot add another device");
			return;
		}
		d->fresh = true;
		d->load = (struct load){.ns_per_unit = ns_per_unit_guess};
		if (worker_start(&d->worker, &device_worker, d->worker.number))
			log_error("cannot start %s", d->label);
		return;
	}
	if (!d || d->unwanted != wanted)
		return;
	d->unwanted = !wanted;
	if (wanted) {
		log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.device = d->label),
		          "%s matches `device` again", d->label);
		if (d->worker.stopped) {
			d->fresh = true;
			worker_resume(&d->worker);
		}
		owner->room();
	} else {
		log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.device = d->label, .tiles = d->held_count),
		          "%s no longer matches `device`; draining %u tiles", d->label,
		          d->held_count);
		leave_if_idle(d);
	}
}

/* Returns true if a tile is overdue, by the predicted time of all tiles of its device. For a CPU
 * only the time counts during which its worker had a processor: a busy machine does not make it
 * hang. A GPU that has yet to pin new arenas, which may take seconds, is not judged. */
static bool holds_too_long(const struct device *d)
{
	const uint64_t ms = UINT64_C(1000000);
	const bool cpu = d->found.type == DEVICE_CPU;
	const struct hung *hung = cpu ? &hung_cpu : &hung_gpu;
	uint64_t limit = config->tile_timeout * 1000000000u, now = loop_now();
	bool late = d->test_sent && now - d->test_sent > limit + d->test_wait_ms * ms;

	for (unsigned i = 0; !late && i < d->held_count; i++) {
		const struct task *task = d->held[i];
		const uint64_t worked = d->worker.stall.worked_ns - task->worked;
		uint64_t held = now - task->sent, waited = task->wait_ms * ms;
		double max = d->load.units * d->load.ns_per_unit * hung->factor + hung->ns;

		late = held > limit + waited;
		held = held > waited ? held - waited : 0;
		if (cpu && held > worked)
			held = worked;
		if (d->programs.blocking || d->programs_at >= task->sent)
			max += hung_blocked_ns;
		late |= (cpu || !d->arenas.fresh) && (double)held > max;
	}
	return late;
}

void devices_check(bool blind)
{
	struct device *d;

	for (unsigned i = 0; (d = device_get(i)); i++)
		if (!blind && holds_too_long(d))
			worker_kill(&d->worker, "timeout");
	if (devices_up())
		return;
	for (unsigned i = 0; (d = device_get(i)); i++)
		if (device_state(d) == DEVICE_QUARANTINED && d->worker.state == WORKER_STOPPED &&
		    loop_timer_left(&d->worker.timer) > QUARANTINE_ALONE_MS)
			loop_timer_start(&d->worker.timer, QUARANTINE_ALONE_MS);
}

enum error devices_init(const struct device_owner *o)
{
	owner = o;
	return discovery_init(device_found, device_table_next);
}

void devices_fini(void)
{
	struct device *d;

	discovery_fini();
	for (unsigned i = 0; (d = device_get(i)); i++)
		worker_fini(&d->worker);
	for (unsigned i = 0; (d = device_get(i)); i++) {
		arenas_leave(&d->arenas);
		lose_tasks(d, false);
		self_test_free(&d->self_test);
	}
	device_table_clear();
}

/* Beyond its window a device may hold small tiles, because those of a kind share a launch, or each
 * processor has one. */
bool device_has_room(const struct device *d, enum tile_form form)
{
	const double most = d->found.type == DEVICE_CPU ? window_cpu_ns
	                    : form == TILE_PIXELS       ? window_ns
	                                                : window_scans_ns;

	return device_state(d) == DEVICE_UP &&
	       (d->held_count < d->window ||
	        (d->ready.small_max > 1 && d->held_count < WINDOW_MAX &&
	         d->load.units * d->load.ns_per_unit < most));
}

bool device_send(struct device *d, struct task *task)
{
	const struct plan *plan = task->plan;
	uint64_t *known = &d->plan[plan->place];
	struct message tile = {.type = MSG_TILE, .tile = {task->tile, plan->id}};

	/* Sends the plan unless the device has it, and drops the plan that was in its place. */
	if (*known != plan->id) {
		struct message drop = {.type = MSG_PLAN_DROP, .plan_drop = {*known}};
		struct message add = {.type = MSG_PLAN,
		                      .plan = {.plan = plan->id,
		                               .image = plan->image,
		                               .client = g_str_hash(task->job->terms.client)}};

		if ((*known && !worker_send(&d->worker, &drop, NULL)) ||
		    !worker_send(&d->worker, &add, &plan->chain->fd))
			return false;
		*known = plan->id;
	}
	if (!worker_send(&d->worker, &tile, NULL))
		return false;
	task->attempts++;
	task->device = d->worker.number;
	task->waited = false;
	begin_task(d, task);
	d->held[d->held_count++] = task;
	d->load.units += task->units;
	return true;
}
