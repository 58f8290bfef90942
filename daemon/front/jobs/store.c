/* The store of asynchronous jobs: one list, in which a job moves to the end when it ends, so that
 * the first ended one is the oldest. A waiter is only woken, and then looks for news itself, so
 * nothing is lost or queued for a slow client.
 *
 * A job has one change under way in the archive at a time: it is added, its end is recorded, or it
 * is dropped. Meanwhile it is as it was before.
 *
 * A job that crashes the service would do so at each start. So a crash, which is a signal that this
 * process brings upon itself, is noted for all jobs that are running. After the next start these
 * run one at a time, which shows the one that does it; it fails after the third crash. */
#include "front/jobs/store.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"

enum { TICK_MS = 250, CRASHES_MAX = 3 };

/* The times after which a change that failed is tried again, or a job that was refused removed; and
 * after which a job is revived again. */
static const uint64_t retry_ns = 1000000000u, revive_ns = 250000000u, ms = 1000000u;

static const struct store_owner *owner;
static TAILQ_HEAD(stored_list, stored) all = TAILQ_HEAD_INITIALIZER(all);
static struct loop_timer tick;
static unsigned count;
static bool leaving;
static const struct stored *reviving; /* in revive() */

void waiter_leave(struct waiter *w)
{
	if (w->waits)
		LIST_REMOVE(w, place);
	w->waits = false;
}

void waiter_wake(struct waiter *w)
{
	waiter_leave(w);
	w->wake(w->context);
}

void store_wait(struct stored *s, struct waiter *w, uint64_t due)
{
	waiter_leave(w);
	LIST_INSERT_HEAD(&s->waiters, w, place);
	w->waits = true;
	w->due = due;
}

/* Wakes the waiters that do not wait beyond this time. */
static void wake_due(struct stored *s, uint64_t time)
{
	for (struct waiter *w = LIST_FIRST(&s->waiters), *next; w; w = next) {
		next = LIST_NEXT(w, place);
		if (time >= w->due)
			waiter_wake(w);
	}
}

static void tell_all(struct stored *s)
{
	s->told_state = stored_state(s);
	s->told_tiles = stored_tiles_done(s);
	wake_due(s, UINT64_MAX);
}

struct store_survey store_survey(void)
{
	struct store_survey survey = {.jobs = count};
	const uint64_t now = loop_now();
	const struct stored *s;

	TAILQ_FOREACH(s, &all, place) {
		const bool is_open = !s->hidden && !s->job->finished;

		if (is_open && now - s->arrived > survey.oldest)
			survey.oldest = now - s->arrived;
		survey.lasting += is_open && archive_is_open() && !s->revives && !s->under_way;
		survey.changes += s->under_way || s->stuck;
	}
	return survey;
}

void store_leave(void)
{
	struct stored *s;

	leaving = archive_is_open();
	TAILQ_FOREACH(s, &all, place)
		wake_due(s, UINT64_MAX);
}

bool store_is_leaving(void)
{
	return leaving;
}

/* Frees the request's head, which is not needed while there is a job of it. */
static void drop_head(struct stored *s)
{
	free(s->record.head.data);
	s->record.head = (struct head_writer){0};
}

static void free_stored(struct errand *errand)
{
	struct stored *s = (struct stored *)errand;

	if (s->job)
		job_release(s->job);
	free((char *)(uintptr_t)s->record.key);
	drop_head(s);
	free(s->record.answer.data);
	free(s);
}

static void change(struct stored *s, enum archive_act act);

static void hide(struct stored *s)
{
	if (s->hidden)
		return;
	s->hidden = true;
	s->again = loop_now() + retry_ns;
	count--;
	for (unsigned i = 0; i < STORED_SHARES; i++)
		share_give_all(&s->share[i]);
	s->job->done = NULL;
}

static void remove_stored(struct stored *s)
{
	hide(s);
	TAILQ_REMOVE(&all, s, place);
	wake_due(s, UINT64_MAX);
	errand_abandon(&s->step.errand);
	if (TAILQ_EMPTY(&all))
		loop_timer_repeat(&tick, 0);
}

