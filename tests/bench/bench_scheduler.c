/* Cost of the scheduler's decisions: real queues and choices, simulated devices and codec workers.
 *
 * bench_scheduler [TILES...]
 *
 * Fills the queue with this many tiles (of many jobs and clients), then has the devices finish
 * tiles one after another. Each makes room for another: two decisions, one of which finds no room.
 * Devices have different speeds. Prints nanoseconds a tile, everything included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "bench.h"
#include "front/config/config.h"
#include "front/workers/scheduler.h"
#include "simulated.h"

enum { JOB_TILES = 50, CLIENTS = 20, ROUNDS = 200000 };

/* A tile that is done is wanted again: the queue stays as full as it is. */
void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	task->attempts = 0;
	if (!done->error)
		simulated_for_codecs->task_ready(task);
}

static void start_devices(unsigned count)
{
	double ns_per_unit[DEVICES_MAX];

	for (unsigned i = 0; i < count; i++)
		ns_per_unit[i] = 0.05 * (1 + i % 5);
	if (!simulated_devices(ns_per_unit, count))
		abort();
}

static struct job *make_jobs(size_t count)
{
	struct job *jobs = must_have(calloc(count, sizeof *jobs));

	for (size_t i = 0; i < count; i++) {
		jobs[i].id = i + 1;
		jobs[i].references = 1;
		jobs[i].terms.priority = i % 4 ? PRIORITY_INTERACTIVE : PRIORITY_BATCH;
		snprintf(jobs[i].terms.client, sizeof jobs[i].terms.client, "10.0.0.%zu",
		         i % CLIENTS);
	}
	return jobs;
}

static double measure(unsigned count, size_t tiles)
{
	size_t job_count = (tiles + JOB_TILES - 1) / JOB_TILES;
	struct job *jobs = make_jobs(job_count);
	struct task *tasks = must_have(calloc(tiles, sizeof *tasks));
	uint64_t started;

	start_devices(count);
	for (size_t i = 0; i < tiles; i++) {
		tasks[i].job = &jobs[i / JOB_TILES];
		tasks[i].units = tasks[i].item.cost = 1e6 + 1e3 * (double)(i % 100);
		simulated_for_codecs->task_ready(&tasks[i]);
	}
	started = loop_now();
	for (unsigned i = 0; i < ROUNDS; i++)
		simulated_finish(i % count, ERR_OK);
	started = loop_now() - started;
	for (size_t i = 0; i < job_count; i++)
		simulated_for_codecs->job_ended(&jobs[i]);
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
			static const struct config none;

			config = &none;
			if (loop_init() || scheduler_init())
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
