/* Codec workers: each has an arena for life and one job at a time.
 *
 * The hard part is the end of a job. Its tiles may still be on a device, which writes into the
 * arena; so the arena has its next job only when every task is back, even if the codec process
 * that asked for them is long gone.
 *
 * Workers come and go at the end of the array. One above the configured number takes no job, is
 * ended when it has none, and its arena is closed when its process has been reaped. */
#include "front/codecs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/log.h"
#include "front/loop.h"
#include "front/metrics.h"
#include "front/supervisor.h"
#include "front/verified.h"

enum { CHECK_MS = 200 };

struct codec {
	struct worker worker;
	struct codec_arena arena;
	struct job *job;    /* that it works on; holds a reference */
	unsigned tasks;     /* that are not back */
	struct plan *plan;  /* that these go through, or NULL */
	uint32_t next_tile; /* index that the next MSG_TILE must have */
	struct verified_tiles verified;
};

static const struct config *config;
static const struct codec_owner *owner;
static struct codec *codecs;
static unsigned codec_count; /* that have ever been started */
static struct loop_timer check;

/* How many of them take jobs. */
static unsigned codecs_active(void)
{
	return config->codecs < codec_count ? (unsigned)config->codecs : codec_count;
}

static bool codec_is_surplus(const struct codec *c)
{
	return c->worker.number >= config->codecs;
}

const struct codec_arena *codec_arena(unsigned i)
{
	return i < codec_count && codecs[i].arena.in >= 0 ? &codecs[i].arena : NULL;
}

static void codec_start_job(struct codec *c, struct job *job)
{
	struct message message = {.type = MSG_JOB, .job = job->options};
	int fds[] = {job->body.fd, job->chain->fd};

	message.job.arena = c->worker.number;
	message.job.samples_max = owner->samples_max(job->chain->chain);
	message.job.verify_share = config->verify_share;
	message.job.verify_taps = config->verify_taps;
	c->job = job;
	c->next_tile = 0;
	c->verified = (struct verified_tiles){0};
	job->codec = c;
	job_hold(job);
	job->times.started = loop_now();
	metric_observe(METRIC_STAGE_DURATION, "queue", NULL,
	               (double)(job->times.started - job->times.accepted) * 1e-9);
	worker_send(&c->worker, &message, fds); /* if that fails, down() follows */
}

static bool codec_is_idle(const struct codec *c)
{
	return c->worker.state == WORKER_UP && !c->job && !c->tasks;
}

/* Heavy jobs together leave one codec worker to the others. */
static bool heavy_allowed(void)
{
	unsigned heavy = 0;

	for (unsigned i = 0; i < codecs_active(); i++)
		heavy += codecs[i].job && job_is_heavy(codecs[i].job);
	return codecs_active() == 1 || heavy + 1 < codecs_active();
}

void codecs_wake(void)
{
	for (unsigned i = 0; i < codecs_active() && jobs_waiting(); i++) {
		struct job *job;

		if (!codec_is_idle(&codecs[i]))
			continue;
		job = job_next_waiting(!heavy_allowed());
		if (!job)
			return;
		codec_start_job(&codecs[i], job);
	}
}

/* What is not open is -1. */
static void arena_close(struct codec_arena *arena)
{
	int *const fds[] = {&arena->in, &arena->in_read_only, &arena->out};

	for (int i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Ends a codec worker that has no job and is to have none: first its process, then, called again,
 * its arena. */
static void codec_end(struct codec *c)
{
	worker_stop(&c->worker);
	if (c->worker.state != WORKER_STOPPED || c->arena.in < 0)
		return;
	arena_close(&c->arena);
	owner->arena_closed(c->worker.number);
}

/* The arena is free again when no task of the ended job is out. */
static void codec_check_idle(struct codec *c)
{
	if (c->job || c->tasks)
		return;
	if (c->plan)
		plan_release(c->plan);
	c->plan = NULL;
	if (codec_is_surplus(c))
		codec_end(c);
	codecs_wake();
}

static void codec_end_job(struct codec *c, enum error error, const struct problem *problem)
{
	struct job *job = c->job;

	c->job = NULL;
	job->codec = NULL;
	owner->job_ended(job);
	job_finish(job, error, problem);
	job_release(job);
	codec_check_idle(c);
}

void codecs_cancel(struct job *job, enum error error, const struct problem *problem)
{
	struct message message = {.type = MSG_CANCEL, .cancel = {job->id}};

	if (job->finished)
		return;
	if (!job_leave_queue(job))
		worker_send(&job->codec->worker, &message, NULL);
	job_finish(job, error, problem);
}

static void job_late(struct job *job)
{
	struct problem problem;

	codecs_cancel(job,
	              problem_set(&problem, ERR_DEADLINE,
	                          "the job was not done %.3f s after its image had come",
	                          (double)(loop_now() - job->times.accepted) * 1e-9),
	              &problem);
}

static void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct codec *c = &codecs[task->tile.arena];
	struct job *job = task->job;
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};

	c->tasks--;
	job->tiles_done += !done->error;
	if (c->job == job) {
		verified_expect(&c->verified, task, done);
		worker_send(&c->worker, &message, NULL);
	}
	free(task);
	codec_check_idle(c);
	job_release(job);
}

