/* The parts of a node that the service does not consist of: cores, and the ways of its requests.
 * The cores are shared equally by the phases that run (processor sharing), so they are told by how
 * much service each running phase has attained. */
#include "node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "front/config/load.h"
#include "front/jobs/admission.h"
#include "front/workers/device_load.h"
#include "front/workers/scheduler.h"
#include "simulated.h"

enum { CODECS_MOST = 64, BANDS = 3 };

static const struct {
	uint32_t side;
	uint64_t bytes; /* size of its JPEG */
} photographs[PHOTOGRAPHS] = {
    [PHOTOGRAPH_256] = {256, 24000},
    [PHOTOGRAPH_1024] = {1024, 223000},
    [PHOTOGRAPH_4096] = {4096, 1700000},
};

/* The costs of a request in milliseconds; docs/scale.md says how they follow from measurements. */
struct cost {
	double front;  /* time of HTTP workers and front, in which one request waits for another */
	double codec;  /* time of a core, for a codec worker */
	double device; /* all tiles together */
	bool scan;     /* the device decodes and encodes, as one tile */
};

struct node_kind {
	unsigned cores, codecs;
	bool shares_cores; /* the front and the device each take one of the cores while they work */
	struct cost cost[PHOTOGRAPHS];
};

const char node_kind_names[] = "cpu|gpu";
static const struct node_kind kinds[] = {
    {.cores = 2,
     .codecs = 5,
     .shares_cores = true,
     .cost = {[PHOTOGRAPH_256] = {0.198, 0.627, 0.165, false},
              [PHOTOGRAPH_1024] = {0.40, 9.43, 1.07, false},
              [PHOTOGRAPH_4096] = {1.92, 139.7, 15.5, false}}},
    {.cores = 16,
     .codecs = 19,
     .shares_cores = false,
     .cost = {[PHOTOGRAPH_256] = {0.1315, 1.06, 0.0133, false},
              [PHOTOGRAPH_1024] = {0.2077, 2.23, 0.0578, true},
              [PHOTOGRAPH_4096] = {0.5938, 4.60, 0.3084, true}}},
};

/* libjpeg-turbo takes this part of its time to decode. */
static const double decode_share = 0.63;

typedef uint64_t __attribute__((may_alias)) word;

enum due { DUE_FRONT, DUE_DEVICE, DUE_CORES, DUES };

struct node {
	word *state; /* the modules', while another node's is in place */
	const struct node_kind *kind;
	double slower;
	struct request *arriving, **last; /* at the front, the first one in work */
	struct request *running[CODECS_MOST];
	unsigned runs, idle_codecs;
	double attained, updated; /* service of each running phase so far, and by then */
	double ends[DUES];        /* time of the next event of each sort; INFINITY: none */
	uint64_t answered;
};

/* The section: see libnode.a. */
extern word __start_node_state[], __stop_node_state[];

static double now = 1e9;
static struct node *inside; /* whose state is in place */
static struct request *left;
static struct config settings;
static struct chain chain;
static word *fresh_state;

/* In place of the front's clock. */
uint64_t __wrap_loop_now(void);
uint64_t __wrap_loop_now(void)
{
	return (uint64_t)now;
}

static size_t state_size(void)
{
	return (uintptr_t)__stop_node_state - (uintptr_t)__start_node_state;
}

/* Tells whether the section has the variables, one of which is known here. */
static bool state_is_apart(void)
{
	const uintptr_t known = (uintptr_t)&simulated_time;

	return known >= (uintptr_t)__start_node_state && known < (uintptr_t)__stop_node_state;
}

