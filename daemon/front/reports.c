/* Reports of device workers. Nothing that a worker says is trusted before it has been looked at: a
 * report that cannot be true is not taken, and devices.c kills its sender. */
#include "front/reports.h"

#include <stdlib.h>
#include <string.h>

#include "front/metrics.h"

void reports_begin(struct device *d)
{
	static const char *const directions[] = {"upload", "download"};

	d->programs = (struct message_programs){0};
	metric_add(METRIC_TILES, d->label, NULL, 0);
	metric_add(METRIC_VERIFIED_SAMPLES, d->label, NULL, 0);
	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "repetition", 0);
	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "test", 0);
	for (int i = 0; i < 2; i++) {
		metric_add(METRIC_TRANSFER_DURATION, directions[i], d->label, 0);
		metric_add(METRIC_TRANSFER_BYTES, directions[i], d->label, 0);
	}
}

/* A tile counts by its size, since a small one's time is mostly that of its launch; and one that
 * was held up does not count for more than a few times what was expected. */
static void learn_speed(struct device *d, const struct task *task, uint64_t ns)
{
	double *speed = &device_loads[d->worker.number].ns_per_unit;
	double measured = (double)ns / task->units, most = 4 * *speed;
	double weight = task->units / (task->units + 1e8);

	if (ns)
		*speed += weight * ((measured < most ? measured : most) - *speed);
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

/* Launches are booked once, and to the job the tile's share of those that it had with others. Of a
 * run that has been given up nothing is booked to the job. */
void reports_book(struct device *d, struct task *task, const struct message_tile_done *done)
{
	bool current = task_is_current(task);
	struct job_times unwanted, *times = current ? &task->job->times : &unwanted;
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
	if (current)
		task->job->devices_used |= UINT64_C(1) << d->worker.number;
	d->tiles++;
}

bool reports_tile_valid(const struct message_tile_done *done)
{
	if (done->error >= ERR_COUNT || done->launches > LAUNCHES_MAX ||
	    (done->launches && !done->stack) || (done->place && done->place >= done->stack) ||
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

static bool programs_valid(const struct device *d, const struct message_programs *now)
{
	return now->compiled >= d->programs.compiled && now->cached >= d->programs.cached &&
	       now->failed >= d->programs.failed;
}

/* Counts the programs built since the device last said how many there are. */
static void count_programs(struct device *d, const struct message_programs *now)
{
	const struct message_programs *old = &d->programs;

	metric_add(METRIC_PROGRAM_BUILDS, "compiled", NULL, now->compiled - old->compiled);
	metric_add(METRIC_PROGRAM_BUILDS, "cached", NULL, now->cached - old->cached);
	metric_add(METRIC_PROGRAM_BUILDS, "failed", NULL, now->failed - old->failed);
	d->programs = *now;
	d->programs_at = loop_now();
}

static void publish_objects(const struct device *d, const struct message_objects *now)
{
	static const char *const kinds[OBJECTS] = {
#define OBJECT(symbol, name, ...) name,
#include "common/objects.def"
#undef OBJECT
	};

	for (enum object kind = 0; kind < OBJECTS; kind++)
		metric_set(METRIC_OPENCL_OBJECTS, d->label, kinds[kind], now->live[kind]);
}

void reports_end(const struct device *d)
{
	publish_objects(d, &(struct message_objects){0});
}

bool reports_take(struct device *d, const struct message *message)
{
	if (message->type == MSG_CHOICE && choice_valid(&message->choice))
		take_choice(d, &message->choice);
	else if (message->type == MSG_PROGRAMS && programs_valid(d, &message->programs))
		count_programs(d, &message->programs);
	else if (message->type == MSG_OBJECTS)
		publish_objects(d, &message->objects);
	else
		return false;
	return true;
}
