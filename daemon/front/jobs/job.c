/* Jobs: their life from submission to the end, and the queue of those that wait for a codec worker,
 * which is fair between clients. */
#include "front/jobs/job.h"

#include <stdlib.h>
#include <string.h>

#include "filters/chain_gather.h"

/* Batch jobs get a tenth while others wait. */
static const double weights[WORK_CLASSES] = {
    [WORK_LIGHT] = 9, [WORK_HEAVY] = 9, [WORK_BATCH] = 2, [WORK_VERIFIED] = 9};

static struct fair queue;
static unsigned open_jobs;
static uint64_t last_id, ended;
static const struct job_owner *owner;

void jobs_init(const struct job_owner *o)
{
	owner = o;
	fair_init(&queue, weights, WORK_CLASSES);
}

struct jobs_count jobs_count(void)
{
	return (struct jobs_count){open_jobs, queue.count, ended};
}

bool job_is_heavy(const struct job *job)
{
	return job->class != WORK_LIGHT;
}

void job_set_jpeg(struct job *job, enum jpeg_reason reason)
{
	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
		if (job->jpeg_form >> side & 1)
			job->jpeg[side] = reason;
}

/* The call that the next run gathers for, or NULL. */
static const struct filter_call *next_gathering(const struct job *job)
{
	const struct chain *asked = job->asked->chain;
	const uint32_t i = chain_gathering(asked);

	return i < asked->count ? &asked->call[i] : NULL;
}

/* Sets the chain of the next run: the whole chain; or the calls before one that must know the whole
 * image; or nothing, to learn the image's size. */
static enum error choose_run(struct job *job)
{
	struct shared_chain *asked = job->asked, *chain = asked;
	const bool has_shares = chain_has_shares(asked->chain);
	const struct filter_call *call = has_shares ? NULL : next_gathering(job);

	if (call || has_shares) {
		struct chain *before =
		    chain_before(asked->chain, call ? chain_gathering(asked->chain) : 0);

		chain = before ? chain_share(before) : NULL;
	} else {
		chain->users++;
	}
	if (!chain)
		return ERR_MEMORY;
	job->chain = chain;
	job->gathering = call ? filter_gathering(call) : (struct gathering){.kind = GATHER_NONE};
	job->gather_channels = call ? call->channels : CHANNELS_ALL;
	return ERR_OK;
}

struct job *job_new_empty(void)
{
	struct job *job = calloc(1, sizeof *job);

	if (!job)
		return NULL;
	job->references = 1;
	job->body = job->answer = SPOOL_NONE;
	return job;
}

struct job *job_new(struct chain *chain, struct spool *body)
{
	struct shared_chain *shared = chain_share(chain);
	struct job *job = shared ? job_new_empty() : NULL;

	if (job)
		job->asked = shared;
	if (!job || choose_run(job)) {
		if (shared)
			chain_release(shared);
		free(job);
		return NULL;
	}
	job->id = ++last_id;
	job->options.job = job->id;
	job->options.body_size = body->size;
	job->body = *body;
	*body = SPOOL_NONE;
	return job;
}

void job_hold(struct job *job)
{
	job->references++;
}

void job_release(struct job *job)
{
	if (--job->references)
		return;
	spool_close(&job->body);
	share_give_all(&job->memory);
	share_give_all(&job->place);
	spool_close(&job->answer);
	if (job->chain)
		chain_release(job->chain);
	if (job->asked)
		chain_release(job->asked);
	free(job);
}

static void deadline_passed(void *context)
{
	struct job *job = context;

	fail_with(job_cancel, job, ERR_DEADLINE,
	          "the job was not done %.3f s after its image had come",
	          (double)(loop_now() - job->times.accepted) * 1e-9);
}

static void set_cost(struct job *job, double cost)
{
	job->cost = cost;
	job->class = job->options.verify ? WORK_VERIFIED
	                                 : work_class(job->terms.priority == PRIORITY_BATCH, cost);
}

static enum error open_flow(struct job *job)
{
	return fair_open(&queue, &job->waiting, job->class, job->terms.client, job->terms.share);
}

