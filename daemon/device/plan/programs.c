/* A special program is identified by its compiler options. JPEG's programs are bare: their kernels
 * have no rows in kernels.def.
 *
 * Two threads make programs, each with a maker. The urgent maker makes the programs that tiles wait
 * for. The patient maker makes everything else with a patient compiler process (compile_process.h),
 * and waits for a quiet moment before it compiles. Both may compile the same program; the first
 * binary wins. Only one of them at a time passes a program to the driver, because PoCL would use
 * the same files for both. A maker launches a new kernel once, on its own queue. PoCL unpacks a
 * program into files, so a general one that is in the cache stays there until a plan needs it.
 * Everything else runs in the worker's thread. `lock` guards the lists and every entry; recipes do
 * not change. */
#include "device/plan/programs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "device/cl/environment.h"
#include "device/plan/maker.h"

/* PENDING_MAX: special programs that may be pending; PENDING_SHARE: one client's part of them. */
enum {
	PENDING_MAX = 32,
	PENDING_SHARE = 8,
	QUIET_MS = 250, /* the device's idle time before a compilation that nobody waits for */
	LOOK_MS = 50,
	LINGER_MS = 3000,   /* until an idle compiler process is ended */
	STARVED_MS = 15000, /* without a result of the patient compiler */
	AGAIN_MS = 10000,   /* until a program that failed may be tried again */
};

/* The need of a program, each more than the last. */
enum need {
	NEED_NOT,
	NEED_CACHED, /* in the cache or in memory */
	NEED_MADE,
	NEED_URGENT, /* a tile waits for it */
};

struct entry {
	TAILQ_ENTRY(entry) link;
	struct recipe recipe;
	bool general;   /* made for a file, not for parameters */
	bool cached;    /* counted as such */
	enum need need; /* pending unless NEED_NOT */
	enum program_state state;
	unsigned makers;     /* makers at work on it */
	bool entering;       /* one of them is passing it to the driver */
	uint64_t settled_ns; /* CLOCK_MONOTONIC */
	uint32_t client;
	struct product product;
};

TAILQ_HEAD(entries, entry);

enum { URGENT, PATIENT, MAKERS };

struct making {
	struct programs *programs;
	struct maker maker;
	pthread_t thread;
	bool started;
};

struct programs {
	struct program_source source;
	int notify_fd, stop_fd;
	struct making making[MAKERS];
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool stop;
	struct entries general;  /* in the order of compilation; bare ones last */
	struct entries specials; /* most recently used first; pending ones stay in place */
	uint32_t count, max;     /* number of specials, and its maximum */
	uint32_t client;         /* the client of the current requests */
	uint32_t served;         /* the client whose program was built last */
	uint32_t jpeg;           /* programs of JPEG that are ready */
	struct message_programs built;
	uint64_t settled;    /* programs so far */
	uint64_t patient_ns; /* time of the last progress of programs that are not urgent */
	bool at_work;
	bool hurry; /* all requests are urgent */
};

static const char *const jpeg_files[] = {
    "jpeg/destuff.cl", "jpeg/sync.cl",       "jpeg/write.cl", "jpeg/dc.cl",
    "jpeg/idct.cl",    "jpeg/upsample.cl",   "jpeg/fdct.cl",  "jpeg/code.cl",
    "jpeg/merge.cl",   "jpeg/downsample.cl", "jpeg/stuff.cl",
};

enum { JPEG_FILES = sizeof jpeg_files / sizeof *jpeg_files };

const struct device *programs_device(const struct programs *programs)
{
	return programs->source.device;
}

bool programs_makes(const struct programs *programs, enum kernel kernel)
{
	return programs->max || variant_is_general(kernel);
}

uint64_t programs_count(struct programs *programs, struct message_programs *count)
{
	uint64_t settled;

	pthread_mutex_lock(&programs->lock);
	*count = programs->built;
	settled = programs->settled;
	if (!programs->source.device->separate_compiler || !programs->source.device->pocl)
		count->blocking = count->pending;
	pthread_mutex_unlock(&programs->lock);
	return settled;
}

