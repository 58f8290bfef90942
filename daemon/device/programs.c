/* Programs in memory. The general kernels of a type are one program. Every other is a program of
 * one kernel, told apart by the options it is compiled with.
 *
 * Threads: the builder takes requests in order. A special is its own while it is pending; what it
 * builds it launches once, on a queue of its own, for some drivers compile only then. The worker's
 * thread does everything else. `lock` guards the lists and each special's state. */
#include "device/programs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"
#include "device/live.h"

/* PENDING_SHARE: of those that wait to be compiled, one client's. We ask for a few at a time. */
enum {
	OPTIONS_SIZE = 320,
	SPECIALS_MOST = 512,
	PENDING_MAX = 32,
	PENDING_SHARE = 8,
	WARM_WIDTH = 256
};

struct special {
	struct special *next;
	enum kernel kernel;
	enum pixel_type type;
	char options[OPTIONS_SIZE];
	enum program_state state;
	bool urgent;   /* a tile waits for it */
	bool building; /* the builder has it */
	uint32_t client;
	cl_program program;
	cl_kernel function;
	struct step like; /* the step that asked first, for the first launch */
};

/* Programs of general kernels. */
struct general {
	cl_program program;
	cl_kernel function[KERNELS];
};

struct programs {
	struct program_source source;
	int notify_fd;
	char general_options[128];
	struct general general[PIXEL_TYPES];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool started, stop;
	struct special *specials; /* last asked for first, of those that are not pending */
	uint32_t count, most, pending;
	uint32_t client; /* that asks now */
	uint32_t served; /* the client whose program was built last */
	struct message_programs built;
	cl_command_queue queue; /* the builder's */
};

const struct device *programs_device(const struct programs *programs)
{
	return programs->source.device;
}

void programs_count(struct programs *programs, struct message_programs *count)
{
	pthread_mutex_lock(&programs->lock);
	*count = programs->built;
	count->pending = programs->pending;
	pthread_mutex_unlock(&programs->lock);
}

static enum error build_general(struct programs *p, enum pixel_type type)
{
	struct general *general = &p->general[type];
	cl_int code = CL_SUCCESS;
	bool cached;
	enum error e =
	    program_build(&p->source, NULL, p->general_options, type, &general->program, &cached);

	if (e)
		return e;
	*(cached ? &p->built.cached : &p->built.compiled) += 1;
	for (enum kernel k = 0; !code && k < KERNELS; k++)
		if (kernel_row(k)->origin == KERNEL_GENERAL)
			general->function[k] = live_add(
			    OBJECT_KERNEL, clCreateKernel(general->program, kernel_name(k), &code));
	if (code)
		log_error("cannot make the kernels: %s", opencl_error_name(code));
	return code ? ERR_DEVICE : ERR_OK;
}

/* The options that a step's kernel is compiled with: no two specials have the same, though one file
 * may have several kernels, for what PoCL keeps of a program in files goes with it. */
static void write_options(const struct step *step, char options[OPTIONS_SIZE])
{
	const struct shape *s = &step->shape;

	snprintf(
	    options, OPTIONS_SIZE,
	    "-DKERNEL_%s -DBANDS=%u -DRADIUS_X=%u -DRADIUS_Y=%u -DKEEP=%uu -DALPHA=%u "
	    "-DOUTPUT=%u -DSMOOTH0=%.9ef -DSMOOTH1=%.9ef -DSMOOTH2=%.9ef -DBLOCK_X=%u -DBLOCK_Y=%u "
	    "-DGROUP_X=%u -DGROUP_Y=%u",
	    kernel_name(step->kernel), step->bands, step->radius_x, step->radius_y, step->keep,
	    step->alpha, step->output, step->smooth[0], step->smooth[1], step->smooth[2], s->x,
	    s->y, s->group_x, s->group_y);
}

/* One launch on a small area of zeros. */
static cl_int launch_once(struct programs *p, struct special *special)
{
	const struct step *like = &special->like;
	const struct variant *variant = variant_get(special->kernel);
	struct step step = *like;
	struct tile tile = {.width = WARM_WIDTH + variant->samples_min, .height = 2 * step.shape.y};
	uint64_t sample = sizeof(float) * step.bands;
	uint32_t pitch = (uint32_t)((tile.width + 2 * step.radius_x + 64) * sample + 63) & ~63u;
	uint64_t lead = (step.radius_x * sample + 63) & ~UINT64_C(63);
	uint64_t size = (uint64_t)pitch * (tile.height + 2 * step.radius_y + 1);
	struct view views[PLACES] = {0}, packed = {0};
	cl_context context = p->source.device->context;
	cl_event event = NULL;
	cl_int code;
	cl_mem dst = NULL, src = live_add(OBJECT_BUFFER, clCreateBuffer(context, CL_MEM_READ_WRITE,
	                                                                size, NULL, &code));

	step.function = special->function;
	step.expand_x = step.expand_y = 0;
	step.points = (struct step_points){0};
	if (!code)
		dst = live_add(OBJECT_BUFFER,
		               clCreateBuffer(context, CL_MEM_READ_WRITE,
		                              step_pack(&step, &tile, &packed), NULL, &code));
	step.src = PLACE_IN;
	step.dst = PLACE_OUT;
	views[PLACE_IN] = (struct view){src, lead + (uint64_t)step.radius_y * pitch, pitch};
	packed.buffer = dst;
	views[PLACE_OUT] = packed;
	if (!code)
		code = step_launch(&step, p->source.device, &tile, NULL, p->queue, views, &event);
	live_add(OBJECT_EVENT, event);
	if (!code)
		code = clFinish(p->queue);
	live_release(OBJECT_EVENT, event);
	live_release(OBJECT_BUFFER, src);
	live_release(OBJECT_BUFFER, dst);
	return code;
}

