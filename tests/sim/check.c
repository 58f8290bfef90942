/* What must hold at each step, and when nothing is left to do. The front's own calls between its
 * modules are watched. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/api/remote.h"
#include "front/api/request.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/store.h"
#include "front/workers/device_table.h"
#include "front/workers/devices.h"
#include "front/workers/runs.h"
#include "front/workers/scheduler.h"
#include "link/link.h"
#include "sim.h"

enum { LINK_BEYOND = 1 << 20, MEMORY_BEYOND = 2 << 20 };

/* Jobs: each ends at most once, and none is forgotten --------------------------------------------
 */

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

/* Tiles: no process writes to an arena whose next job has begun ----------------------------------
 */

struct away {
	struct away *next;
	const struct process *device;
	uint64_t job;
	uint32_t index, arena;
	int in; /* the front's descriptor of the arena's memory */
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

static void tile_leaves(const struct process *device, const struct tile *tile)
{
	struct away *a = calloc(1, sizeof *a);
	const struct arena_files *arena = arenas_get(tile->arena);

	must(a);
	*a = (struct away){away,        device,      tile->job,
	                   tile->index, tile->arena, arena ? arena->in : -1};
	away = a;
	sim_counts[COUNT_TILES]++;
}

static void job_begins(const struct message_job *job)
{
	for (const struct away *a = away; a; a = a->next)
		if (a->arena == job->arena && a->in == arenas_get(job->arena)->in &&
		    a->job != job->job)
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

/* Links ------------------------------------------------------------------------------------------
 */

static const struct link *fullest;

bool __real_link_send(struct link *link, const struct link_message *message);
bool __wrap_link_send(struct link *link, const struct link_message *message);

bool __wrap_link_send(struct link *link, const struct link_message *message)
{
	const bool sent = __real_link_send(link, message);

	sim_counts[COUNT_WAITS] += link->queued > 0;
	if (link->queued > LINK_FULL + LINK_BEYOND)
		violated("%zu bytes wait in a link, after %s", link->queued,
		         link_name(message->type));
	fullest = link_is_full(link) ? link : fullest;
	return sent;
}

/* Answers keep their deadlines -------------------------------------------------------------------
 */

const struct answer *__real_routes_answer(struct request *r);
const struct answer *__wrap_routes_answer(struct request *r);

const struct answer *__wrap_routes_answer(struct request *r)
{
	const uint64_t deadline = r->terms.deadline, now = sim_now;

	if (deadline && !r->async && now > deadline + scenario_excuse(r->arrived))
		violated("request %s is answered %.3f s after its deadline: %d", r->id,
		         (double)(now - deadline) / SIM_S, r->answer.status);
	return __real_routes_answer(r);
}

/* Steps ------------------------------------------------------------------------------------------
 */

static void check_tasks(void)
{
	unsigned of_codecs = 0, away_or_waiting = scheduler_waiting();

	for (unsigned i = 0; i < codecs_count(); i++)
		of_codecs += codec_get(i)->tasks;
	for (unsigned i = 0; i < devices_count(); i++)
		away_or_waiting += device_get(i)->held_count;
	if (of_codecs != away_or_waiting)
		violated("codecs await %u tiles, %u are at devices or wait for one", of_codecs,
		         away_or_waiting);
}

static void check_shares(void)
{
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < SIM_NAMES; i++)
			sum += share_of(kind, sim_names[i]);
		sum += share_of(kind, "");
		if (sum != share_total(kind))
			violated("clients hold %lu of kind %d, all together %lu", sum, kind,
			         share_total(kind));
	}
	must(share_total(SHARE_BODIES) <= config->max_bodies);
	must(share_total(SHARE_CONNECTIONS) <= share_connections_most());
}

void check_step(void)
{
	if (!config)
		return;
	check_tasks();
	check_shares();
	if (spool_memory() > config->max_memory + MEMORY_BEYOND)
		violated("bodies and answers take %lu bytes of at most %lu", spool_memory(),
		         config->max_memory);
	sim_counts[COUNT_FULL] += fullest && link_is_full(fullest);
}

void check_idle(void)
{
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		if (share_total(kind))
			violated("%lu of share %d are still held", share_total(kind), kind);
	must(!spool_memory());
	must(!spool_count(false) && !spool_count(true));
	must(!remotes_requests());
	must(!scheduler_waiting());
	must(!jobs_waiting());
	must(metric_value(METRIC_CONNECTIONS, NULL, NULL) == 0);
	must(metric_value(METRIC_REQUESTS, NULL, NULL) == 0);
	must(!away);
}

void check_reset(void)
{
	struct submitted *s;

	while ((s = submitted)) {
		submitted = s->next;
		free(s);
	}
	while (away)
		forget(away->device, true, 0, 0);
	fullest = NULL;
}

/* The log ----------------------------------------------------------------------------------------
 */

void __wrap_log_event(enum log_level level, const struct log_fields *fields, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

void __wrap_log_event(enum log_level level, const struct log_fields *fields, const char *format,
                      ...)
{
	char text[1024];
	va_list list;

	(void)level, (void)fields;
	sim_counts[COUNT_QUARANTINES] += strstr(format, "is quarantined") != NULL;
	if (!sim_tracing)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	sim_trace("log: %s", text);
}

enum error __wrap_log_writer_init(void);

enum error __wrap_log_writer_init(void)
{
	return ERR_OK;
}

void __wrap_log_writer_fini(void);

void __wrap_log_writer_fini(void)
{
}

void __wrap_log_writer_use_journal(void);

void __wrap_log_writer_use_journal(void)
{
}