/* The compiler options of a special kernel. No two special programs may have the same: PoCL would
 * keep both in the same files, and remove these with the first one that is released. A file may
 * have several kernels, so the kernel's name is one of the options. */
static void write_options(const struct step *step, char options[OPTIONS_SIZE])
{
	const struct shape *s = &step->shape;
	int used = snprintf(options, OPTIONS_SIZE, "-DKERNEL_%s", kernel_name(step->kernel));

	if (variant_rows[step->kernel].needs & VARIANT_RUN_TIME)
		return;
	snprintf(options + used, OPTIONS_SIZE - (size_t)used,
	         " -DBANDS=%u -DRADIUS_X=%u -DRADIUS_Y=%u -DKEEP=%uu -DALPHA=%u -DOUTPUT=%u "
	         "-DSMOOTH0=%.9ef -DSMOOTH1=%.9ef -DSMOOTH2=%.9ef -DBLOCK_X=%u -DBLOCK_Y=%u "
	         "-DGROUP_X=%u -DGROUP_Y=%u%s",
	         step->bands, step->radius_x, step->radius_y, step->keep, step->alpha, step->output,
	         step->smooth[0], step->smooth[1], step->smooth[2], s->x, s->y, s->group_x,
	         s->group_y,
	         kernel_row(step->kernel)->device >= KERNEL_FOR_NVIDIA ? " -DFOR_NVIDIA" : "");
}

/* ---- the makers ---- */

/* Waits for a change, up to `ms` milliseconds. */
static void wait_change(struct programs *p, unsigned ms)
{
	uint64_t until = now_ns() + ms * UINT64_C(1000000);
	struct timespec time = {.tv_sec = (time_t)(until / 1000000000),
	                        .tv_nsec = (long)(until % 1000000000)};

	pthread_cond_timedwait(&p->change, &p->lock, &time);
}

static bool is_pending(const struct entry *e)
{
	return e->need && e->state == PROGRAM_PENDING;
}

static bool is_patient(const struct making *m)
{
	return m == &m->programs->making[PATIENT];
}

/* Returns the next program to make, urgent or not, that has at most this many makers: a general
 * one, else the special one that has waited longest, preferably of another client than the last. */
static struct entry *next_of(const struct programs *p, bool urgent, unsigned makers)
{
	struct entry *next = NULL, *e;

	for (e = TAILQ_FIRST(&p->general); e; e = TAILQ_NEXT(e, link))
		if (is_pending(e) && (e->need == NEED_URGENT) == urgent && e->makers <= makers)
			return e;
	for (e = TAILQ_FIRST(&p->specials); e; e = TAILQ_NEXT(e, link))
		if (is_pending(e) && (e->need == NEED_URGENT) == urgent && e->makers <= makers &&
		    (!next || next->client == p->served || e->client != p->served))
			next = e;
	return next;
}

/* True if this maker should still make the entry. */
static bool is_its(const struct making *m, const struct entry *e)
{
	return !m->programs->stop && is_pending(e) && !(e->need == NEED_URGENT && is_patient(m));
}

static bool is_bare(const struct entry *e)
{
	return e->recipe.kernel == KERNELS;
}

/* Records the outcome of a pending entry. */
static void settle(struct programs *p, struct entry *e, enum program_state state, bool cached)
{
	e->state = state;
	e->settled_ns = now_ns();
	p->settled++;
	if (e->need < NEED_URGENT)
		p->patient_ns = e->settled_ns;
	p->built.pending--;
	*(state != PROGRAM_READY ? &p->built.failed
	  : cached               ? &p->built.cached
	                         : &p->built.compiled) += !(cached && e->cached);
	p->jpeg += state == PROGRAM_READY && is_bare(e);
	p->built.jpeg = p->jpeg == JPEG_FILES;
	step_release(&e->recipe.like);
	log_debug("%s (%s) is %s", e->recipe.file, e->recipe.options,
	          state != PROGRAM_READY ? "not available"
	          : cached               ? "loaded"
	                                 : "compiled");
}

/* Makes an entry's product, unless another maker has. Returns true if the entry is ready. The lock
 * is held on entry and return, not in between. */
static bool enter_driver(struct making *m, struct entry *e, const struct recipe *recipe,
                         enum way way, const struct binary *binary)
{
	struct programs *p = m->programs;
	struct product product;
	bool made;

