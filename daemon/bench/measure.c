/* A case's pixels (bench/case.h) are uploaded once for all variants.
 *
 * A round runs each variant a few times in a row, as tiles of a job do, because a kernel that has
 * not run for a while must first be fetched itself; and it runs the copy. The medians are over all
 * rounds. General and published kernels have their rounds after the special ones: they run so long
 * that they heat the device, which would then lower its clock for the special ones. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/check.h"
#include "common/log.h"
#include "common/sort.h"
#include "device/plan/launch.h"
#include "device/plan/region.h"

enum { REFERENCE_SIDE = 256, POISON = 0xa5, BATCH = 5 };

/* A variant in one shape. */
struct runner {
	enum kernel kernel;
	struct plan *plan;
	cl_int4 reach;
	bool bare, failed;
	cl_int code;
	uint32_t batch;           /* runs enqueued in this round */
	cl_event event[BATCH][2]; /* of each run; sep_two_pass has two launches */
	double *ms;
	uint32_t runs;
	double spent; /* seconds */
};

struct bench {
	const struct bench_options *options;
	const struct bench_case *c;
	const struct device *device;
	struct programs *programs;
	cl_command_queue queue;
	struct case_pixels pixels;
	struct tile tile;
	cl_mem scratch;
	uint64_t scratch_size;
	struct runner runner[MEASURED_MAX];
	uint32_t count, turn;
	double *copy_ms;
	uint32_t copies;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void bench_fini(struct bench *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		plan_free(&b->runner[i].plan);
		free(b->runner[i].ms);
	}
	case_pixels_fini(&b->pixels);
	if (b->scratch)
		clReleaseMemObject(b->scratch);
	if (b->queue)
		clReleaseCommandQueue(b->queue);
	free(b->copy_ms);
}

/* ---- runners ---- */

/* The kernel and shape that a plan's chooser shall choose. */
struct wish {
	enum kernel kernel;
	uint32_t number; /* number of the shape among those that apply */
	bool applies;
	const struct device *device;
};

static void choose_wish(void *user, const struct work *work, enum kernel *kernel,
                        struct shape *shape)
{
	struct wish *wish = user;
	bool classic = kernel_row(wish->kernel)->origin == KERNEL_CLASSIC;

	struct shape shapes[SHAPES_MAX];

	wish->applies = variant_applies(wish->kernel, work, wish->device, classic) &&
	                wish->number < variant_shapes(wish->kernel, work, wish->device, shapes);
	if (!wish->applies)
		return;
	*kernel = wish->kernel;
	*shape = shapes[wish->number];
}

/* Adds a runner for a kernel in one of its shapes, if it applies. The first plan only requests the
 * program; the second is made when it is compiled. */
static void add_runner(struct bench *b, enum kernel kernel, uint32_t number)
{
	struct wish wish = {kernel, number, false, b->device};
	struct runner *r = &b->runner[b->count];

	if (b->count == MEASURED_MAX)
		return;
	for (int i = 0; i < 2; i++) {
		plan_free(&r->plan);
		if (plan_new(b->programs, &b->c->chain, &b->pixels.part, choose_wish, &wish,
		             &r->plan) ||
		    !wish.applies) {
			plan_free(&r->plan);
			return;
		}
		programs_wait(b->programs);
	}
	r->kernel = kernel;
	r->bare = kernel_row(kernel)->origin == KERNEL_CLASSIC;
	r->failed = r->plan->list.step[0].kernel != kernel; /* its program cannot be compiled */
	r->reach = (cl_int4){{0, 0, (cl_int)b->tile.width - 1, (cl_int)b->tile.height - 1}};
	r->ms = calloc(b->options->iterations + b->options->warmup, sizeof *r->ms);
	for (uint32_t i = 0; i < r->plan->list.count; i++) {
		struct view view;
		uint64_t needed = region_pack(&r->plan->list.step[i], &b->tile, &view);

		r->plan->list.step[i].reach = &r->reach;
		if (r->plan->list.step[i].dst >= PLACE_A && needed > b->scratch_size)
			b->scratch_size = needed;
	}
	b->count++;
}

static void add_kernel(struct bench *b, enum kernel kernel)
{
	if (!kernel_row(kernel)->operations ||
	    (b->options->variant && strcmp(b->options->variant, kernel_name(kernel))))
		return;
	for (uint32_t i = 0; i < SHAPES_MAX; i++)
		add_runner(b, kernel, i);
}

/* ---- runs ---- */

static double event_ms(cl_event event, cl_int *code)
{
	cl_ulong start = 0, end = 0;

	if (!*code)
		*code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start,
		                                &start, NULL);
	if (!*code)
		*code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end,
		                                NULL);
	if (event)
		clReleaseEvent(event);
	return (double)(end - start) * 1e-6;
}

