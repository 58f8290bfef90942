/* Devices: found by a probe process, so that a driver that hangs or crashes when it is asked for
 * its devices does no harm here; then one worker process each. */
#include "front/devices.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "front/codecs.h"
#include "front/metrics.h"

enum {
	PROBE_AGAIN_MS = 5000,
	CHECK_MS = 500,
	FOUND_MAX = DEVICES_MAX,
	QUARANTINE_FIRST_MS = 1000,
	QUARANTINE_STEPS = 6,
	QUARANTINE_MAX_MS = 60000,
};

/* How much work a device may have beyond a tile for each lane. */
static const double window_ns = 2e6;

/* A failure after so long says nothing about those before. */
static const uint64_t forgiven_ns = 60000000000u;

/* A guess for a new device, from one core with wide vectors; replaced by what events say. */
static const double ns_per_unit_guess = 0.05;

static const char *const types[] = {"device", "cpu", "gpu", "accelerator"};

static const struct config *config;
static const struct device_owner *owner;
static struct device *devices[DEVICES_MAX];
static unsigned device_count;
static struct worker probe;
static struct loop_timer probe_again, check;
static bool probed;
static struct message_device found[FOUND_MAX];
static unsigned found_count;

static struct device *device_of(struct worker *worker)
{
	return devices[worker->number];
}

unsigned devices_count(void)
{
	return device_count;
}

struct device *device_get(unsigned i)
{
	return devices[i];
}

enum device_state device_state(const struct device *d)
{
	static const enum device_state states[][2] = {
	    [WORKER_STOPPED] = {DEVICE_DOWN, DEVICE_QUARANTINED},
	    [WORKER_STARTING] = {DEVICE_STARTING, DEVICE_PROBING},
	    [WORKER_UP] = {DEVICE_UP, DEVICE_PROBING},
	    [WORKER_DYING] = {DEVICE_DOWN, DEVICE_QUARANTINED},
	};

	return states[d->worker.state][d->quarantined];
}

const char *device_state_name(enum device_state state)
{
	static const char *const names[] = {"down", "starting", "up", "quarantined", "probing"};

	return names[state];
}

unsigned devices_up(void)
{
	unsigned up = 0;

	for (unsigned i = 0; i < device_count; i++)
		up += device_state(devices[i]) == DEVICE_UP;
	return up;
}

bool devices_starting(void)
{
	for (unsigned i = 0; i < device_count; i++)
		if (devices[i]->worker.state == WORKER_STARTING && !devices[i]->worker.restarts)
			return true;
	return !probed;
}

static void publish(const struct device *d)
{
	enum device_state state = device_state(d);

	metric_set(METRIC_DEVICE_UP, d->label, NULL, state == DEVICE_UP);
	for (enum device_state s = 0; s < DEVICE_STATES; s++)
		metric_set(METRIC_DEVICE_STATE, d->label, device_state_name(s), s == state);
	metric_set(METRIC_TILES_IN_FLIGHT, d->label, NULL, d->held_count);
}

/* Tells the worker of every codec's arena. */
static bool send_arenas(struct device *d)
{
	struct message message = {.type = MSG_ARENA};
	bool sent = true;

	for (unsigned i = 0; sent && i < codecs_count(); i++) {
		const struct codec_arena *arena = codec_arena(i);
		int fds[] = {d->type == DEVICE_CPU ? arena->in_read_only : arena->in, arena->out};

		message.arena = (struct message_arena){
		    .arena = i, .in_size = arena->in_size, .out_size = arena->out_size};
		sent = worker_send(&d->worker, &message, fds);
	}
	return sent;
}

/* From now on it takes tiles. */
static void device_admit(struct device *d)
{
	d->quarantined = false;
	d->up_since = loop_now();
	publish(d);
	if (send_arenas(d))
		owner->room();
}

static void device_probe(struct device *d)
{
	publish(d);
	d->proof = proof_new();
	if (!d->proof)
		worker_kill(&d->worker, "memory");
	else
		proof_send(d->proof, &d->worker); /* if that fails, down() follows */
}

static void take_proof(struct device *d, const struct message_tile_done *done)
{
	bool holds = proof_holds(d->proof, done);

	proof_free(&d->proof);
	if (holds) {
		log_notice("%s has filtered the test tile rightly: it is up again", d->label);
		device_admit(d);
	} else {
		worker_kill(&d->worker, "probe");
	}
}