	while (e->entering)
		wait_change(p, LOOK_MS);
	if (p->stop || e->state != PROGRAM_PENDING)
		return false;
	e->entering = true;
	pthread_mutex_unlock(&p->lock);
	made = maker_make(&m->maker, recipe, way, binary, &product);
	pthread_mutex_lock(&p->lock);
	e->entering = false;
	if (made) {
		e->product = product;
		settle(p, e, PROGRAM_READY, way == WAY_CACHE);
	}
	pthread_cond_broadcast(&p->change);
	return made;
}

/* Compiles an entry, in the compiler process if there is one (*refused: it gave no binary). If that
 * fails, tries again in this process, except for programs that end processes: with drivers whose
 * compilers do not crash it (not PoCL's), and for general kernels that a tile waits for, since the
 * compiler process may not have started. The lock is held on entry and return, not in between. */
static bool compile(struct making *m, struct entry *e, const struct recipe *recipe, bool *refused)
{
	struct programs *p = m->programs;
	bool here =
	    !m->maker.compiler || !p->source.device->pocl || (e->general && e->need == NEED_URGENT);
	struct binary binary = {0};
	bool made = false;

	if (m->maker.compiler) {
		pthread_mutex_unlock(&p->lock);
		binary = compile_process_compile(m->maker.compiler, recipe->file, recipe->options,
		                                 recipe->type);
		pthread_mutex_lock(&p->lock);
	}
	*refused = m->maker.compiler && !binary.data;
	if (binary.data)
		made = enter_driver(m, e, recipe, WAY_BINARY, &binary);
	if (!made && here && !binary.deadly && is_its(m, e))
		made = enter_driver(m, e, recipe, WAY_COMPILE, NULL);
	free(binary.data);
	return made;
}

/* True if an entry is cached and need not be in memory. The lock is held, but not in between. */
static bool stays_in_cache(struct programs *p, struct entry *e, const struct recipe *recipe)
{
	bool cached;

	if (e->need != NEED_CACHED)
		return false;
	pthread_mutex_unlock(&p->lock);
	cached = program_cached(&p->source, recipe->file, recipe->options, recipe->type);
	pthread_mutex_lock(&p->lock);
	if (!cached || e->need != NEED_CACHED || e->state != PROGRAM_PENDING)
		return false;
	e->need = NEED_NOT;
	e->cached = true;
	p->built.cached++;
	p->built.pending--;
	p->patient_ns = now_ns();
	return true;
}

static void make(struct making *m, struct entry *e)
{
	struct programs *p = m->programs;
	struct recipe recipe = e->recipe;
	bool made, refused;

	step_retain(&recipe.like);
	e->makers++;
	p->served = e->client;
	made = stays_in_cache(p, e, &recipe) || enter_driver(m, e, &recipe, WAY_CACHE, NULL);
	if (!made && is_its(m, e)) {
		p->built.compiling++;
		loop_post(p->notify_fd);
		made = compile(m, e, &recipe, &refused);
		p->built.compiling--;
		if (!made && environment_is_lost())
			_exit(1); /* the next worker's driver gets another directory */
		if (!made && is_its(m, e) && e->general && e->need < NEED_URGENT) {
			/* No tile waits for it any more; one that needs it asks again. */
			e->need = NEED_NOT;
			p->patient_ns = e->settled_ns = now_ns();
			p->built.failed++;
			p->built.pending--;
		} else if (!made && is_its(m, e)) {
			settle(p, e, e->general && refused ? PROGRAM_REFUSED : PROGRAM_FAILED,
			       false);
		}
	}
	e->makers--;
	step_release(&recipe.like);
	loop_post(p->notify_fd);
	pthread_cond_broadcast(&p->change);
}