static void codec_prepare(struct worker *worker)
{
	char memory[32];

	snprintf(memory, sizeof memory, "%llu", (unsigned long long)config->codec_memory);
	worker->start_ms = config->start_timeout * 1000;
	worker_argument(worker, "convolved-codec", NULL);
	worker_argument(worker, "--log-level", config->log_level);
	worker_argument(worker, "--log-format", config->log_format);
	worker_argument(worker, "--memory", memory);
}

static void codec_up(struct worker *worker, const struct message_ready *ready)
{
	struct codec *c = &codecs[worker->number];
	struct message message = {.type = MSG_ARENA,
	                          .arena = {.arena = worker->number,
	                                    .in_size = c->arena.in_size,
	                                    .out_size = c->arena.out_size}};
	int fds[] = {c->arena.in, c->arena.out};

	(void)ready;
	if (worker_send(worker, &message, fds))
		codecs_wake();
}

/* Opens the answer, and tells the worker. It lies in memory if it would do so as bare pixels, with
 * the body's metadata: a coded image is hardly ever larger. */
static void send_answer_file(struct codec *c, struct job *job, const struct image *answer)
{
	uint64_t size = image_size(answer) + job->options.body_size;
	struct message message = {.type = MSG_ANSWER, .answer = {job->id}};
	struct problem problem;
	enum error error;

	problem_set(&problem, ERR_IO, "there is no room for the answer");
	error = spool_open_anywhere(&job->answer, size);
	if (error)
		codecs_cancel(job, error, &problem);
	else
		worker_send(&c->worker, &message, &job->answer.fd);
}

static bool take_image(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;

	if (!job || m->job != job->id || job->image_known || !image_valid(&m->image) ||
	    !image_valid(&m->answer) || !m->tiles)
		return false;
	job->image = m->image;
	job->image_known = true;
	c->plan = plan_use(job->chain, &job->image);
	job->tiles = m->tiles;
	if (!job->finished)
		send_answer_file(c, job, &m->answer);
	return true;
}

static bool take_tile(struct codec *c, const struct tile *tile)
{
	struct job *job = c->job;
	struct task *task;

	if (!job || tile->job != job->id || !job->image_known || tile->arena != c->worker.number ||
	    tile->index != c->next_tile || tile->index >= job->tiles || c->tasks >= SLOTS_MAX ||
	    !tile_valid(tile, &job->image, job->chain->chain, c->arena.in_size, c->arena.out_size))
		return false;
	task = calloc(1, sizeof *task);
	if (!task)
		return false;
	task->tile = *tile;
	task->job = job;
	task->plan = c->plan;
	task->units =
	    (double)tile->width * tile->height * job->image.bands * chain_cost(job->chain->chain);
	task->item.cost = task->units;
	job_hold(job);
	job->task_done = codec_task_done;
	c->next_tile++;
	c->tasks++;
	owner->task_ready(task);
	return true;
}

static bool take_done(struct codec *c, const struct message_job_done *m)
{
	struct job *job = c->job;
	struct problem problem = m->problem;
	enum error error = (enum error)m->error;

	if (!job || m->job != job->id || m->error >= ERR_COUNT || m->format >= FORMATS ||
	    m->input_format >= FORMATS || (!m->error && !image_valid(&m->image)))
		return false;
	problem.parameter[sizeof problem.parameter - 1] = '\0';
	problem.value[sizeof problem.value - 1] = '\0';
	problem.detail[sizeof problem.detail - 1] = '\0';
	job->format = m->format;
	job->result = m->image;
	job->times.decode = m->decode_ns;
	job->times.encode = m->encode_ns;
	job->times.verify = m->verify_ns;
	job->times.reference = m->reference_ns;
	if (!m->error)
		spool_settle(&job->answer, m->answer_size);
	if (!error && job->options.verify && job->verified.mismatches)
		error = problem_set(&problem, ERR_DEVICE,
		                    "verification found %llu wrong samples in the result",
		                    (unsigned long long)job->verified.mismatches);
	codec_end_job(c, error, &problem);
	return true;
}

static bool take_verified(struct codec *c, const struct message_verified *found)
{
	unsigned device;

	if (!c->job || found->job != c->job->id ||
	    !verified_take(&c->verified, c->job, found, &device))
		return false;
	if (found->mismatches)
		owner->distrusted(device);
	return true;
}

