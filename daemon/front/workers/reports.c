/* Checks and records the reports of device workers. An impossible report is rejected, and devices.c
 * kills its sender. Figures that only metrics show (bytes moved, programs built) may be wrong,
 * because they spoil nothing else. */
#include "front/workers/reports.h"

#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/workers/device_load.h"

/* Limits far beyond any device: bytes of memory, OpenCL objects of a kind, pending programs. */
static const uint64_t memory_max = UINT64_C(1) << 50, objects_max = 1u << 20, programs_max = 1000;
/* Messages allowed in one burst, and in a second: more would keep the front busy. */
static const uint64_t reports_first = 1000, reports_a_s = 10000;
/* Tolerance for clock differences, and for the delay until a message is read. */
static const uint64_t slack_ns = 1000000000;

static uint64_t lived_ns(const struct device *d)
{
	return loop_now() - d->worker.started;
}

bool reports_ready_valid(const struct device *d, const struct message_ready *ready)
{
	return ready->lanes && ready->lanes < WINDOW_MAX && ready->small_max <= WINDOW_MAX &&
	       ready->memory <= memory_max &&
	       ready->startup_ms * UINT64_C(1000000) <= lived_ns(d) + slack_ns;
}

bool reports_in_bounds(struct device *d)
{
	return ++d->reports <= reports_first + lived_ns(d) / 1000000 * reports_a_s / 1000;
}

/* The interval between two log lines on programs being compiled. */
static const uint64_t told_every_ns = 5000000000u;

void reports_begin(struct device *d)
{
	d->reports = 0;
	d->programs = (struct message_programs){0};
	d->programs_told = 0;
	metric_add(METRIC_TILES, d->label, NULL, 0);
	metric_add(METRIC_VERIFIED_SAMPLES, d->label, NULL, 0);
	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "jpeg", 0);
	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "repetition", 0);
	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "test", 0);
	metric_add(METRIC_TRANSFER_DURATION, "upload", d->label, 0);
	metric_add(METRIC_TRANSFER_DURATION, "download", d->label, 0);
	metric_add(METRIC_TRANSFER_BYTES, "upload", d->label, 0);
	metric_add(METRIC_TRANSFER_BYTES, "download", d->label, 0);
}

static void record_transfer(const struct device *d, const char *direction, uint64_t ns,
                            uint64_t bytes)
{
	if (!bytes)
		return;
	metric_observe(METRIC_TRANSFER_DURATION, direction, d->label, ns, "");
	metric_add(METRIC_TRANSFER_BYTES, direction, d->label, (double)bytes);
}

/* A launch shared by several tiles is counted in the metrics once; each tile's job is charged its
 * share. Tiles of an abandoned run are not charged to the job. */
void reports_book(struct device *d, struct task *task, const struct message_tile_done *done)
{
	bool current = task_is_current(task);
	struct job_times unwanted, *times = current ? &task->job->times : &unwanted;
	uint64_t kernels_ns = 0;

	for (unsigned i = 0; i < done->launches; i++) {
		const char *name = kernel_name(done->launch[i].kernel);
		uint64_t share = done->launch[i].ns / done->stack;

		if (done->place == 0) {
			metric_observe(METRIC_KERNEL_DURATION, name, d->label, done->launch[i].ns,
			               "");
			metric_add(METRIC_KERNEL_BYTES, name, d->label,
			           (double)done->launch[i].bytes);
		}
		times->kernel[done->launch[i].kernel] += share;
		kernels_ns += share;
	}
	record_transfer(d, "upload", done->upload_ns, done->upload_bytes);
	record_transfer(d, "download", done->download_ns, done->download_bytes);
	times->upload += done->upload_ns;
	times->download += done->download_ns;
	load_learn(&d->load, task->units, kernels_ns + done->upload_ns + done->download_ns);
	metric_add(METRIC_TILES, d->label, NULL, 1);
	if (current)
		task->job->devices_used |= UINT64_C(1) << d->worker.number;
	d->tiles++;
}