static void forget(struct stored *s)
{
	if (!archive_is_open()) {
		remove_stored(s);
		return;
	}
	hide(s);
	if (!s->under_way)
		change(s, ARCHIVE_DROP);
}

/* Returns a result's share of one of the STORED_SHARES kinds. */
static struct share *share_in(struct stored *s, enum share_kind kind)
{
	return &s->share[kind - SHARE_RESULTS];
}

/* Ends the job with an error in place of its result. */
static void lose_result(struct stored *s, enum error e, const struct problem *problem)
{
	s->job->error = e;
	s->job->problem = *problem;
	spool_close(&s->job->answer);
	share_give_all(share_in(s, SHARE_RESULT_SIZE));
	share_give_all(share_in(s, SHARE_RESULT_MEMORY));
}

static void refuse_result(struct stored *s, const char *beside, uint64_t most)
{
	fail_with(lose_result, s, ERR_RESULT_TOO_LARGE,
	          "the result has %" PRIu64 " bytes; %s%" PRIu64 " are allowed",
	          s->job->answer.size, beside, most);
}

/* Removes the oldest results of the client that holds most, until no more than `most` is held; but
 * not the newest. */
static void reduce(enum share_kind kind, uint64_t most, const struct stored *newest)
{
	while (share_total(kind) > most) {
		const uint64_t greatest = share_greatest(kind);
		struct stored *s;

		TAILQ_FOREACH(s, &all, place)
			if (s != newest && !s->hidden && share_in(s, kind)->amount &&
			    share_of(kind, s->job->terms.client) == greatest)
				break;
		if (!s)
			return;
		forget(s);
	}
}

static bool share_result(struct stored *s, enum share_kind kind, uint64_t amount)
{
	return !share_force(share_in(s, kind), kind, s->job->terms.client, amount);
}

/* The end is known to all: it is on disk, or need not be. */
static void tell_end(struct stored *s)
{
	owner->ended(s->id, s->job);
	tell_all(s);
}

static void keep_end(struct stored *s)
{
	struct job *job = s->job;
	struct record *r = &s->record;
	static int64_t last;

	r->answer.size = 0;
	owner->pack(s, &r->answer);
	if (r->answer.failed) {
		free(r->answer.data);
		r->answer = (struct head_writer){0};
		if (!job->error) /* which can do without */
			fail_with(lose_result, s, ERR_MEMORY, "no memory for the answer");
	}
	/* No two end at the same time: the next start finds them in their order. */
	if (!r->finished)
		r->finished = last = MAX(archive_now(), last + 1);
	change(s, ARCHIVE_END);
}

static void job_ended(struct job *job, void *context)
{
	struct stored *s = context;
	uint64_t others;

	TAILQ_REMOVE(&all, s, place);
	TAILQ_INSERT_TAIL(&all, s, place);
	if (!job->error && job->answer.size > config->result_size)
		refuse_result(s, "at most ", config->result_size);
	else if (job->error)
		spool_close(&job->answer);
	if (!share_result(s, SHARE_RESULTS, 1) ||
	    !share_result(s, SHARE_RESULT_SIZE, job->answer.size) ||
	    !share_result(s, SHARE_RESULT_MEMORY, job->answer.reserved)) {
		owner->ended(s->id, job); /* there is no memory to record its client */
		forget(s);
		return;
	}
	/* Results in memory displace the bodies of new requests, so they get half of the memory. */
	reduce(SHARE_RESULTS, config->result_count, s);
	reduce(SHARE_RESULT_MEMORY, config->max_memory / 2, s);
	reduce(SHARE_RESULT_SIZE, config->result_size, s);
	if (share_total(SHARE_RESULT_SIZE) > config->result_size) {
		others = share_total(SHARE_RESULT_SIZE) - share_in(s, SHARE_RESULT_SIZE)->amount;
		refuse_result(s, "beside other clients' at most ", config->result_size - others);
	}
	if (archive_is_open())
		keep_end(s);
	else
		tell_end(s);
}

/* ---- the archive ---- */

static bool submit(struct stored *s)
{
	if (!job_submit(s->job, job_ended, s))
		return true;
	forget(s);
	return false;
}