static void *run(void *data)
{
	struct making *m = data;
	struct programs *p = m->programs;
	uint64_t last = 0; /* time of the last product; 0: the compiler process has been ended */

	if (is_patient(m) && setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10))
		log_debug("cannot lower the priority of compiling");
	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		struct entry *e = is_patient(m) ? next_of(p, false, 0) : next_of(p, true, 1);

		/* If the patient compiler makes no progress (a busy machine may give it no
		 * processor time at all), the urgent maker makes one of the patient maker's
		 * programs. */
		if (!e && m->maker.compiler && p->making[PATIENT].maker.compiler &&
		    p->built.pending && now_ns() - p->patient_ns > STARVED_MS * UINT64_C(1000000)) {
			e = next_of(p, false, 0);
			if (!e)
				e = next_of(p, false, 1);
		}
		if (e) {
			make(m, e);
			last = now_ns();
		} else if (p->built.pending && (!m->maker.compiler || !last)) {
			wait_change(p, 1000);
		} else if (!m->maker.compiler || !last) {
			pthread_cond_wait(&p->change, &p->lock);
		} else if (now_ns() - last < LINGER_MS * UINT64_C(1000000)) {
			wait_change(p, LOOK_MS);
		} else {
			compile_process_rest(m->maker.compiler);
			last = 0;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- the worker's thread ---- */

/* The program of a file. */
static struct entry *find_general(const struct programs *p, const char *file, enum pixel_type type)
{
	struct entry *e;

	for (e = TAILQ_FIRST(&p->general); e; e = TAILQ_NEXT(e, link))
		if (e->recipe.type == type && !strcmp(e->recipe.file, file))
			break;
	return e;
}

/* Lists the program of a file. Options: those on which the kernels' bits depend (exact.cl), and
 * those of their rows. */
static enum error add_general(struct programs *p, const char *file, enum kernel kernel,
                              enum pixel_type type)
{
	const struct device *device = p->source.device;
	struct entry *e = calloc(1, sizeof *e);
	char *options;
	size_t used;

	if (!e)
		return ERR_MEMORY;
	e->general = true;
	e->state = PROGRAM_PENDING;
	e->recipe = (struct recipe){.file = file, .kernel = kernel, .type = type};
	options = e->recipe.options;
	used = (size_t)snprintf(options, OPTIONS_SIZE, "%s",
	                        device->rounds_exactly ? "-cl-fp32-correctly-rounded-divide-sqrt"
	                                               : "");
	for (enum kernel k = 0; k < KERNELS; k++)
		if (variant_is_general(k) && !strcmp(variant_rows[k].file, file))
			used += (size_t)snprintf(
			    options + used, OPTIONS_SIZE - used, "%s-D%s_ROWS=%u", used ? " " : "",
			    variant_rows[k].symbol, variant_general_shape(device, k).y);
	TAILQ_INSERT_TAIL(&p->general, e, link);
	return ERR_OK;
}

enum error programs_new(struct programs **programs, const struct device *device,
                        const char *kernel_dir, const char *cache_dir, uint64_t cache_size,
                        uint32_t max, int notify_fd)
{
	static const enum pixel_type types[PIXEL_TYPES] = {PIXEL_U8, PIXEL_F32, PIXEL_U16};
	struct programs *p = calloc(1, sizeof *p);
	pthread_condattr_t clock;
	enum error e;

	*programs = p;
	if (!p)
		return ERR_MEMORY;
	TAILQ_INIT(&p->general);
	TAILQ_INIT(&p->specials);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p->change, &clock);
	pthread_condattr_destroy(&clock);
	p->notify_fd = notify_fd;
	p->max = max;
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	p->source = (struct program_source){device, kernel_dir, cache_open(cache_dir, cache_size)};
	e = p->stop_fd < 0 ? ERR_MEMORY : ERR_OK;
	/* Most needed first: bytes are most frequent, and alpha needs floats. JPEG's come last. */
	for (int i = 0; i < PIXEL_TYPES; i++)
		for (enum kernel k = 0; !e && k < KERNELS; k++)
			if (variant_is_general(k) &&
			    !find_general(p, variant_rows[k].file, types[i]))
				e = add_general(p, variant_rows[k].file, k, types[i]);
	for (int i = 0; !e && i < JPEG_FILES; i++)
		e = add_general(p, jpeg_files[i], KERNELS, PIXEL_U8);
	for (int i = 0; !e && i < MAKERS; i++) {
		/* NVIDIA's driver starts slowly: urgent programs are compiled in this process. */
		bool separate_compiler =
		    device->separate_compiler && (i == PATIENT || device->pocl);
		struct making *m = &p->making[i];

		m->programs = p;
		m->maker = (struct maker){.source = &p->source, .queue = device_queue(device, 0)};
		if (separate_compiler)
			m->maker.compiler =
			    compile_process_new(&p->source, i == PATIENT, p->stop_fd);
		if (!m->maker.queue)
			e = ERR_DEVICE;
		else if (separate_compiler && !m->maker.compiler)
			e = ERR_MEMORY;
	}
	for (int i = 0; !e && i < MAKERS; i++) { /* one looks at the other */
		struct making *m = &p->making[i];

		m->started = !pthread_create(&m->thread, NULL, run, m);
		e = m->started ? ERR_OK : ERR_MEMORY;
	}
	if (e)
		programs_free(programs);
	return e;
}