/* Not memcpy(): between variables are the guards of AddressSanitizer. */
__attribute__((no_sanitize_address)) static void copy_state(word *restrict to,
                                                            const word *restrict from)
{
	const size_t size = state_size(), words = size / sizeof *to;

	for (size_t i = 0; i < words; i++)
		to[i] = from[i];
	for (size_t i = words * sizeof *to; i < size; i++)
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

/* Puts the node's state in place, at this time. */
static void enter(struct node *n)
{
	if (inside != n) {
		if (inside)
			copy_state(inside->state, __start_node_state);
		copy_state(__start_node_state, n->state);
		inside = n;
	}
	simulated_time = now;
}

const struct node_kind *node_kind(unsigned i)
{
	return &kinds[i];
}

double node_kind_capacity(const struct node_kind *kind, const double mix[PHOTOGRAPHS])
{
	double front = 0, device = 0, cores = 0;

	for (unsigned i = 0; i < PHOTOGRAPHS; i++) {
		const struct cost *c = &kind->cost[i];

		front += mix[i] * c->front;
		device += mix[i] * c->device;
		cores += mix[i] * (c->codec + (kind->shares_cores ? c->front + c->device : 0));
	}
	return 1e3 / fmax(fmax(front, device), cores / kind->cores);
}

static double samples_of(enum photograph photograph)
{
	return (double)photographs[photograph].side * photographs[photograph].side * BANDS;
}

/* Returns the nanoseconds of a unit of cost on a device of this kind. */
static double ns_per_unit(const struct node_kind *kind)
{
	return kind->cost[PHOTOGRAPH_4096].device * 1e6 /
	       (samples_of(PHOTOGRAPH_4096) * cost_per_sample(&chain));
}

static double device_units(const struct node *n, const struct request *r)
{
	return n->kind->cost[r->photograph].device * 1e6 / ns_per_unit(n->kind);
}

/* Returns the cores that codec workers have. */
static double free_cores(const struct node *n)
{
	double taken = 0;

	for (enum due i = DUE_FRONT; n->kind->shares_cores && i <= DUE_DEVICE; i++)
		taken += n->ends[i] < INFINITY;
	return n->kind->cores - taken;
}

/* Returns the service that each running phase gets in a nanosecond. */
static double core_rate(const struct node *n)
{
	return n->runs ? fmin(1, free_cores(n) / n->runs) : 0;
}

static unsigned soonest_phase(const struct node *n)
{
	unsigned soonest = 0;

	for (unsigned i = 1; i < n->runs; i++)
		if (n->running[i]->ends < n->running[soonest]->ends)
			soonest = i;
	return soonest;
}

/* Something happens at the node at this time. */
static void begin(struct node *n, double time)
{
	now = time;
	n->attained += (now - n->updated) * core_rate(n);
	n->updated = now;
	enter(n);
	left = NULL;
}

static void end(struct node *n)
{
	double rate;

	n->ends[DUE_DEVICE] = simulated_next();
	rate = core_rate(n);
	n->ends[DUE_CORES] = INFINITY;
	if (rate > 0)
		n->ends[DUE_CORES] =
		    now + fmax(0, n->running[soonest_phase(n)]->ends - n->attained) / rate;
}

static void start_phase(struct node *n, struct request *r, double share)
{
	r->ends = n->attained + share * n->kind->cost[r->photograph].codec * 1e6 * n->slower;
	n->running[n->runs++] = r;
}

/* The image's header has been read: its cost is known, as in codecs.c. No photograph of
 * these is heavy, so the workers that runs.c keeps from heavy jobs are never kept. */
static void start_job(struct node *n, struct job *job)
{
	struct request *r = (struct request *)((char *)job - offsetof(struct request, job));
	double pixels = 2 * samples_of(r->photograph);

	n->idle_codecs--;
	if (job_reckon(job, work_cost_known(job->options.body_size, (uint64_t)pixels,
	                                    load_together(device_units(n, r)))) ||
	    job_is_heavy(job))
		abort();
	start_phase(n, r, decode_share);
}

static void jobs_wait(void)
{
	struct job *job;

	while (inside->idle_codecs && (job = job_next_waiting(~0u)))
		start_job(inside, job);
}

static void send_tiles(struct node *n, struct request *r)
{
	double max = (double)load_samples_max(&chain);
	unsigned count = (unsigned)ceil(samples_of(r->photograph) / max);

	if (n->kind->cost[r->photograph].scan)
		count = 1;
	r->tasks = must_have(calloc(count, sizeof *r->tasks));
	r->tasks_left = count;
	for (unsigned i = 0; i < count; i++) {
		r->tasks[i].job = &r->job;
		r->tasks[i].tile.job = r->job.options.job;
		r->tasks[i].tile.index = i;
		r->tasks[i].item.cost = r->tasks[i].units = device_units(n, r) / count;
	}
	for (unsigned i = 0; i < count; i++)
		simulated_for_codecs->task_ready(&r->tasks[i]);
}

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct request *r = (struct request *)((char *)task->job - offsetof(struct request, job));

	if (done->error)
		abort(); /* no device fails */
	if (--r->tasks_left)
		return;
	r->encodes = true;
	start_phase(inside, r, 1 - decode_share);
}

static void finish(struct node *n, struct request *r)
{
	simulated_for_codecs->job_ended(&r->job);
	job_finish(&r->job, ERR_OK, NULL);
	free(r->tasks);
	r->tasks = NULL;
	r->answered = true;
	n->answered++;
	n->idle_codecs++;
	left = r;
	jobs_wait();
}