static void added(struct stored *s)
{
	drop_head(s);
	if (s->step.error) { /* those who wait are told why; it is removed later */
		hide(s);
		job_release(s->job);
		s->job = NULL;
	} else {
		spool_replace(&s->job->body, s->step.kept, s->job->body.size);
		share_give_all(&s->job->memory);
		submit(s);
	}
	wake_due(s, UINT64_MAX);
}

/* The change has failed, and is tried again after a while. */
static void get_stuck(struct stored *s, const char *what)
{
	if (!s->stuck)
		log_warning("request %s: %s: %s", s->id, what, s->step.problem.detail);
	s->stuck = true;
	s->again = loop_now() + retry_ns;
}

static void end_kept(struct stored *s)
{
	struct job *job = s->job;

	if (s->step.kept >= 0) { /* also if its row has not been written */
		spool_replace(&job->answer, s->step.kept, job->answer.size);
		share_give_all(share_in(s, SHARE_RESULT_MEMORY));
	}
	if (s->step.no_file && !s->hidden) {
		lose_result(s, s->step.error, &s->step.problem);
		keep_end(s);
	} else if (s->step.error && !s->hidden) {
		get_stuck(s, "its end cannot be kept yet");
		s->under_way = true; /* it is not told */
	} else {
		s->stuck = false;
		tell_end(s);
	}
}

static void change_done(struct errand *errand)
{
	static bool failing;
	struct stored *s = (struct stored *)errand;
	const enum archive_act act = s->step.act;

	/* The first change that fails is logged, and the first afterwards that does not; their
	 * problems, which clients are told, do not say where. */
	if (s->step.error && !failing)
		log_warning("jobs cannot be kept in %s: %s", config->state_dir,
		            s->step.problem.detail);
	else if (!s->step.error && failing)
		log_notice("jobs can be kept in %s again", config->state_dir);
	failing = s->step.error;
	metric_observe(METRIC_ARCHIVE_DURATION, NULL, NULL, s->step.ns, "");
	s->under_way = false;
	if (act == ARCHIVE_ADD) {
		added(s);
	} else if (act == ARCHIVE_END) {
		end_kept(s);
	} else if (!s->step.error) {
		remove_stored(s);
	} else {
		get_stuck(s, "it cannot be forgotten yet");
		wake_due(s, UINT64_MAX);
	}
	if (act == ARCHIVE_END && s->hidden && !s->under_way)
		change(s, ARCHIVE_DROP);
}

static void change(struct stored *s, enum archive_act act)
{
	s->under_way = true;
	s->step.act = act;
	s->step.record = &s->record;
	s->step.job = s->job;
	s->step.lost = s->job->lost;
	s->step.tiles = job_tiles(s->job);
	s->step.tiles_done = job_tiles_done(s->job);
	s->step.has_file = false;
	s->step.errand.done = change_done;
	errand_send(ERRAND_ARCHIVE, &s->step.errand);
}

/* Ends a job that is not running, and not in the queue either. */
static void end_revived(struct stored *s, enum error e, const struct problem *problem)
{
	struct job *job = s->job;

	s->revives = false;
	job->finished = true;
	job->error = e;
	job->problem = *problem;
	job->times.finished = loop_now();
	spool_close(&job->body);
	job_ended(job, s);
}

/* Returns true while a job runs that was running in a crash. */
static bool suspect_runs(void)
{
	const struct stored *s;

	TAILQ_FOREACH(s, &all, place)
		if (s->record.crashes && !s->revives && !s->hidden && !stored_ended(s))
			break;
	return s;
}

/* Makes a job of the request again, unless it is too early; its device may be missing. */
static void revive(struct stored *s)
{
	struct problem problem = {0};
	enum error e = ERR_OK;
	struct job *job = NULL;

	reviving = s;
	if (s->record.crashes >= CRASHES_MAX)
		e = problem_set(&problem, ERR_INTERNAL,
		                "the service has crashed %u times while it was at this job",
		                s->record.crashes);
	else if (s->record.crashes && suspect_runs())
		e = ERR_NOT_READY;
	else
		job = owner->revive(s, &e, &problem);
	reviving = NULL;
	if (e == ERR_NOT_READY) {
		s->again = loop_now() + revive_ns;
	} else if (job) {
		s->revives = false;
		job_release(s->job);
		s->job = job;
		drop_head(s);
		if (submit(s))
			job->times.accepted = s->arrived;
	} else {
		end_revived(s, e, &problem);
	}
}