static void device_up(struct worker *worker, const struct message_ready *ready)
{
	struct device *d = device_of(worker);

	snprintf(d->name, sizeof d->name, "%.*s", (int)sizeof ready->name - 1, ready->name);
	snprintf(d->driver, sizeof d->driver, "%.*s", (int)sizeof ready->driver - 1, ready->driver);
	d->memory = ready->memory;
	d->startup_ms = ready->startup_ms;
	d->window = ready->lanes + 1 < WINDOW_MAX ? ready->lanes + 1 : WINDOW_MAX;
	d->stacks = ready->stack_most > 1;
	metric_set(METRIC_DEVICE_MEMORY, d->label, NULL, (double)d->memory);
	d->programs = (struct message_programs){0};
	log_info("%s is %s: %s, %s, ready after %u ms", d->label,
	         device_state_name(device_state(d)), d->name, d->driver, d->startup_ms);
	if (d->quarantined)
		device_probe(d);
	else
		device_admit(d);
}

/* Takes the task with this tile out of the window, or NULL. */
static struct task *take_held(struct device *d, uint64_t job, uint32_t index)
{
	for (unsigned i = 0; i < d->held_count; i++) {
		struct task *task = d->held[i];

		if (task->tile.job != job || task->tile.index != index)
			continue;
		memmove(&d->held[i], &d->held[i + 1], (--d->held_count - i) * sizeof *d->held);
		d->held_units = d->held_count ? d->held_units - task->units : 0;
		return task;
	}
	return NULL;
}

/* A tile counts by its size, since a small one's time is mostly that of its launch; and one that
 * was held up does not count for more than a few times what was expected. */
static void learn_speed(struct device *d, const struct task *task, uint64_t ns)
{
	double measured = (double)ns / task->units, most = 4 * d->ns_per_unit;
	double weight = task->units / (task->units + 1e8);

	if (ns)
		d->ns_per_unit += weight * ((measured < most ? measured : most) - d->ns_per_unit);
}

static void record_transfer(const struct device *d, const char *direction, uint64_t ns,
                            uint64_t bytes)
{
	if (!bytes)
		return;
	metric_observe(METRIC_TRANSFER_DURATION, direction, d->label, (double)ns * 1e-9);
	metric_add(METRIC_TRANSFER_BYTES, direction, d->label, (double)bytes);
}

static void record_launch(const struct device *d, const struct message_tile_done *done, unsigned i)
{
	const char *name = kernel_name(done->launch[i].kernel);

	metric_observe(METRIC_KERNEL_DURATION, name, d->label, done->launch[i].ns * 1e-9);
	metric_add(METRIC_KERNEL_BYTES, name, d->label, (double)done->launch[i].bytes);
}

/* Books a tile's times to the metrics and its job: launches once, and to the job the tile's share
 * of those that it had with others. */
static void record_tile(struct device *d, struct task *task, const struct message_tile_done *done)
{
	struct job_times *times = &task->job->times;
	uint64_t kernels_ns = 0;

	for (unsigned i = 0; i < done->launches; i++) {
		uint64_t share = done->launch[i].ns / done->stack;

		if (done->place == 0)
			record_launch(d, done, i);
		times->kernel[done->launch[i].kernel] += share;
		kernels_ns += share;
	}
	record_transfer(d, "upload", done->upload_ns, done->upload_bytes);
	record_transfer(d, "download", done->download_ns, done->download_bytes);
	times->upload += done->upload_ns;
	times->download += done->download_ns;
	learn_speed(d, task, kernels_ns + done->upload_ns + done->download_ns);
	metric_add(METRIC_TILES, d->label, NULL, 1);
	task->job->devices_used |= UINT64_C(1) << d->worker.number;
	d->tiles++;
}

static bool tile_done_valid(const struct message_tile_done *done)
{
	if (done->error >= ERR_COUNT || done->launches > LAUNCHES_MAX ||
	    (done->launches && !done->stack) || done->place > done->stack ||
	    !memchr(done->reason, 0, sizeof done->reason))
		return false;
	for (unsigned i = 0; i < done->launches; i++)
		if (done->launch[i].kernel >= KERNELS)
			return false;
	return true;
}