static enum program_state build_special(struct programs *p, struct special *special)
{
	const char *file = variant_get(special->kernel)->file;
	bool cached;
	cl_int code;

	if (program_build(&p->source, file, special->options, special->type, &special->program,
	                  &cached))
		return PROGRAM_FAILED;
	special->function = live_add(
	    OBJECT_KERNEL, clCreateKernel(special->program, kernel_name(special->kernel), &code));
	if (!code && !p->source.device->in_test)
		code = launch_once(p, special);
	if (code) {
		log_error("cannot launch %s (%s): %s", kernel_name(special->kernel),
		          special->options, opencl_error_name(code));
		return PROGRAM_FAILED;
	}
	pthread_mutex_lock(&p->lock);
	*(cached ? &p->built.cached : &p->built.compiled) += 1;
	pthread_mutex_unlock(&p->lock);
	log_debug("%s (%s) is %s", kernel_name(special->kernel), special->options,
	          cached ? "loaded" : "compiled");
	return PROGRAM_READY;
}

/* How soon it is to be built: before others if it is urgent, then if its client was not served
 * last. */
static int rank(const struct programs *p, const struct special *s)
{
	return 2 * s->urgent + (s->client != p->served);
}

/* The special that has been waiting longest, of those of the highest rank. */
static struct special *next_pending(const struct programs *p)
{
	struct special *next = NULL;

	for (struct special *s = p->specials; s; s = s->next)
		if (s->state == PROGRAM_PENDING && (!next || rank(p, s) >= rank(p, next)))
			next = s;
	return next;
}

static void announce(const struct programs *p)
{
	const uint64_t one = 1;

	if (p->notify_fd >= 0 && write(p->notify_fd, &one, sizeof one) < 0)
		log_debug("the eventfd is full");
}

/* The lock is held on entry and on return, but not in between. */
static void work_once(struct programs *p, struct special *special)
{
	enum program_state state;

	special->building = true;
	p->served = special->client;
	pthread_mutex_unlock(&p->lock);
	state = build_special(p, special);
	pthread_mutex_lock(&p->lock);
	special->state = state;
	p->built.failed += state == PROGRAM_FAILED;
	step_release(&special->like);
	p->pending--;
	announce(p);
	pthread_cond_broadcast(&p->change);
}

static void *builder(void *data)
{
	struct programs *p = data;

	/* Compiling gives way to everything else. */
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10))
		log_debug("the builder runs at normal priority");
	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct special *special = next_pending(p);

		if (special)
			work_once(p, special);
		else
			pthread_cond_wait(&p->change, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static enum error start_builder(struct programs *p)
{
	const struct device *device = p->source.device;
	cl_int code;

	p->queue =
	    live_add(OBJECT_QUEUE, clCreateCommandQueue(device->context, device->id, 0, &code));
	if (code) {
		log_error("cannot make a queue: %s", opencl_error_name(code));
		return ERR_DEVICE;
	}
	if (pthread_create(&p->thread, NULL, builder, p))
		return ERR_MEMORY;
	p->started = true;
	return ERR_OK;
}

enum error programs_new(struct programs **programs, const struct device *device,
                        const char *kernel_dir, const char *cache_dir, uint64_t cache_size,
                        int notify_fd)
{
	struct programs *p = calloc(1, sizeof *p);
	enum error e = ERR_OK;

	*programs = p;
	if (!p)
		return ERR_MEMORY;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->change, NULL);
	p->notify_fd = notify_fd;
	p->most = SPECIALS_MOST;
	p->source = (struct program_source){device, kernel_dir, cache_open(cache_dir, cache_size)};
	snprintf(p->general_options, sizeof p->general_options,
	         "-DSEPARABLE_ROWS=%u -DMATRIX_ROWS=%u -DGRADIENT_ROWS=%u",
	         variant_general_shape(device, KERNEL_SEPARABLE).y,
	         variant_general_shape(device, KERNEL_MATRIX).y,
	         variant_general_shape(device, KERNEL_GRADIENT).y);
	for (enum pixel_type type = 0; !e && type < PIXEL_TYPES; type++)
		e = build_general(p, type);
	if (!e)
		e = start_builder(p);
	if (e)
		programs_free(programs);
	return e;
}