static void look_at_all(void *)
{
	uint64_t now = loop_now();

	for (struct stored *s = TAILQ_FIRST(&all), *next; s; s = next) {
		const bool left = s->hidden && !s->under_way && now > s->again;

		next = TAILQ_NEXT(s, place);
		wake_due(s, now);
		if (left && s->step.act == ARCHIVE_DROP)
			change(s, ARCHIVE_DROP);
		else if (left)
			remove_stored(s);
		else if (s->stuck && !s->step.errand.under_way && now > s->again)
			errand_send(ERRAND_ARCHIVE, &s->step.errand);
		else if (s->hidden || s->under_way)
			continue;
		else if (s->revives && now > s->again)
			revive(s);
		else if (s->job->finished && !stored_kept_for(s))
			forget(s);
		else if (stored_state(s) != s->told_state || stored_tiles_done(s) != s->told_tiles)
			tell_all(s);
	}
}

static struct stored *new_stored(const char *id, const char *key)
{
	struct stored *s = calloc(1, sizeof *s + strlen(id) + 1);

	if (!s)
		return NULL;
	strcpy(s->id, id);
	s->record.id = s->id;
	s->record.key = key ? strdup(key) : NULL;
	s->step.errand.free = free_stored;
	if (!key || s->record.key)
		return s;
	free(s);
	return NULL;
}

static void insert(struct stored *s)
{
	if (TAILQ_EMPTY(&all))
		loop_timer_repeat(&tick, TICK_MS);
	TAILQ_INSERT_TAIL(&all, s, place);
	count++;
}

struct stored *store_add(const char *id, struct job *job, uint64_t arrived, struct record *asked)
{
	struct stored *s = new_stored(id, asked->key);
	struct record *r;

	if (!s) {
		job_release(job);
		return NULL;
	}
	s->job = job;
	s->arrived = arrived;
	if (job_take_place(job)) {
		free_stored(&s->step.errand);
		return NULL;
	}
	r = &s->record;
	memcpy(r->digest, asked->digest, sizeof r->digest);
	r->head = asked->head;
	asked->head = (struct head_writer){0};
	insert(s);
	if (!archive_is_open())
		return submit(s) ? s : NULL;
	r->arrived = archive_now();
	change(s, ARCHIVE_ADD);
	return s;
}

/* Returns loop_now() of a moment in the past; it may be before the system's start. */
static uint64_t moment(int64_t wall)
{
	const int64_t age = archive_now() - wall;

	return loop_now() - (age > 0 ? (uint64_t)age : 0) * ms;
}

static void found(struct record *r, struct job *job)
{
	struct stored *s = job ? new_stored(r->id, r->key) : NULL;

	if (!s) {
		log_error("request %s: no memory for its job, until the next start", r->id);
		if (job)
			job_release(job);
		return;
	}
	r->id = s->record.id;
	r->key = s->record.key;
	s->record = *r;
	r->head = r->answer = (struct head_writer){0};
	s->job = job;
	s->arrived = job->times.accepted = moment(s->record.arrived);
	insert(s);
	if (r->crashes)
		log_warning("request %s: the service has crashed %u times while it was at its job",
		            s->id, r->crashes);
	metric_add(METRIC_JOBS_RECOVERED, job->finished ? "ended" : "open", NULL, 1);
	s->revives = !job->finished;
	if (s->revives)
		return;
	drop_head(s);
	job->times.finished = moment(s->record.finished);
	s->told_state = stored_state(s);
	if (!share_result(s, SHARE_RESULTS, 1) ||
	    !share_result(s, SHARE_RESULT_SIZE, job->answer.size))
		remove_stored(s); /* no memory, until the next start */
}