static bool choice_valid(const struct message_choice *choice)
{
	if (choice->count < 1 || choice->count > CANDIDATES_MAX ||
	    choice->chosen >= choice->count || !memchr(choice->work, 0, sizeof choice->work))
		return false;
	for (unsigned i = 0; i < choice->count; i++)
		if (choice->candidate[i].kernel >= KERNELS)
			return false;
	return true;
}

/* Remembers what a device's tuner chose, in the place of an earlier choice for the same work. */
static void take_choice(struct device *d, const struct message_choice *choice)
{
	unsigned i = 0;
	struct message_choice *grown;

	while (i < d->choice_count && strcmp(d->choices[i].work, choice->work))
		i++;
	if (i == CHOICES_MAX)
		return;
	if (i == d->choice_count) {
		grown = reallocarray(d->choices, i + 1, sizeof *grown);
		if (!grown)
			return;
		d->choices = grown;
		d->choice_count++;
	}
	d->choices[i] = *choice;
}

/* Counts the programs built since the device last said how many there are. */
static void count_programs(struct device *d, const struct message_programs *now)
{
	const struct message_programs *old = &d->programs;

	metric_add(METRIC_PROGRAM_BUILDS, "compiled", NULL, now->compiled - old->compiled);
	metric_add(METRIC_PROGRAM_BUILDS, "cached", NULL, now->cached - old->cached);
	metric_add(METRIC_PROGRAM_BUILDS, "failed", NULL, now->failed - old->failed);
	d->programs = *now;
}

static bool programs_valid(const struct device *d, const struct message_programs *now)
{
	return now->compiled >= d->programs.compiled && now->cached >= d->programs.cached &&
	       now->failed >= d->programs.failed;
}

static void take_tile(struct device *d, struct task *task, const struct message_tile_done *done)
{
	if (error_status(done->error) >= 500)
		log_warning("%s: tile %u of job %llu: %s (OpenCL %d)", d->label, done->index,
		            (unsigned long long)done->job, error_title(done->error),
		            done->cl_error);
	if (!done->error)
		record_tile(d, task, done);
	publish(d);
	owner->task_done(task, done);
	owner->room();
}

static void device_message(struct worker *worker, const struct message *message)
{
	struct device *d = device_of(worker);
	struct task *task = NULL;

	if (message->type == MSG_CHOICE && choice_valid(&message->choice)) {
		take_choice(d, &message->choice);
		return;
	}
	if (message->type == MSG_PROGRAMS && programs_valid(d, &message->programs)) {
		count_programs(d, &message->programs);
		return;
	}
	if (message->type == MSG_TILE_DONE && tile_done_valid(&message->tile_done) && d->proof) {
		take_proof(d, &message->tile_done);
		return;
	}
	if (message->type == MSG_TILE_DONE && tile_done_valid(&message->tile_done))
		task = take_held(d, message->tile_done.job, message->tile_done.index);
	if (task)
		take_tile(d, task, &message->tile_done);
	else
		worker_kill(worker, "protocol");
}

/* Failures within a short time end in quarantine: tries at growing intervals, and no tile of a
 * client's until a test tile has come back right. */
static void count_failure(struct device *d, const char *reason)
{
	unsigned limit = (unsigned)config->quarantine_failures, more;
	uint64_t ms;

	if (d->up_since && loop_now() - d->up_since > forgiven_ns && !d->quarantined)
		d->failures = 0;
	d->up_since = 0;
	d->failures++;
	if (d->quarantined && d->failures < limit)
		d->failures = limit;
	if (d->failures < limit)
		return;
	more = d->failures - limit;
	ms = more < QUARANTINE_STEPS ? (uint64_t)QUARANTINE_FIRST_MS << more : QUARANTINE_MAX_MS;
	d->quarantined = true;
	log_error("%s is quarantined (%s, %u failures): tried again in %llu s", d->label, reason,
	          d->failures, (unsigned long long)ms / 1000);
	worker_restart_after(&d->worker, ms);
}

void device_distrust(struct device *d)
{
	if (d->quarantined)
		return;
	d->quarantined = true;
	worker_kill(&d->worker, "mismatch");
	publish(d);
}