enum error job_take_place(struct job *job)
{
	return job->place.amount ? ERR_OK
	                         : share_force(&job->place, SHARE_JOBS, job->terms.client, 1);
}

enum error job_submit(struct job *job, void (*done)(struct job *job, void *context), void *context)
{
	const uint64_t now = loop_now(), deadline = job->terms.deadline;

	set_cost(job, work_cost(job->options.body_size));
	if (open_flow(job))
		return ERR_MEMORY;
	if (job_take_place(job) ||
	    (deadline && loop_timer_init(&job->deadline, deadline_passed, job))) {
		share_give_all(&job->place);
		fair_close(&queue, &job->waiting);
		return ERR_MEMORY;
	}
	if (deadline)
		loop_timer_start(&job->deadline,
		                 1 + (deadline > now ? deadline - now : 0) / 1000000);
	job_hold(job);
	job->done = done;
	job->context = context;
	job->times.accepted = job->times.queued = now;
	job->item.cost = job->cost;
	admission_began(job->class, job->cost);
	fair_push(&queue, &job->waiting, &job->item);
	open_jobs++;
	owner->waiting();
	return ERR_OK;
}

void job_waits(struct job *job, int more)
{
	const uint64_t now = loop_now();
	const bool waited = job->tiles_waiting;

	if (waited && !job->finished)
		job->times.compile += now - job->tiles_waited;
	job->tiles_waited = now;
	job->tiles_waiting += (unsigned)more;
	if (!job->finished && waited != (job->tiles_waiting > 0))
		admission_held(job->class, !waited);
}

/* Adds the time since a moment to a sum, and forgets the moment. */
static void add_since(uint64_t *sum, uint64_t *since, uint64_t now)
{
	if (*since)
		*sum += now - *since;
	*since = 0;
}

void job_back(struct job *job)
{
	add_since(&job->times.away, &job->times.out, loop_now());
}

/* If the class changes, the queue does not refund the old class and charges the new one in full. */
enum error job_reckon(struct job *job, double cost)
{
	enum work_class class = job->class;
	double old = job->cost, owed = cost - old;

	set_cost(job, cost);
	admission_changed(class, old, job->class, cost);
	if (job->tiles_waiting) {
		admission_held(class, false);
		admission_held(job->class, true);
	}
	if (job->class != class) {
		fair_close(&queue, &job->waiting);
		if (open_flow(job))
			return ERR_MEMORY;
		owed = cost;
	}
	fair_charge(&queue, &job->waiting, owed);
	return ERR_OK;
}

bool task_is_current(const struct task *task)
{
	return !task->job->finished && task->tile.job == task->job->options.job;
}

/* Puts the job at the head of the queue, without anything of its run. */
static void queue_again(struct job *job)
{
	job->options.job = ++last_id;
	job->image_known = false;
	job->tiles = job->tiles_done = 0;
	spool_close(&job->answer);
	if (!job->times.queued)
		job->times.queued = loop_now();
	job->item.cost = 1; /* already charged */
	fair_return(&queue, &job->waiting, &job->item);
}

void job_restart(struct job *job)
{
	job->devices_used = 0;
	job->times =
	    (struct job_times){.accepted = job->times.accepted, .queued = job->times.accepted};
	memset(&job->verified, 0, sizeof job->verified);
	queue_again(job);
}

/* Returns a gathering run's result; its size is 0 if a codec worker would have refused it. */
static struct image image_gathered(const struct job *job)
{
	struct image image = job->image;

	if (chain_output_size(job->chain->chain, &job->image, &image.width, &image.height, NULL))
		image.width = image.height = 0;
	return image;
}

uint32_t job_pages_read(const struct job *job, uint32_t pages)
{
	return job->options.page == PAGES_ALL ? pages : 1;
}

uint64_t job_gathers(const struct job *job)
{
	const struct image image = image_gathered(job);
	uint32_t width, height;

	gather_size(&job->gathering, &image, &width, &height);
	return image.width ? (uint64_t)width * height * job_pages_read(job, job->pages) : 0;
}