static void entry_free(struct entries *list, struct entry *e)
{
	TAILQ_REMOVE(list, e, link);
	step_release(&e->recipe.like);
	product_fini(&e->product);
	free(e);
}

void programs_free(struct programs **programs)
{
	struct programs *p = *programs;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	loop_post(p->stop_fd);
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
	for (int i = 0; i < MAKERS; i++) {
		if (p->making[i].started)
			pthread_join(p->making[i].thread, NULL);
		compile_process_free(&p->making[i].maker.compiler);
		object_release(OBJECT_QUEUE, p->making[i].maker.queue);
	}
	while (!TAILQ_EMPTY(&p->general))
		entry_free(&p->general, TAILQ_FIRST(&p->general));
	while (!TAILQ_EMPTY(&p->specials))
		entry_free(&p->specials, TAILQ_FIRST(&p->specials));
	cache_close(&p->source.cache);
	file_close(&p->stop_fd);
	pthread_cond_destroy(&p->change);
	pthread_mutex_destroy(&p->lock);
	free(p);
	*programs = NULL;
}

void programs_for(struct programs *p, uint32_t client)
{
	p->client = client;
}

static void forget(struct programs *p, struct entry *e)
{
	p->count--;
	if (e->state == PROGRAM_PENDING)
		p->built.pending--;
	entry_free(&p->specials, e);
}

/* Removes the least recently used special program that is neither pending nor in use. A program in
 * use must stay, since a second copy would share its files. Returns false if there is none. */
static bool forget_oldest(struct programs *p)
{
	struct entry *e;

	for (e = TAILQ_LAST(&p->specials, entries); e; e = TAILQ_PREV(e, entries, link)) {
		cl_kernel function = e->product.function[e->recipe.kernel];
		cl_uint holders = 0; /* this one, plans' steps and the tuner */

		if (function)
			clGetKernelInfo(function, CL_KERNEL_REFERENCE_COUNT, sizeof holders,
			                &holders, NULL);
		if (e->state != PROGRAM_PENDING && !e->makers && holders <= 1) {
			forget(p, e);
			return true;
		}
	}
	return false;
}

void programs_trim(struct programs *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->count > p->max && forget_oldest(p))
		;
	pthread_mutex_unlock(&p->lock);
}

/* Requests a compilation. Returns NULL if the current client may not request another one. If too
 * many are pending, an urgent one displaces the newest that is not urgent, which will be requested
 * again. */
static struct entry *add_special(struct programs *p, const struct step *step, const char *options,
                                 bool urgent)
{
	struct entry *e, *spare = NULL;
	unsigned own = 0, pending = 0;

	for (e = TAILQ_FIRST(&p->specials); e; e = TAILQ_NEXT(e, link)) {
		if (e->state != PROGRAM_PENDING)
			continue;
		pending++;
		own += e->client == p->client;
		if (urgent && !spare && e->need < NEED_URGENT && !e->makers)
			spare = e;
	}
	if ((p->client && own >= PENDING_SHARE) || (pending >= PENDING_MAX && !spare))
		return NULL;
	if (pending >= PENDING_MAX)
		forget(p, spare);
	e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	while (p->count >= p->max && forget_oldest(p))
		;
	e->recipe.file = variant_rows[step->kernel].file;
	e->recipe.kernel = step->kernel;
	e->recipe.type = step->program;
	e->recipe.like = *step;
	step_retain(&e->recipe.like);
	snprintf(e->recipe.options, OPTIONS_SIZE, "%s", options);
	e->state = PROGRAM_PENDING;
	TAILQ_INSERT_HEAD(&p->specials, e, link);
	p->count++;
	return e;
}