/* Times may add up to about twice the time for which the tile was held. */
bool reports_done_valid(const struct task *task, const struct message_tile_done *done)
{
	const uint32_t error = done->error;
	uint64_t ns, ns_max;

	/* A device has no part in requests, images and files, whose errors it may not report. */
	if (error != ERR_OK && error != ERR_BAD_PARAMETER && error != ERR_INTERNAL &&
	    error != ERR_MEMORY && error != ERR_DEVICE && error != ERR_NOT_READY)
		return false;
	if (done->launches > LAUNCHES_MAX || done->stack > WINDOW_MAX ||
	    (done->launches && !done->stack) || (done->place && done->place >= done->stack) ||
	    !memchr(done->reason, 0, sizeof done->reason))
		return false;
	for (unsigned i = 0; i < done->launches; i++)
		if (done->launch[i].kernel >= KERNELS)
			return false;
	if (!task)
		return true;
	ns_max = 2 * (loop_now() - task->sent) + slack_ns;
	if (done->size > (task->tile.form & TILE_ENCODE ? task->tile.out_size : 0) ||
	    done->upload_ns > ns_max || done->download_ns > ns_max)
		return false;
	ns = done->upload_ns + done->download_ns;
	for (unsigned i = 0; i < done->launches; i++)
		ns += done->launch[i].ns;
	return ns <= ns_max;
}

/* Stores a choice of the device's tuner, replacing an earlier choice for the same kind of work. */
static bool receive_choice(struct device *d, const struct message_choice *choice)
{
	unsigned at = 0;
	struct message_choice taken = *choice;

	if (!choice_valid(choice))
		return false;
	wire_text(taken.work, sizeof taken.work);
	while (at < d->choice_count && !choice_is_for(&d->choices[at], &taken))
		at++;
	if (at == CHOICES_MAX)
		return true;
	d->choice_count += at == d->choice_count;
	d->choices[at] = taken;
	return true;
}

/* Counts the programs built since the last report, and logs the progress for users who wait. */
static bool receive_programs(struct device *d, const struct message_programs *now)
{
	const struct message_programs *old = &d->programs;
	const uint32_t built = now->compiled + now->cached;

	if (now->jpeg > 1 || now->compiled < old->compiled || now->cached < old->cached ||
	    now->failed < old->failed || now->pending > programs_max ||
	    now->compiling > programs_max)
		return false;
	metric_add(METRIC_PROGRAM_BUILDS, "compiled", NULL, now->compiled - old->compiled);
	metric_add(METRIC_PROGRAM_BUILDS, "cached", NULL, now->cached - old->cached);
	metric_add(METRIC_PROGRAM_BUILDS, "failed", NULL, now->failed - old->failed);
	if (now->compiling &&
	    (!d->programs_told || loop_now() - d->programs_told > told_every_ns)) {
		d->programs_told = loop_now();
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(.device = d->label),
		          "%s: compiling kernels for the first time: %u of %u programs are ready",
		          d->label, built, built + now->pending);
	} else if (!now->pending && d->programs_told) {
		d->programs_told = 0;
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(.device = d->label),
		          "%s: all %u kernel programs are ready", d->label, built);
	}
	if (now->blocking || old->blocking)
		d->programs_at = loop_now();
	d->programs = *now;
	return true;
}

bool reports_take(struct device *d, const struct message *message)
{
	if (message->type == MSG_CHOICE)
		return receive_choice(d, &message->choice);
	if (message->type == MSG_PROGRAMS)
		return receive_programs(d, &message->programs);
	if (message->type != MSG_OBJECTS)
		return false;
	for (enum object kind = 0; kind < OBJECTS; kind++)
		if (message->objects.live[kind] > objects_max)
			return false;
	d->objects = message->objects;
	return true;
}