/* Replaces the requested chain; owns the new one from now on, also on failure. */
static enum error ask_for(struct job *job, struct chain *chain)
{
	struct shared_chain *asked = chain_share(chain), *old = job->asked, *old_run = job->chain;

	if (!asked)
		return ERR_MEMORY;
	job->asked = asked;
	if (choose_run(job)) {
		job->asked = old;
		chain_release(asked);
		return ERR_MEMORY;
	}
	chain_release(old);
	chain_release(old_run);
	return ERR_OK;
}

enum error job_size_to(struct job *job, const struct image *image, struct problem *problem)
{
	struct chain *sized;
	enum error e =
	    chain_size_to(job->asked->chain, image->width, image->height, &sized, problem);

	if (!e && ask_for(job, sized))
		e = no_memory(problem, "for the chain");
	return e;
}

enum error job_go_on(struct job *job, const double *numbers)
{
	const struct chain *asked = job->asked->chain;
	const struct image image = image_gathered(job);
	struct chain *chain = chain_gathered(asked, chain_gathering(asked), numbers, &image,
	                                     job_pages_read(job, job->pages));

	if (!chain || ask_for(job, chain))
		return ERR_MEMORY;
	job->spent = job->cost;
	job->tiles_before += job->tiles;
	queue_again(job);
	return ERR_OK;
}

uint32_t job_tiles_done(const struct job *job)
{
	return job->tiles_before + job->tiles_done;
}

uint32_t job_tiles(const struct job *job)
{
	uint32_t runs = 1;

	for (uint32_t i = 0; job->asked && i < job->asked->chain->count; i++) {
		const struct filter_call *call = &job->asked->chain->call[i];

		runs += filter_gathers(call) && !call->gathered.width;
	}
	return job->tiles_before + runs * job->tiles;
}

bool job_leave_queue(struct job *job)
{
	return job->waiting.client && fair_take_all(&queue, &job->waiting);
}

struct job *job_next_waiting(unsigned classes)
{
	struct fair_item *item = fair_pop(&queue, classes);

	return item ? (struct job *)((char *)item - offsetof(struct job, item)) : NULL;
}

/* Ends all running measurements. Tiles waited for devices as long as they were away and neither
 * waited for a program nor were worked on; a codec worker waited for a processor or a file as long
 * as it had the job and neither worked nor had tiles away. */
static void end_times(struct job *job)
{
	struct job_times *t = &job->times;
	const uint64_t codec = t->decode + t->encode + t->verify + t->reference;
	uint64_t device = t->upload + t->download, run;

	if (job->tiles_waiting)
		job_waits(job, 0);
	t->finished = loop_now();
	add_since(&t->queue, &t->queued, t->finished);
	add_since(&t->away, &t->out, t->finished);
	run = t->finished - t->accepted - t->queue;
	device += t->compile;
	for (enum kernel k = 0; k < KERNELS; k++)
		device += t->kernel[k];
	t->wait = (t->away > device ? t->away - device : 0) +
	          (run > t->away + codec ? run - t->away - codec : 0);
}

void job_finish(struct job *job, enum error error, const struct problem *problem)
{
	if (job->finished)
		return;
	end_times(job);
	job->finished = true;
	job->error = error;
	if (problem)
		job->problem = *problem;
	if (job->terms.stripped && (error == ERR_NOT_AN_IMAGE || error == ERR_UNDECODABLE))
		problem_set(
		    &job->problem, error,
		    "the body has neither line ends nor zero bytes, which curl -d removes from a "
		    "file; use curl --data-binary @FILE, which sends it unchanged");
	fair_close(&queue, &job->waiting);
	if (job->terms.deadline)
		loop_timer_fini(&job->deadline);
	if (job->tiles_waiting)
		admission_held(job->class, false);
	admission_ended(job->class, job->cost);
	open_jobs--;
	ended++;
	spool_close(&job->body);
	share_give_all(&job->memory);
	share_give_all(&job->place);
	if (job->done)
		job->done(job, job->context);
	job_release(job);
}

void job_cancel(struct job *job, enum error error, const struct problem *problem)
{
	if (job->finished)
		return;
	if (!job_leave_queue(job))
		owner->cancelled(job);
	job_finish(job, error, problem);
}