/* Enqueues all launches of a variant, on the next pair of buffers. */
static cl_int enqueue_once(struct bench *b, struct runner *r, cl_event event[2])
{
	const struct case_pixels *p = &b->pixels;
	struct view views[PLACES] = {0};
	uint32_t pair = b->turn++ % PAIRS;
	cl_int code = CL_SUCCESS;

	views[PLACE_IN] = r->bare ? p->bare_view : p->padded_view;
	views[PLACE_IN].buffer = r->bare ? p->bare_buffer[pair] : p->padded_buffer[pair];
	views[PLACE_OUT] = p->target_view;
	views[PLACE_OUT].buffer = p->target_buffer[pair];
	for (uint32_t i = 0; !code && i < r->plan->list.count; i++) {
		const struct step *step = &r->plan->list.step[i];

		if (step->dst >= PLACE_A) {
			region_pack(step, &b->tile, &views[step->dst]);
			views[step->dst].buffer = b->scratch;
		}
		code = launch_step(step, b->device, &b->tile, NULL, b->queue, views, &event[i]);
	}
	return code;
}

/* The time, in milliseconds, of a finished run of enqueue_once(). */
static double collect(const struct runner *r, cl_event event[2], cl_int *code)
{
	double ms = 0;

	for (uint32_t i = 0; i < r->plan->list.count; i++) {
		ms += event_ms(event[i], code);
		event[i] = NULL;
	}
	return ms;
}

/* True if the runner has more runs; a slow one ends when its time is used up. */
static bool is_due(const struct bench *b, const struct runner *r, bool special)
{
	return !r->failed && (kernel_row(r->kernel)->origin == KERNEL_SPECIAL) == special &&
	       r->runs < b->options->iterations + b->options->warmup &&
	       (r->spent <= b->options->budget || r->runs < 4);
}

/* Records the times of a runner's finished batch. */
static void collect_batch(struct runner *r, cl_int finished)
{
	if (!r->code)
		r->code = finished;
	for (uint32_t i = 0; i < r->batch; i++) {
		r->ms[r->runs] = collect(r, r->event[i], &r->code);
		r->spent += r->ms[r->runs++] * 1e-3;
	}
	r->failed = r->code != CL_SUCCESS;
	if (r->failed)
		fprintf(stderr, "convolved-bench: %s: %s\n", kernel_name(r->kernel),
		        opencl_error_name(r->code));
}

/* Enqueues everything before it waits, as the service does. */
static void run_round(struct bench *b, bool special)
{
	const uint32_t max = b->options->iterations + b->options->warmup;
	cl_event copy = NULL;
	cl_int code, finished;
	uint32_t pair = b->turn++ % PAIRS;

	for (uint32_t i = 0; i < b->count; i++) {
		struct runner *r = &b->runner[i];

		r->code = CL_SUCCESS;
		for (r->batch = 0; !r->code && r->batch < BATCH && is_due(b, r, special) &&
		                   r->runs + r->batch < max;)
			r->code = enqueue_once(b, r, r->event[r->batch++]);
	}
	code = clEnqueueCopyBuffer(b->queue, b->pixels.bare_buffer[pair],
	                           b->pixels.target_buffer[pair], 0, 0, b->pixels.bare_size, 0,
	                           NULL, &copy);
	finished = clFinish(b->queue);
	for (uint32_t i = 0; i < b->count; i++)
		if (b->runner[i].batch)
			collect_batch(&b->runner[i], finished);
	if (!code)
		code = finished;
	b->copy_ms[b->copies++] = event_ms(copy, &code);
}

/* The median of the runs after the warm-up, or after the first run if there are only a few. */
static double median(double *ms, uint32_t runs, uint32_t warmup, uint32_t *timed)
{
	uint32_t skip = runs > 2 * warmup ? warmup : runs > 1;

	*timed = runs - skip;
	if (!*timed)
		return NAN;
	sort_doubles(ms + skip, *timed);
	return ms[skip + *timed / 2];
}

/* ---- verification ---- */

/* Runs the variant once more into a poisoned target and compares the result. */
static enum error verify(struct bench *b, struct runner *r, struct measured *m)
{
	const uint64_t size = b->pixels.target_size;
	const uint8_t poison = POISON;
	struct difference difference = {0};
	char *target = malloc(size);
	enum error e = target ? ERR_OK : ERR_MEMORY;
	cl_int code = CL_SUCCESS;

	for (int i = 0; !e && !code && i < PAIRS; i++)
		code = clEnqueueFillBuffer(b->queue, b->pixels.target_buffer[i], &poison, 1, 0,
		                           size, 0, NULL, NULL);
	if (!code)
		code = enqueue_once(b, r, r->event[0]);
	if (!code)
		code = clFinish(b->queue);
	collect(r, r->event[0], &code);
	if (!e && !code)
		code = clEnqueueReadBuffer(b->queue, b->pixels.target_buffer[(b->turn - 1) % PAIRS],
		                           CL_TRUE, 0, size, target, 0, NULL, NULL);
	if (!e && !code)
		e = check_target(b->c, &b->pixels, b->options->verify, target, &difference);
	free(target);
	m->verified = difference.samples;
	m->mismatches = difference.mismatches;
	m->max_difference = difference.largest;
	return code ? ERR_DEVICE : e;
}

