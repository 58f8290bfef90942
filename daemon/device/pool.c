/* One lock guards the list of work. It is not held while arguments are set or a launch runs. The
 * thread that finishes the last piece of a step makes the next step available; a thread that finds
 * no piece sleeps. */
#include "device/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/log.h"
#include "base/loop.h"
#include "device/plan/maker.h"

enum {
	THREADS_MAX = 256,
	THREADS_OF_DRIVERS = 2,
	FORMS_KEPT = 64, /* PoCL keeps twice as many; not all that it makes are counted */
};

struct pool {
	const struct device *device;
	int notify_fd;
	pthread_mutex_t lock;
	pthread_cond_t wanted, done;
	TAILQ_HEAD(pool_works, pool_work) works;
	uint32_t asleep;
	uint64_t turns; /* times that a kernel began to run, or may have got a form */
	bool stop;
	uint32_t threads;
	struct pool_thread {
		struct pool *pool;
		cl_command_queue queue;
		pthread_t id;
	} thread[];
};

/* PoCL 3.1 without threads keeps several forms of a kernel: for each shape of groups, for launches
 * whose numbers all begin at 0 or do not, and for the largest grid so far, when a larger one comes.
 * It counts their users, but subtracts a leaving user from the newest form, and ends the process
 * when that form has none left. So nothing runs beside a launch that makes a form. PoCL also drops
 * the least recently used of 128 forms, so after many turns of others a kernel may have none. */

static uint64_t turns(const struct pool *p)
{
	return p->turns + maker_launches();
}

/* Returns true if a piece of work is larger than all earlier pieces of its kernel. */
static bool is_larger(const struct pool_work *work, uint32_t piece)
{
	const struct launch_record *r = work->launch.step.record;
	const struct shape *shape = &work->launch.step.shape;

	return launch_side(&work->launch, piece) > r->side || shape->group_x != r->group_x ||
	       shape->group_y != r->group_y;
}

/* True if the next piece of running work may run beside others of its kernel, if any. */
static bool may_run(const struct pool_work *work)
{
	const struct launch_record *r = work->launch.step.record;

	return !r->running || (!r->alone && !is_larger(work, work->taken));
}

/* Returns the work with the fewest threads that has a piece for one more; the oldest of equals. */
static struct pool_work *find_work(const struct pool *p)
{
	struct pool_work *best = NULL;

	for (struct pool_work *w = TAILQ_FIRST(&p->works); w; w = TAILQ_NEXT(w, place))
		if ((!best || w->threads < best->threads) &&
		    (w->state == WORK_WAITS ||
		     (w->state == WORK_RUNS && w->taken < w->pieces && may_run(w))))
			best = w;
	return best;
}

static void wake(struct pool *p, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < p->asleep; i++)
		pthread_cond_signal(&p->wanted);
}

/* Ends a step, and after the last step, or a failed one, the work. */
static void end_step(struct pool *p, struct pool_work *work)
{
	const int tell = work->quiet ? -1 : p->notify_fd;

	object_release(OBJECT_KERNEL, work->launch.step.function);
	work->launch.step.function = NULL;
	work->state = WORK_WAITS;
	if (!work->status && ++work->at < work->steps)
		return;
	TAILQ_REMOVE(&p->works, work, place);
	atomic_store_explicit(&work->done, true, memory_order_release); /* it may be gone now */
	pthread_cond_broadcast(&p->done);
	loop_post(tell);
}

/* Prepares the launch of the next step of work on a kernel of its own, because the arguments of the
 * step's kernel may belong to other work. Called and returns with the lock held. */