static void special_free(struct special *s)
{
	step_release(&s->like);
	live_release(OBJECT_KERNEL, s->function);
	live_release(OBJECT_PROGRAM, s->program);
	free(s);
}

static void general_free(struct general *general)
{
	for (enum kernel k = 0; k < KERNELS; k++)
		live_release(OBJECT_KERNEL, general->function[k]);
	live_release(OBJECT_PROGRAM, general->program);
}

void programs_free(struct programs **programs)
{
	struct programs *p = *programs;
	struct special *next;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
	if (p->started)
		pthread_join(p->thread, NULL);
	for (struct special *s = p->specials; s; s = next) {
		next = s->next;
		special_free(s);
	}
	for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
		general_free(&p->general[type]);
	live_release(OBJECT_QUEUE, p->queue);
	cache_close(&p->source.cache);
	pthread_cond_destroy(&p->change);
	pthread_mutex_destroy(&p->lock);
	free(p);
	*programs = NULL;
}

static struct special *find_special(struct programs *p, const struct step *step,
                                    const char *options)
{
	for (struct special **link = &p->specials, *s; (s = *link); link = &s->next) {
		if (s->kernel != step->kernel || s->type != step->program ||
		    strcmp(s->options, options))
			continue;
		if (s->state != PROGRAM_PENDING) { /* those keep their order */
			*link = s->next;
			s->next = p->specials;
			p->specials = s;
		}
		return s;
	}
	return NULL;
}

void programs_bound(struct programs *programs, uint32_t most)
{
	programs->most = most;
}

void programs_for(struct programs *p, uint32_t client)
{
	p->client = client;
}

static void forget(struct programs *p, struct special **link)
{
	struct special *gone = *link;

	*link = gone->next;
	p->count--;
	p->pending -= gone->state == PROGRAM_PENDING;
	special_free(gone);
}

/* True if somebody else holds its kernel: a plan's step, or the tuner's. */
static bool in_use(const struct special *s)
{
	cl_uint holders = 0;

	if (s->function)
		clGetKernelInfo(s->function, CL_KERNEL_REFERENCE_COUNT, sizeof holders, &holders,
		                NULL);
	return holders > 1;
}

/* Lets go of the special that was not asked for for longest, of those that are not pending and that
 * nobody uses: it would be there twice when it is asked for again, and share its files. False if
 * there is none. */
static bool forget_oldest(struct programs *p)
{
	struct special **oldest = NULL;

	for (struct special **link = &p->specials; *link; link = &(*link)->next)
		if ((*link)->state != PROGRAM_PENDING && !in_use(*link))
			oldest = link;
	if (oldest)
		forget(p, oldest);
	return oldest != NULL;
}

/* Lets go of the newest that is pending and for which no tile waits: it is asked for again. */
static void forget_patient(struct programs *p)
{
	struct special **link = &p->specials;

	while (*link && ((*link)->state != PROGRAM_PENDING || (*link)->urgent || (*link)->building))
		link = &(*link)->next;
	if (*link)
		forget(p, link);
}

/* Whether the client that asks may have one more compiled: urgent or not, within all bounds. */
static bool may_ask(struct programs *p, bool urgent)
{
	unsigned own = 0;

	for (const struct special *s = p->specials; s; s = s->next)
		own += s->state == PROGRAM_PENDING && s->client == p->client;
	if (p->client && own >= PENDING_SHARE)
		return false;
	if (urgent && p->pending >= PENDING_MAX)
		forget_patient(p);
	return p->pending < PENDING_MAX;
}

static struct special *add_special(struct programs *p, const struct step *step, const char *options)
{
	struct special *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	while (p->count >= p->most && forget_oldest(p))
		;
	s->kernel = step->kernel;
	s->type = step->program;
	s->state = PROGRAM_PENDING;
	s->client = p->client;
	s->like = *step;
	step_retain(&s->like);
	snprintf(s->options, sizeof s->options, "%s", options);
	s->next = p->specials;
	p->specials = s;
	p->count++;
	p->pending++;
	pthread_cond_broadcast(&p->change);
	return s;
}

enum program_state programs_find(struct programs *p, struct step *step, bool urgent)
{
	char options[OPTIONS_SIZE];
	struct special *s;
	enum program_state state = PROGRAM_FAILED;

	if (kernel_row(step->kernel)->origin == KERNEL_GENERAL) {
		step->function = p->general[step->program].function[step->kernel];
		step_retain_kernel(step);
		return PROGRAM_READY;
	}
	write_options(step, options);
	pthread_mutex_lock(&p->lock);
	s = find_special(p, step, options);
	if (!s && !may_ask(p, urgent))
		state = PROGRAM_PENDING;
	else if (!s)
		s = add_special(p, step, options);
	if (s) {
		s->urgent |= urgent;
		state = s->state;
	}
	if (state == PROGRAM_READY) {
		step->function = s->function;
		step_retain_kernel(step);
	}
	pthread_mutex_unlock(&p->lock);
	return state;
}

void programs_wait(struct programs *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->pending)
		pthread_cond_wait(&p->change, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