/* ---- results ---- */

static double bytes_moved(const struct bench *b)
{
	return 2.0 * (double)image_size(&b->pixels.part);
}

static void add_measured(const struct bench *b, struct bench_result *result,
                         const struct measured *m)
{
	struct measured *slot = NULL;

	/* One row per variant: its best shape. */
	for (uint32_t i = 0; i < result->count; i++)
		if (!strcmp(result->measured[i].variant, m->variant))
			slot = &result->measured[i];
	if (slot && !m->mismatches && (slot->mismatches || slot->median_ms <= m->median_ms))
		return;
	if (!slot && result->count == MEASURED_MAX)
		return;
	if (!slot)
		slot = &result->measured[result->count++];
	*slot = *m;
	slot->gb_per_s = bytes_moved(b) / m->median_ms * 1e-6;
	slot->share_of_copy = slot->gb_per_s / result->copy_gb_per_s;
}

static enum error finish_runner(struct bench *b, struct runner *r, struct bench_result *result)
{
	struct measured m = {.variant = kernel_name(r->kernel),
	                     .shape = r->plan->list.step[0].shape};
	enum error e;

	if (r->failed)
		return ERR_OK;
	m.median_ms = median(r->ms, r->runs, b->options->warmup, &m.runs);
	e = verify(b, r, &m);
	if (!e)
		add_measured(b, result, &m);
	return e;
}

/* Times the reference on a part of the image and scales the time to the whole. */
static enum error measure_reference(const struct bench *b, struct bench_result *result)
{
	const struct case_pixels *p = &b->pixels;
	struct window w = {0, 0, p->part.width, p->part.height};
	struct measured m = {.variant = "reference", .runs = 1};
	struct reference reference;
	double begun = now();
	enum error e;

	if (b->options->variant && strcmp(b->options->variant, "reference"))
		return ERR_OK;
	w.width = w.width < REFERENCE_SIDE ? w.width : REFERENCE_SIDE;
	w.height = w.height < REFERENCE_SIDE ? w.height : REFERENCE_SIDE;
	e = reference_window(&b->c->chain, &p->part, &w, p->padded + p->padded_view.origin,
	                     p->padded_view.pitch, &reference);
	if (e)
		return e;
	m.median_ms =
	    (now() - begun) * 1e3 * p->part.width * p->part.height / ((double)w.width * w.height);
	m.verified = (uint64_t)w.width * w.height * p->part.bands;
	reference_fini(&reference);
	add_measured(b, result, &m);
	return ERR_OK;
}

static enum error run_all(struct bench *b, struct bench_result *result)
{
	const uint32_t rounds = b->options->iterations + b->options->warmup;
	uint32_t copies;
	cl_int code = CL_SUCCESS;
	enum error e = ERR_OK;

	b->copy_ms = calloc(2 * rounds, sizeof *b->copy_ms);
	if (!b->copy_ms)
		return ERR_MEMORY;
	if (b->scratch_size)
		b->scratch = clCreateBuffer(b->device->context, CL_MEM_READ_WRITE, b->scratch_size,
		                            NULL, &code);
	if (code)
		return ERR_DEVICE;
	for (uint32_t i = 0; i < 2 * rounds; i++)
		run_round(b, i < rounds);
	result->copy_ms = median(b->copy_ms, rounds, b->options->warmup, &copies);
	result->copy_gb_per_s = 2.0 * (double)b->pixels.bare_size / result->copy_ms * 1e-6;
	for (uint32_t i = 0; !e && i < b->count; i++)
		e = finish_runner(b, &b->runner[i], result);
	return e ? e : measure_reference(b, result);
}

static enum error bench_init(struct bench *b)
{
	cl_int code;
	enum error e;

	b->queue = clCreateCommandQueue(b->device->context, b->device->id,
	                                CL_QUEUE_PROFILING_ENABLE, &code);
	if (code)
		return ERR_DEVICE;
	e = case_pixels_init(&b->pixels, b->c, b->options, b->device, b->queue);
	b->tile = (struct tile){.width = b->pixels.part.width, .height = b->pixels.part.height};
	return e;
}

enum error measure_case(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result)
{
	struct bench *b = calloc(1, sizeof *b);
	enum error e;

	*result = (struct bench_result){0};
	if (!b)
		return ERR_MEMORY;
	b->options = options;
	b->c = c;
	b->programs = programs;
	b->device = programs_device(programs);
	e = bench_init(b);
	for (enum kernel k = 0; !e && k < KERNELS; k++)
		add_kernel(b, k);
	if (!e)
		e = run_all(b, result);
	bench_fini(b);
	free(b);
	return e;
}