static void codec_message(struct worker *worker, const struct message *message)
{
	struct codec *c = &codecs[worker->number];
	bool taken = false;

	if (message->type == MSG_IMAGE)
		taken = take_image(c, &message->image);
	else if (message->type == MSG_TILE)
		taken = take_tile(c, &message->tile.tile);
	else if (message->type == MSG_VERIFIED)
		taken = take_verified(c, &message->verified);
	else if (message->type == MSG_JOB_DONE)
		taken = take_done(c, &message->job_done);
	if (!taken) {
		log_warning("codec-%u sent a %s that does not fit its job", worker->number,
		            message_name(message->type));
		worker_kill(worker, "protocol");
	}
}

/* The worker died before it had read the header, perhaps before it had even seen the job: another
 * may try, once. */
static void codec_return_job(struct codec *c)
{
	struct job *job = c->job;

	c->job = NULL;
	job->codec = NULL;
	job->second_try = true;
	job_requeue(job);
	job_release(job);
	codec_check_idle(c);
}

static void codec_down(struct worker *worker, const char *reason)
{
	struct codec *c = &codecs[worker->number];
	struct problem problem;
	enum error error;

	if (!c->job) {
		codec_check_idle(c);
		return;
	}
	if (c->job->finished) {
		codec_end_job(c, c->job->error, NULL);
		return;
	}
	if (!c->job->image_known && !c->job->second_try && strcmp(reason, "timeout")) {
		codec_return_job(c);
		return;
	}
	if (!strcmp(reason, "timeout"))
		error = problem_set(&problem, ERR_TIMEOUT, "the job was ended after %llu s",
		                    (unsigned long long)config->job_timeout);
	else
		error =
		    problem_set(&problem, ERR_DECODER_DIED,
		                "the process that decoded this image ended (%s); the image may be "
		                "damaged or made to do harm",
		                reason);
	codec_end_job(c, error, &problem);
}

static const struct worker_owner codec_worker = {codec_prepare, codec_up, codec_message,
                                                 codec_down};

static void check_jobs(void *context)
{
	uint64_t limit = config->job_timeout * 1000000000u, now = loop_now();

	(void)context;
	for (unsigned i = 0; i < codec_count; i++)
		if (codecs[i].job && now - codecs[i].job->times.started > limit)
			worker_kill(&codecs[i].worker, "timeout");
}

static enum error arena_open(struct codec_arena *arena)
{
	uint64_t size = config->arena_size / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
	enum error e;

	*arena = (struct codec_arena){-1, -1, -1, size, size};
	e = arena_create("tiles-in", size, &arena->in);
	if (!e)
		e = arena_reopen_read_only(arena->in, &arena->in_read_only);
	if (!e)
		e = arena_create("tiles-out", size, &arena->out);
	if (e) {
		log_error("there is no room for an arena: %m");
		arena_close(arena);
	}
	return e;
}

/* One more codec worker, at the end of the array. */
static enum error codec_add(void)
{
	struct codec *c = &codecs[codec_count];
	enum error e = arena_open(&c->arena);

	if (e)
		return e;
	c->worker.kind = "codec";
	c->worker.number = codec_count;
	c->worker.owner = &codec_worker;
	codec_count++;
	owner->arena_opened(c->worker.number);
	return worker_start(&c->worker);
}

/* One that was ended is wanted again, perhaps before its process has been reaped. */
static void codec_resume(struct codec *c)
{
	if (c->arena.in < 0) {
		if (arena_open(&c->arena))
			return;
		owner->arena_opened(c->worker.number);
	}
	worker_resume(&c->worker);
}

static const struct job_owner job_owner = {codecs_wake, job_late};

enum error codecs_init(const struct config *c, const struct codec_owner *o)
{
	enum error e;

	config = c;
	owner = o;
	jobs_init(&job_owner);
	codecs = calloc(CODECS_MAX, sizeof *codecs);
	if (!codecs)
		return ERR_MEMORY;
	e = loop_timer_init(&check, check_jobs, NULL);
	if (e)
		return e;
	loop_timer_repeat(&check, CHECK_MS);
	while (!e && codec_count < config->codecs)
		e = codec_add();
	return e;
}

void codecs_reload(void)
{
	for (unsigned i = 0; i < codec_count; i++)
		if (codec_is_surplus(&codecs[i]))
			codec_check_idle(&codecs[i]);
		else if (codecs[i].worker.stopped)
			codec_resume(&codecs[i]);
	while (codec_count < config->codecs)
		if (codec_add())
			break;
	codecs_wake();
}

/* Jobs that are still open end here; nobody listens to them any more. */
void codecs_fini(void)
{
	struct job *waiting;

	while ((waiting = job_next_waiting(false)))
		job_finish(waiting, ERR_DRAINING, NULL);
	for (unsigned i = 0; i < codec_count; i++) {
		worker_fini(&codecs[i].worker);
		arena_close(&codecs[i].arena);
		if (!codecs[i].job)
			continue;
		owner->job_ended(codecs[i].job);
		job_finish(codecs[i].job, ERR_DRAINING, NULL);
		job_release(codecs[i].job);
	}
	free(codecs);
	codecs = NULL;
	codec_count = 0;
	loop_timer_fini(&check);
}
