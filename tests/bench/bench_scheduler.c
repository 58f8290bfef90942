/* What the scheduler's decisions cost: real queues and choices, simulated devices and codec
 * workers.
 *
 * bench_scheduler [TILES...]
 * Fills the queue with so many tiles (of many jobs and clients), then has the devices finish tiles
 * one after another, each of which makes room for another: two decisions, one of which finds no
 * room. Devices have different speeds. Prints nanoseconds a tile, everything included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/codecs.h"
#include "front/devices.h"
#include "front/loop.h"
#include "front/metrics.h"
#include "front/roster.h"
#include "front/scheduler.h"

enum { JOB_TILES = 50, CLIENTS = 20, ROUNDS = 200000 };

static const struct codec_owner *codec_owner;
static const struct device_owner *device_owner;
static struct device devices[DEVICES_MAX];
struct load device_loads[DEVICES_MAX];
static unsigned device_count;

/* What the scheduler needs of roster.c, devices.c and codecs.c. */
enum error devices_init(const struct config *config, const struct device_owner *owner)
{
	(void)config;
	device_owner = owner;
	return ERR_OK;
}

void devices_fini(void)
{
}

unsigned devices_count(void)
{
	return device_count;
}

unsigned devices_up(void)
{
	return device_count;
}

bool devices_hopeful(uint64_t which)
{
	(void)which;
	return true;
}

bool devices_starting(void)
{
	return false;
}

struct device *device_get(unsigned i)
{
	return &devices[i];
}

enum device_state device_state(const struct device *d)
{
	(void)d;
	return DEVICE_UP;
}

bool device_has_room(const struct device *d)
{
	return d->held_count < d->window;
}

bool device_send(struct device *d, struct task *task)
{
	task->device = d->worker.number;
	d->held[d->held_count++] = task;
	device_loads[d->worker.number].units += task->units;
	return true;
}

void devices_drop_plan(const struct plan *plan)
{
	(void)plan;
}

void devices_add_arena(unsigned arena)
{
	(void)arena;
}

void devices_drop_arena(unsigned arena)
{
	(void)arena;
}

enum error codecs_init(const struct config *config, const struct codec_owner *owner)
{
	(void)config;
	codec_owner = owner;
	return ERR_OK;
}

void codecs_fini(void)
{
}

/* A tile that is done is wanted again: the queue stays as full as it is. */
static void task_done(struct task *task, const struct message_tile_done *done)
{
	task->attempts = 0;
	if (!done->error)
		codec_owner->task_ready(task);
}

static void start_devices(unsigned count)
{
	memset(devices, 0, sizeof devices);
	for (unsigned i = 0; i < count; i++) {
		devices[i].worker.number = i;
		devices[i].worker.state = WORKER_UP;
		devices[i].window = 4;
		device_loads[i] = (struct load){0, 0.05 * (1 + i % 5), true};
	}
	device_count = count;
}

static struct job *make_jobs(size_t count)
{
	struct job *jobs = calloc(count, sizeof *jobs);

	for (size_t i = 0; jobs && i < count; i++) {
		jobs[i].id = i + 1;
		jobs[i].references = 1;
		jobs[i].task_done = task_done;
		jobs[i].terms.priority = i % 4 ? PRIORITY_INTERACTIVE : PRIORITY_BATCH;
		snprintf(jobs[i].terms.client, sizeof jobs[i].terms.client, "10.0.0.%zu",
		         i % CLIENTS);
	}
	return jobs;
}

/* The next device that finishes a tile; its oldest. */
static void finish_one(unsigned turn)
{
	struct message_tile_done done = {0};
	struct device *d = &devices[turn % device_count];
	struct task *task = d->held[0];

	if (!d->held_count)
		return;
	memmove(&d->held[0], &d->held[1], --d->held_count * sizeof *d->held);
	device_loads[d->worker.number].units -= task->units;
	device_owner->task_done(task, &done);
	device_owner->room();
}

static double measure(unsigned count, size_t tiles)
{
	size_t job_count = (tiles + JOB_TILES - 1) / JOB_TILES;
	struct job *jobs = make_jobs(job_count);
	struct task *tasks = calloc(tiles, sizeof *tasks);
	uint64_t started;

	if (!jobs || !tasks)
		abort();
	start_devices(count);
	for (size_t i = 0; i < tiles; i++) {
		tasks[i].job = &jobs[i / JOB_TILES];
		tasks[i].units = tasks[i].item.cost = 1e6 + 1e3 * (double)(i % 100);
		codec_owner->task_ready(&tasks[i]);
	}
	started = loop_now();
	for (unsigned i = 0; i < ROUNDS; i++)
		finish_one(i);
	started = loop_now() - started;
	for (size_t i = 0; i < job_count; i++)
		codec_owner->job_ended(&jobs[i]);
	free(tasks);
	free(jobs);
	return (double)started / ROUNDS;
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = {1, 8, 64};
	static char *const standard[] = {"1", "10", "100", "1000", "10000", "100000"};
	char *const *tiles = argc > 1 ? argv + 1 : standard;
	int rows = argc > 1 ? argc - 1 : (int)(sizeof standard / sizeof *standard);

	printf("%10s", "tiles");
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		printf("  %3u devices", counts[i]);
	printf("   (ns a tile)\n");
	for (int row = 0; row < rows; row++) {
		printf("%10s", tiles[row]);
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
			struct config config = {0};

			if (loop_init() || scheduler_init(&config))
				return 1;
			printf("  %11.0f", measure(counts[i], strtoul(tiles[row], NULL, 10)));
			fflush(stdout);
			scheduler_fini();
			loop_fini();
		}
		printf("\n");
	}
	return 0;
}