bool stored_is_shown(const struct stored *s)
{
	return !s->hidden && !(s->under_way && s->step.act == ARCHIVE_ADD);
}

bool stored_is_of(const struct stored *s, const struct job_terms *terms)
{
	return s->job->terms.named == terms->named && !strcmp(s->job->terms.client, terms->client);
}

struct stored *store_find_any(const char *id)
{
	struct stored *s;

	TAILQ_FOREACH(s, &all, place)
		if (!strcmp(s->id, id))
			break;
	return s;
}

struct stored *store_find_key(const struct job_terms *terms, const char *key)
{
	struct stored *s;

	TAILQ_FOREACH(s, &all, place)
		if (!s->hidden && s->record.key && !strcmp(s->record.key, key) &&
		    stored_is_of(s, terms))
			break;
	return s;
}

struct stored *store_next(const struct stored *s)
{
	struct stored *next = s ? TAILQ_NEXT(s, place) : TAILQ_FIRST(&all);

	while (next && !stored_is_shown(next))
		next = TAILQ_NEXT(next, place);
	return next;
}

bool stored_ended(const struct stored *s)
{
	return s->job->finished && !s->under_way;
}

enum stored_state stored_state(const struct stored *s)
{
	if (stored_ended(s) && s->job->error)
		return s->job->error == ERR_CANCELLED ? STORED_CANCELLED : STORED_FAILED;
	if (stored_ended(s))
		return STORED_DONE;
	return s->job->codec || s->job->finished ? STORED_RUNNING : STORED_WAITING;
}

uint32_t stored_tiles_done(const struct stored *s)
{
	/* The estimate ignores filters that the reference computes. */
	return stored_state(s) == STORED_DONE ? job_tiles(s->job) : job_tiles_done(s->job);
}

bool stored_time_left(const struct stored *s, uint64_t *ns)
{
	const struct job *job = s->job;

	if (stored_state(s) != STORED_RUNNING || !job->tiles_done)
		return false;
	*ns = (loop_now() - job->times.began) / job->tiles_done *
	      (job_tiles(job) - job_tiles_done(job));
	return true;
}

uint64_t stored_kept_for(const struct stored *s)
{
	uint64_t age = loop_now() - s->job->times.finished,
	         most = config->result_time * 1000000000u;

	return age < most ? most - age : 0;
}

void store_delete(struct stored *s)
{
	struct problem problem;
	enum error e = problem_set(&problem, ERR_CANCELLED, "a DELETE request cancelled it");

	if (s->job->finished)
		forget(s);
	else if (s->revives)
		end_revived(s, e, &problem);
	else
		job_cancel(s->job, e, &problem);
}

/* The signals by which a process ends itself. */
static const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

enum { CRASHES = sizeof crashes / sizeof *crashes };

static struct sigaction before[CRASHES];

/* Notes the running jobs, as far as memory can still be read, and leaves the rest to the handler of
 * before: the instruction comes again, or the signal that somebody has sent. */
static void crashed(int number, siginfo_t *info, void *)
{
	const struct stored *s = TAILQ_FIRST(&all);

	for (int i = 0; i < CRASHES; i++)
		sigaction(crashes[i], &before[i], NULL);
	for (unsigned left = count; s && left; left--, s = TAILQ_NEXT(s, place))
		if (!s->hidden && (s == reviving || stored_state(s) == STORED_RUNNING))
			archive_note_crash(s->id);
	if (info->si_code <= 0)
		raise(number);
}

enum error store_init(const struct store_owner *o)
{
	const struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO};
	enum error e = loop_timer_init(&tick, look_at_all, NULL);

	owner = o;
	if (e)
		return e;
	archive_read(found);
	for (int i = 0; archive_is_open() && i < CRASHES; i++)
		sigaction(crashes[i], &action, &before[i]);
	/* The limits may be others now. */
	reduce(SHARE_RESULTS, config->result_count, NULL);
	reduce(SHARE_RESULT_SIZE, config->result_size, NULL);
	return ERR_OK;
}

void store_fini(void)
{
	while (!TAILQ_EMPTY(&all))
		remove_stored(TAILQ_FIRST(&all));
	loop_timer_fini(&tick);
}