static void device_down(struct worker *worker, const char *reason)
{
	struct device *d = device_of(worker);

	log_warning("%s is down (%s) with %u tiles", d->label, reason, d->held_count);
	memset(d->plan, 0, sizeof d->plan);
	proof_free(&d->proof);
	count_failure(d, reason);
	d->held_units = 0;
	publish(d);
	while (d->held_count)
		owner->task_lost(d->held[--d->held_count]);
	publish(d);
}

static const struct worker_owner device_worker = {device_up, device_message, device_down};

/* The arguments that every device process has. */
static void common_arguments(struct worker *w)
{
	int n = 0;

	w->argv[n++] = strdup("convolved-device");
	w->argv[n++] = strdup("--log-level");
	w->argv[n++] = strdup(config->log_level);
	w->argv[n++] = strdup("--cache-dir");
	w->argv[n++] = strdup(config->cache_dir);
	w->argv[n++] = strdup("--state-dir");
	w->argv[n++] = strdup(config->state_dir);
	if (*config->kernel_dir) {
		w->argv[n++] = strdup("--kernel-dir");
		w->argv[n++] = strdup(config->kernel_dir);
	}
}

static void append_number(struct worker *w, const char *flag, uint32_t number)
{
	char text[16];
	int n = 0;

	while (w->argv[n])
		n++;
	snprintf(text, sizeof text, "%u", number);
	w->argv[n++] = strdup(flag);
	w->argv[n] = strdup(text);
}

static void device_create(const struct message_device *m, unsigned ordinal)
{
	struct device *d = calloc(1, sizeof *d);

	if (!d)
		return;
	snprintf(d->label, sizeof d->label, "%s%u", types[m->type], ordinal);
	snprintf(d->name, sizeof d->name, "%.*s", (int)sizeof m->name - 1, m->name);
	d->type = m->type;
	d->ns_per_unit = ns_per_unit_guess;
	d->worker.kind = "device";
	d->worker.number = device_count;
	d->worker.owner = &device_worker;
	d->worker.start_ms = config->start_timeout * 1000;
	devices[device_count++] = d;
	common_arguments(&d->worker);
	append_number(&d->worker, "--platform", m->platform);
	append_number(&d->worker, "--device", m->device);
	append_number(&d->worker, "--stack", (uint32_t)config->stack);
	if (worker_start(&d->worker))
		log_error("%s cannot be started", d->label);
	publish(d);
}

/* All GPUs, or else everything that there is. */
static bool chosen_by_default(const struct message_device *m)
{
	bool gpus = false;

	for (unsigned i = 0; i < found_count; i++)
		gpus |= found[i].type == DEVICE_GPU;
	return !gpus || m->type == DEVICE_GPU;
}

static bool fits(const char *pattern, const struct message_device *m)
{
	char index[32], name[sizeof m->name], platform[sizeof m->platform_name];
	const char *const texts[] = {types[m->type], index, name, platform};

	if (!strcmp(pattern, "auto"))
		return chosen_by_default(m);
	snprintf(index, sizeof index, "%u:%u", m->platform, m->device);
	snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, m->name);
	snprintf(platform, sizeof platform, "%.*s", (int)sizeof platform - 1, m->platform_name);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!fnmatch(pattern, texts[i], FNM_CASEFOLD))
			return true;
	return false;
}

/* The devices that any pattern fits. */
static void choose_devices(void)
{
	unsigned ordinal = 0;

	for (unsigned i = 0; i < found_count; i++) {
		bool chosen = false;

		for (unsigned p = 0; p < config->device.count; p++)
			chosen |= fits(config->device.item[p], &found[i]);
		log_info("%u:%u %.63s (%s, %.63s) is %s", found[i].platform, found[i].device,
		         found[i].name, types[found[i].type], found[i].platform_name,
		         chosen ? "used" : "not used");
		if (chosen)
			device_create(&found[i], ordinal++);
	}
	if (!device_count)
		log_error("there is no OpenCL device%s; looking again in %d s",
		          found_count ? " that fits --device" : "", PROBE_AGAIN_MS / 1000);
}