/* True if a program failed a short while ago. */
static bool is_recent(const struct entry *e)
{
	return e->settled_ns && now_ns() - e->settled_ns < AGAIN_MS * UINT64_C(1000000);
}

/* Requests that an entry be made, unless it is. */
static void want(struct programs *p, struct entry *e, enum need need)
{
	/* A refused program may be made after a while: no other does its work, and the machine's
	 * state may have changed. */
	if (e->state == PROGRAM_REFUSED && !is_recent(e)) {
		e->state = PROGRAM_PENDING;
		e->need = NEED_NOT;
	}
	if (e->state != PROGRAM_PENDING || e->need >= need || (need < NEED_URGENT && is_recent(e)))
		return;
	if (!e->need) {
		if (!p->built.pending)
			p->patient_ns = now_ns();
		e->client = p->client;
		p->built.pending++;
	}
	e->need = need;
	pthread_cond_broadcast(&p->change);
}

enum program_state programs_find(struct programs *p, struct step *step, bool urgent)
{
	enum program_state state = PROGRAM_PENDING;
	char options[OPTIONS_SIZE];
	struct entry *e;

	urgent |= p->hurry;
	pthread_mutex_lock(&p->lock);
	if (variant_is_general(step->kernel)) {
		e = find_general(p, variant_rows[step->kernel].file, step->program);
	} else {
		write_options(step, options);
		for (e = TAILQ_FIRST(&p->specials); e; e = TAILQ_NEXT(e, link))
			if (e->recipe.kernel == step->kernel && e->recipe.type == step->program &&
			    !strcmp(e->recipe.options, options))
				break;
		if (e && e->state != PROGRAM_PENDING) { /* pending ones keep their order */
			TAILQ_REMOVE(&p->specials, e, link);
			TAILQ_INSERT_HEAD(&p->specials, e, link);
		}
		if (!e && (urgent || programs_makes(p, step->kernel)))
			e = add_special(p, step, options, urgent);
	}
	if (e) {
		want(p, e, urgent ? NEED_URGENT : NEED_MADE);
		state = e->state;
	}
	if (state == PROGRAM_READY) {
		step->function = e->product.function[step->kernel];
		step->record = &e->product.record[step->kernel];
		step_retain_kernel(step);
	}
	pthread_mutex_unlock(&p->lock);
	return state;
}

void programs_hurry(struct programs *p)
{
	p->hurry = true;
}

void programs_prepare(struct programs *p, bool jpeg)
{
	const bool stay = p->source.device->pocl && !jpeg;
	struct entry *e;

	pthread_mutex_lock(&p->lock);
	for (e = TAILQ_FIRST(&p->general); e; e = TAILQ_NEXT(e, link))
		if (is_bare(e) == jpeg)
			want(p, e, p->hurry ? NEED_URGENT : stay ? NEED_CACHED : NEED_MADE);
	pthread_mutex_unlock(&p->lock);
}

cl_program programs_of_jpeg(struct programs *p, const char *file)
{
	const struct entry *e;
	cl_program program = NULL;

	pthread_mutex_lock(&p->lock);
	e = find_general(p, file, PIXEL_U8);
	if (e && e->state == PROGRAM_READY)
		program = e->product.program;
	pthread_mutex_unlock(&p->lock);
	return program;
}

void programs_at_work(struct programs *p, bool at_work)
{
	struct compile_process *patient = p->making[PATIENT].maker.compiler;
	uint64_t until = at_work ? UINT64_MAX : now_ns() + QUIET_MS * UINT64_C(1000000);

	if (at_work == p->at_work || !p->source.device->in_place)
		return;
	p->at_work = at_work;
	if (patient)
		compile_process_stand_back(patient, until);
}

void programs_wait(struct programs *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->built.pending)
		pthread_cond_wait(&p->change, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