static void phase_done(struct node *n)
{
	unsigned i = soonest_phase(n);
	struct request *r = n->running[i];

	n->attained = fmax(n->attained, r->ends);
	n->running[i] = n->running[--n->runs];
	if (r->encodes)
		finish(n, r);
	else
		send_tiles(n, r);
}

static void start_arriving(struct node *n)
{
	n->ends[DUE_FRONT] = INFINITY;
	if (n->arriving)
		n->ends[DUE_FRONT] =
		    now + n->kind->cost[n->arriving->photograph].front * 1e6 * n->slower;
}

static bool may_enter(const struct request *r)
{
	uint64_t size = photographs[r->photograph].bytes;
	struct problem problem;

	return !admission_check(r->client, work_class(false, work_cost(size)), size, &problem);
}

/* Its body has come: asks once more, and makes it a job. */
static void body_done(struct node *n)
{
	struct request *r = n->arriving;

	n->arriving = r->next;
	if (!n->arriving)
		n->last = &n->arriving;
	start_arriving(n);
	share_give_all(&r->body);
	if (!may_enter(r)) {
		left = r;
		return;
	}
	r->job = (struct job){.id = n->answered + 1, .references = 1};
	r->job.options.body_size = photographs[r->photograph].bytes;
	r->job.body.fd = r->job.answer.fd = -1;
	r->encodes = false;
	memcpy(r->job.terms.client, r->client, sizeof r->client);
	if (job_submit(&r->job, NULL, NULL))
		abort();
}

bool node_offer(struct node *n, struct request *r, double time)
{
	struct problem problem;
	bool taken;

	begin(n, time);
	r->answered = false;
	r->body = (struct share){0};
	r->next = NULL;
	taken = may_enter(r) &&
	        !share_take(&r->body, SHARE_BODIES, r->client, 1, settings.max_bodies, &problem);
	if (taken) {
		*n->last = r;
		n->last = &r->next;
		if (n->arriving == r)
			start_arriving(n);
	}
	end(n);
	return taken;
}

double node_next(const struct node *n)
{
	return fmin(fmin(n->ends[DUE_FRONT], n->ends[DUE_DEVICE]), n->ends[DUE_CORES]);
}

struct request *node_step(struct node *n)
{
	begin(n, node_next(n));
	if (n->ends[DUE_FRONT] <= now)
		body_done(n);
	else if (n->ends[DUE_DEVICE] <= now)
		simulated_step();
	else
		phase_done(n);
	end(n);
	return left;
}

double node_free_wait(struct node *n)
{
	enter(n);
	return admission_free();
}

bool node_is_empty(struct node *n, uint64_t *answered)
{
	enter(n);
	*answered = jobs_count().ended;
	return jobs_count().ended == n->answered && !n->arriving && !n->runs &&
	       !jobs_count().open && !jobs_count().waiting && !scheduler_waiting() &&
	       !share_total(SHARE_JOBS) && !share_total(SHARE_BODIES) &&
	       n->idle_codecs == n->kind->codecs;
}

/* No job is cancelled here. */
static const struct job_owner job_owner = {jobs_wait, NULL};

void nodes_init(uint64_t max_wait)
{
	static char *argv[] = {"node", NULL};
	struct problem problem;
	struct config standard;

	if (config_load(&standard, 1, argv) != CONFIG_RUN || !state_is_apart())
		die("the modules are not as they should be");
	settings.max_jobs = standard.max_jobs;
	settings.max_bodies = standard.max_bodies;
	settings.client_share = standard.client_share;
	config_fini(&standard);
	settings.max_wait = max_wait;
	config = &settings;
	chain_init(&chain);
	if (chain_parse(&chain, "gaussian=size=5", &problem) || chain_check(&chain, &problem) ||
	    loop_init() || scheduler_init())
		die("cannot start");
	admission_init();
	jobs_init(&job_owner);
	fresh_state = must_have(malloc(state_size()));
	copy_state(fresh_state, __start_node_state);
}

struct node *node_new(const struct node_kind *kind, double slower)
{
	struct node *n = must_have(calloc(1, sizeof *n));
	double ns = ns_per_unit(kind) * slower;

	n->state = must_have(malloc(state_size()));
	copy_state(n->state, fresh_state);
	n->kind = kind;
	n->slower = slower;
	n->last = &n->arriving;
	n->idle_codecs = kind->codecs;
	n->updated = now;
	for (enum due i = 0; i < DUES; i++)
		n->ends[i] = INFINITY;
	enter(n);
	if (!simulated_devices(&ns, 1))
		die("no memory");
	return n;
}