static void probe_message(struct worker *worker, const struct message *message)
{
	const struct message_device *m = &message->device;

	if (message->type != MSG_DEVICE || m->type > DEVICE_ACCELERATOR) {
		worker_kill(worker, "protocol");
		return;
	}
	if (m->type != DEVICE_NONE && found_count < FOUND_MAX)
		found[found_count++] = *m;
}

static void probe_up(struct worker *worker, const struct message_ready *ready)
{
	(void)ready;
	worker_kill(worker, "protocol");
}

static void probe_down(struct worker *worker, const char *reason)
{
	if (worker->kill_reason || strcmp(reason, "exit"))
		log_error("the search for OpenCL devices failed: %s", reason);
	choose_devices();
	probed = true;
	if (!device_count)
		loop_timer_start(&probe_again, PROBE_AGAIN_MS);
}

static const struct worker_owner probe_worker = {probe_up, probe_message, probe_down};

static void probe_start(void *context)
{
	(void)context;
	if (*probe.argv)
		worker_fini(&probe);
	probe = (struct worker){.kind = "probe",
	                        .owner = &probe_worker,
	                        .once = true,
	                        .start_ms = config->start_timeout * 1000};
	found_count = 0;
	common_arguments(&probe);
	for (int i = 0;; i++)
		if (!probe.argv[i]) {
			probe.argv[i] = strdup("--probe");
			break;
		}
	if (worker_start(&probe))
		loop_timer_start(&probe_again, PROBE_AGAIN_MS);
}

/* Kills the devices that hold a tile for too long. */
static void check_devices(void *context)
{
	uint64_t limit = config->tile_timeout * 1000000000u, now = loop_now();

	(void)context;
	for (unsigned i = 0; i < device_count; i++) {
		struct device *d = devices[i];

		if ((d->held_count && now - d->held[0]->sent > limit) ||
		    (d->proof && now - proof_sent(d->proof) > limit))
			worker_kill(&d->worker, "timeout");
		publish(d);
	}
}

enum error devices_init(const struct config *c, const struct device_owner *o)
{
	enum error e;

	config = c;
	owner = o;
	e = loop_timer_init(&probe_again, probe_start, NULL);
	if (!e)
		e = loop_timer_init(&check, check_devices, NULL);
	if (e)
		return e;
	loop_timer_repeat(&check, CHECK_MS);
	probe_start(NULL);
	return ERR_OK;
}

void devices_fini(void)
{
	worker_fini(&probe);
	for (unsigned i = 0; i < device_count; i++) {
		worker_fini(&devices[i]->worker);
		proof_free(&devices[i]->proof);
		free(devices[i]);
	}
	device_count = 0;
	loop_timer_fini(&probe_again);
	loop_timer_fini(&check);
}

/* Of small tiles it may have more than it has lanes for: those of a kind share a launch. */
bool device_has_room(const struct device *d)
{
	return device_state(d) == DEVICE_UP &&
	       (d->held_count < d->window || (d->stacks && d->held_count < WINDOW_MAX &&
	                                      d->held_units * d->ns_per_unit < window_ns));
}

static bool send_plan(struct device *d, const struct plan *plan)
{
	struct message message = {.type = MSG_PLAN,
	                          .plan = {.plan = plan->id, .image = plan->image}};

	if (d->plan[plan->place] == plan->id)
		return true;
	if (!worker_send(&d->worker, &message, &plan->chain->fd))
		return false;
	d->plan[plan->place] = plan->id;
	return true;
}

bool device_send(struct device *d, struct task *task)
{
	struct message message = {.type = MSG_TILE, .tile = {task->tile, task->plan->id}};

	if (!send_plan(d, task->plan) || !worker_send(&d->worker, &message, NULL))
		return false;
	task->attempts++;
	task->device = d->worker.number;
	task->sent = loop_now();
	d->held[d->held_count++] = task;
	d->held_units += task->units;
	publish(d);
	return true;
}

void devices_drop_plan(const struct plan *plan)
{
	struct message message = {.type = MSG_PLAN_DROP, .plan_drop = {plan->id}};

	for (unsigned i = 0; i < device_count; i++) {
		if (devices[i]->plan[plan->place] != plan->id)
			continue;
		devices[i]->plan[plan->place] = 0;
		worker_send(&devices[i]->worker, &message, NULL);
	}
}