static void begin_step(struct pool *p, struct pool_work *work)
{
	const struct step *step = work->step[work->at];
	const uint32_t threads = p->asleep + 1;
	cl_kernel kernel = NULL;
	cl_program program;
	cl_int code;

	work->state = WORK_BEGINS;
	pthread_mutex_unlock(&p->lock);
	code = clGetKernelInfo(step->function, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
	if (!code)
		kernel = object_add(OBJECT_KERNEL,
		                    clCreateKernel(program, kernel_name(step->kernel), &code));
	region_lay_out(step, work->tile, work->views);
	if (!code)
		code = launch_prepare(step, kernel, p->device, work->tile, work->views, threads,
		                      &work->launch);
	pthread_mutex_lock(&p->lock);
	work->state = WORK_RUNS;
	work->taken = work->ended = 0;
	work->pieces = code ? 0 : (uint32_t)(work->launch.pieces[0] * work->launch.pieces[1]);
	if (!work->pieces) {
		work->status = code;
		end_step(p, work);
	} else {
		wake(p, work->pieces - 1);
	}
}

/* Runs the next piece of work. Called and returns with the lock held. */
static void do_piece(struct pool *p, struct pool_work *work, cl_command_queue queue)
{
	const uint32_t piece = work->taken++, side = launch_side(&work->launch, piece);
	const struct shape *shape = &work->launch.step.shape;
	struct launch_record *r = work->launch.step.record;
	cl_event event = NULL;
	uint64_t ns = 0;
	cl_int code, finished;

	work->threads++;
	r->alone = is_larger(work, piece) || (!r->running && turns(p) - r->turn >= FORMS_KEPT);
	p->turns += !r->running || r->alone;
	r->running++;
	pthread_mutex_unlock(&p->lock);
	code = launch_piece(&work->launch, piece, queue, &event);
	object_add(OBJECT_EVENT, event);
	finished = clFinish(queue);
	if (!code)
		code = finished;
	if (!code)
		code = opencl_time_between(event, event, &ns);
	if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
		code = CL_SUCCESS;
	object_release(OBJECT_EVENT, event);
	pthread_mutex_lock(&p->lock);
	work->threads--;
	r->running--;
	if (r->alone) {
		*r = (struct launch_record){.side = side == UINT32_MAX ? 0 : side,
		                            .group_x = shape->group_x,
		                            .group_y = shape->group_y};
		wake(p, p->asleep); /* some may have waited for this */
	}
	r->turn = turns(p);
	work->ns[work->at] += p->device->serial ? ns / p->threads : ns;
	if (code && !work->status)
		work->status = code;
	if (++work->ended == work->pieces)
		end_step(p, work);
}

static void *run(void *thread)
{
	const struct pool_thread *t = thread;
	struct pool *p = t->pool;
	struct pool_work *work;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		work = find_work(p);
		if (!work) {
			p->asleep++;
			pthread_cond_wait(&p->wanted, &p->lock);
			p->asleep--;
		} else if (work->state == WORK_WAITS) {
			begin_step(p, work);
		} else {
			do_piece(p, work, t->queue);
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

enum error pool_new(const struct device *device, int notify_fd, struct pool **pool)
{
	const uint32_t wanted =
	    device->serial ? MIN(device->units, THREADS_MAX) : THREADS_OF_DRIVERS;
	struct pool *p = calloc(1, sizeof *p + wanted * sizeof p->thread[0]);

	*pool = p;
	if (!p)
		return ERR_MEMORY;
	p->device = device;
	p->notify_fd = notify_fd;
	TAILQ_INIT(&p->works);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wanted, NULL);
	pthread_cond_init(&p->done, NULL);
	for (; p->threads < wanted; p->threads++) {
		struct pool_thread *t = &p->thread[p->threads];

		t->pool = p;
		t->queue = device_queue(device, CL_QUEUE_PROFILING_ENABLE);
		if (t->queue && !pthread_create(&t->id, NULL, run, t))
			continue;
		log_error("cannot start a thread that launches");
		object_release(OBJECT_QUEUE, t->queue);
		pool_free(pool);
		return ERR_DEVICE;
	}
	return ERR_OK;
}

void pool_free(struct pool **pool)
{
	struct pool *p = *pool;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->wanted);
	pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < p->threads; i++) {
		pthread_join(p->thread[i].id, NULL);
		object_release(OBJECT_QUEUE, p->thread[i].queue);
	}
	pthread_cond_destroy(&p->wanted);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	free(p);
	*pool = NULL;
}

uint32_t pool_threads(const struct pool *pool)
{
	return pool->threads;
}

void pool_add(struct pool *p, struct pool_work *work)
{
	pthread_mutex_lock(&p->lock);
	TAILQ_INSERT_TAIL(&p->works, work, place);
	wake(p, 1);
	pthread_mutex_unlock(&p->lock);
}

void pool_wait(struct pool *p, const struct pool_work *work)
{
	pthread_mutex_lock(&p->lock);
	while (!pool_done(work))
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

cl_int pool_run(struct pool *pool, const struct step *step, const struct tile *tile,
                struct view *views, uint64_t *ns)
{
	struct pool_work work = {
	    .step = {step}, .steps = 1, .tile = tile, .views = views, .quiet = true};

	pool_add(pool, &work);
	pool_wait(pool, &work);
	*ns = work.ns[0];
	return work.status;
}
