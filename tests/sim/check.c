/* The conditions that hold at each step, and those that hold when nothing is left to do. The
 * front's own calls between its modules are watched. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

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
#include "front/workers/self_test.h"
#include "front/workers/scheduler.h"
#include "link/link.h"
#include "sim.h"

/* SHARES_EVERY: turns, as that takes long. */
enum { SHARES_EVERY = 64, LINK_BEYOND = 1 << 20, MEMORY_BEYOND = 2 << 20 };

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
	if (link->queued > sim_counts[COUNT_QUEUED])
		sim_counts[COUNT_QUEUED] = link->queued;
	return sent;
}

/* Answers keep their deadlines -------------------------------------------------------------------
 */

static const uint64_t LATE = 100 * SIM_MS;
static uint64_t last_up; /* when a device was */

/* Requests and tiles that may use any device wait for one that is away for a short time. */
static void check_no_device(const char *what)
{
	const uint64_t look = SIM_S, tenth = config->job_timeout * SIM_S / 10,
	               most = (tenth > 4 * SIM_S ? tenth : 4 * SIM_S) - look;

	if (devices_wanted() == devices_count() && sim_now - last_up < most)
		violated("a %s finds no device, %.3f s after one was up", what,
		         (double)(sim_now - last_up) / SIM_S);
}

bool __real_scheduler_has_hope(uint64_t which);
bool __wrap_scheduler_has_hope(uint64_t which);

bool __wrap_scheduler_has_hope(uint64_t which)
{
	const bool has_hope = __real_scheduler_has_hope(which);

	if (!which && !has_hope)
		check_no_device("request");
	return has_hope;
}

void __real_codec_task_done(struct task *task, const struct message_tile_done *done);
void __wrap_codec_task_done(struct task *task, const struct message_tile_done *done);

void __wrap_codec_task_done(struct task *task, const struct message_tile_done *done)
{
	if (done->error == ERR_NO_DEVICE && !task->devices)
		check_no_device("tile");
	__real_codec_task_done(task, done);
}

/* Errors that only these faults explain. */
static void check_reason(const char *reason)
{
	static const struct {
		const char *reason;
		enum fault faults[2];
	} rows[] = {
	    {"internal", {FAULTS, FAULTS}},
	    {"out-of-memory", {FAULTS, FAULTS}},
	    {"input-output", {FAULT_DISK_FULL, FAULT_DISK_ERROR}},
	    {"storage-full", {FAULT_DISK_FULL, FAULTS}},
	    {"storage-unusable", {FAULT_DISK_FULL, FAULT_DISK_ERROR}},
	    {"not-an-image", {FAULT_BAD_IMAGE, FAULTS}},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool excused = strcmp(rows[i].reason, reason) != 0;

		for (int j = 0; j < 2; j++)
			excused |= rows[i].faults[j] < FAULTS && sim_faults[rows[i].faults[j]];
		if (!excused)
			violated("a request is answered: %s", reason);
	}
	if (!strcmp(reason, "draining") && scenario_accepts())
		violated("a request is refused as if the service were being stopped");
}

const struct answer *__real_routes_answer(struct request *r);
const struct answer *__wrap_routes_answer(struct request *r);

const struct answer *__wrap_routes_answer(struct request *r)
{
	const uint64_t now = sim_now, begun = r->job ? r->job->times.accepted : 0;
	uint64_t deadline = r->terms.deadline;

	deadline = deadline > begun ? deadline : begun;
	deadline = deadline > sim_excuse ? deadline : sim_excuse;
	if (r->terms.deadline && begun && !r->async && now > deadline + LATE)
		violated("request %s is answered %.3f s after its deadline: %d", r->id,
		         (double)(now - deadline) / SIM_S, r->answer.status);
	if (r->answer.reason)
		check_reason(r->answer.reason);
	return __real_routes_answer(r);
}

/* Shares: a client that has nothing gets whatever is free, and nobody more than there is ---------
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
	/* A reload may have lowered it. */
	must(share_total(SHARE_BODIES) <= config->max_bodies || sim_faults[FAULT_RELOAD]);
	must(share_total(SHARE_CONNECTIONS) <= share_connections_most());
}

void check_step(void)
{
	if (!config)
		return;
	check_tasks();
	if (sim_turns() % SHARES_EVERY == 0)
		check_shares();
	if (spool_memory() > config->max_memory + MEMORY_BEYOND)
		violated("bodies and answers take %lu bytes of at most %lu", spool_memory(),
		         config->max_memory);
	if (devices_up())
		last_up = sim_now;
	if (fullest && !link_is_full(fullest))
		fullest = NULL;
	if (fullest)
		sim_excuse = sim_now;
	sim_counts[COUNT_FULL] += fullest != NULL;
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
	last_up = 0;
}

/* The archive ------------------------------------------------------------------------------------
 */

enum { KNOWN_MAX = 64, ID_SIZE = 64 };

/* Shared with the process of the service's second life. */
static struct {
	uint64_t at; /* when it has crashed */
	unsigned count;
	char id[KNOWN_MAX][ID_SIZE];
} * known;

void check_share(void)
{
	known =
	    mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(known != MAP_FAILED);
}

void check_crash(void)
{
	known->at = sim_now;
	known->count = 0;
	for (const struct stored *s = store_next(NULL); s && known->count < KNOWN_MAX;
	     s = store_next(s))
		snprintf(known->id[known->count++], ID_SIZE, "%s", s->id);
}

uint64_t check_crashed_at(void)
{
	return known->at;
}

void check_recovery(void)
{
	for (unsigned i = 0; i < known->count; i++) {
		const struct stored *s = store_find_any(known->id[i]);

		if (!s || !stored_is_shown(s))
			violated("the job %s is lost", known->id[i]);
	}
	sim_counts[COUNT_RECOVERED] += known->count;
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
