/* Jobs, tiles and shares: the front's calls about them are watched. */
#include <stdlib.h>
#include <sys/stat.h>

#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/workers/devices.h"
#include "front/workers/device_table.h"
#include "front/workers/self_test.h"
#include "sim.h"

/* ---- jobs: each ends at most once, and none is forgotten ---- */

struct submitted {
	struct submitted *next;
	void (*done)(struct job *job, void *context);
	void *context;
	bool ended;
};

static struct submitted *submitted;

static void job_done(struct job *job, void *context)
{
	struct submitted *s = context;

	if (s->ended)
		violated("job %lu ends twice", job->id);
	s->ended = true;
	s->done(job, s->context);
}

enum error __real_job_submit(struct job *job, void (*done)(struct job *, void *), void *context);
enum error __wrap_job_submit(struct job *job, void (*done)(struct job *, void *), void *context);

enum error __wrap_job_submit(struct job *job, void (*done)(struct job *, void *), void *context)
{
	struct submitted *s = calloc(1, sizeof *s);

	must(s);
	*s = (struct submitted){submitted, done, context, false};
	submitted = s;
	sim_counts[COUNT_JOBS]++;
	return __real_job_submit(job, job_done, s);
}

void __real_job_restart(struct job *job);
void __wrap_job_restart(struct job *job);

void __wrap_job_restart(struct job *job)
{
	must(!job->finished);
	sim_counts[COUNT_RETURNED]++;
	__real_job_restart(job);
}

/* ---- tiles: no process writes to an arena whose next job has begun ---- */

struct away {
	struct away *next;
	const struct process *device;
	uint64_t job;
	uint32_t index, arena;
	ino_t memory;
};

static struct away *away;

static void forget(const struct process *device, bool all, uint64_t job, uint32_t index)
{
	for (struct away **at = &away, *a; (a = *at);) {
		if (a->device != device || (!all && (a->job != job || a->index != index))) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		free(a);
		if (!all)
			return;
	}
}

void check_tile_back(struct process *device, uint64_t job, uint32_t index)
{
	forget(device, false, job, index);
}

void check_process_ended(struct process *p)
{
	forget(p, true, 0, 0);
}

/* Tells an arena's memory from another of the same number. */
static ino_t memory_of(unsigned arena)
{
	struct stat status = {0};

	must(arenas_get(arena) && !fstat(arenas_get(arena)->in, &status));
	return status.st_ino;
}

static void tile_leaves(const struct process *device, const struct tile *tile)
{
	struct away *a = calloc(1, sizeof *a);

	must(a);
	*a = (struct away){away, device, tile->job, tile->index, tile->arena, 0};
	if (tile->arena != SELF_TEST_ARENA)
		a->memory = memory_of(tile->arena);
	away = a;
	sim_counts[COUNT_TILES]++;
}

static void job_begins(const struct message_job *job)
{
	const ino_t memory = memory_of(job->arena);

	for (const struct away *a = away; a; a = a->next)
		if (a->memory == memory && a->job != job->job)
			violated("run %lu begins in arena %u, where %s has tile %u of run %lu",
			         job->job, job->arena, a->device->name, a->index, a->job);
}

bool __real_worker_send(struct worker *w, const struct message *message, const int *fds);
bool __wrap_worker_send(struct worker *w, const struct message *message, const int *fds);

bool __wrap_worker_send(struct worker *w, const struct message *message, const int *fds)
{
	const bool sent = __real_worker_send(w, message, fds);
	struct process *p = sent ? sim_process_of(w->pid) : NULL;

	sim_trace("the front sends %s to %s%s", message_name(message->type), w->name,
	          sent ? "" : " in vain");
	if (sent && message->type == MSG_JOB)
		job_begins(&message->job);
	if (sent && message->type == MSG_TILE && !p->has_ended)
		tile_leaves(p, &message->tile.tile);
	return sent;
}

bool __real_device_send(struct device *d, struct task *task);
bool __wrap_device_send(struct device *d, struct task *task);

bool __wrap_device_send(struct device *d, struct task *task)
{
	if (!task_is_current(task))
		violated("tile %u of the ended run %lu is sent to %s", task->tile.index,
		         task->tile.job, d->label);
	return __real_device_send(d, task);
}

void __wrap_worker_refuse(struct worker *w, const char *what);

void __wrap_worker_refuse(struct worker *w, const char *what)
{
	violated("an honest %s is refused for %s", w->name, what);
}

/* ---- shares: a client that has nothing gets whatever is free, and nobody more than there is ----
 */

enum error __real_share_take(struct share *share, enum share_kind kind, const char *client,
                             uint64_t amount, uint64_t all, struct problem *problem);
enum error __wrap_share_take(struct share *share, enum share_kind kind, const char *client,
                             uint64_t amount, uint64_t all, struct problem *problem);

enum error __wrap_share_take(struct share *share, enum share_kind kind, const char *client,
                             uint64_t amount, uint64_t all, struct problem *problem)
{
	const uint64_t total = share_total(kind), held = share_of(kind, client);
	const bool fits = total <= all && amount <= all - total;
	const enum error e = __real_share_take(share, kind, client, amount, all, problem);

	if (e ? !held && fits : !fits)
		violated("a client with %lu gets %s%lu of kind %d; %lu of %lu are held", held,
		         e ? "none of " : "", amount, kind, total, all);
	return e;
}

void check_work_idle(void)
{
	must(!away);
}

void check_work_reset(void)
{
	struct submitted *s;

	while ((s = submitted)) {
		submitted = s->next;
		free(s);
	}
	while (away)
		forget(away->device, true, 0, 0);
}
