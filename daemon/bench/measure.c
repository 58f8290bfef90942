/* A round runs each variant a few times in a row, like the tiles of a job, because a kernel that
 * has not run for a while must first be fetched itself; then the round runs the copy. Medians are
 * over all rounds. General and published kernels have their rounds after the special ones, because
 * they run so long that they heat the device and lower its clock. */
#include "bench/bench.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "device/plan/launch.h"

enum { REFERENCE_SIDE = 256, BATCH = 5 };

static const enum kernel TABLE = KERNELS; /* a runner of the table's choices */

/* A variant in one shape. */
struct runner {
	enum kernel kernel; /* or TABLE */
	struct plan *plan;
	enum form form;
	cl_int4 reach;
	bool failed;
	cl_int code;
	uint32_t batch; /* runs enqueued in this round */
	cl_event event[BATCH][STEPS_MAX];
	double pool_ms[BATCH]; /* time in the pool */
	double *ms;
	uint32_t runs;
	double spent; /* seconds */
};

struct bench {
	const struct session *session;
	struct case_pixels pixels;
	struct tile tile;
	struct growing_buffer scratch[PLACES];
	struct runner runner[MEASURED_MAX];
	uint32_t count, turn;
	uint32_t runs_max; /* per runner */
	double *copy_ms;
	uint32_t copies;
};

static const char *runner_name(const struct runner *r)
{
	return r->kernel == TABLE ? "table" : kernel_name(r->kernel);
}

/* ---- runners ---- */

/* The kernel and shape that a plan's chooser is to choose for all filters. */
struct wish {
	enum kernel kernel;
	uint32_t number; /* number of the shape among those that apply */
	uint32_t asked, applied;
	const struct device *device;
};

static void choose_wish(void *user, const struct work *work, enum kernel *kernel,
                        struct shape *shape)
{
	const bool has_parts = *kernel == KERNELS;
	struct wish *wish = user;
	struct shape shapes[SHAPES_MAX];

	wish->asked += !has_parts;
	if (wish->kernel == TABLE) {
		variant_choose_by_table(wish->device, work, kernel, shape);
		return;
	}
	if (!variant_applies(wish->kernel, work, wish->device,
	                     kernel_row(wish->kernel)->origin == KERNEL_CLASSIC) ||
	    wish->number >= variant_shapes(wish->kernel, work, wish->device, shapes))
		return;
	wish->asked += has_parts;
	wish->applied++;
	*kernel = wish->kernel;
	*shape = shapes[wish->number];
}

static uint32_t count_steps(const struct plan *plan, enum kernel kernel)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->list.count; i++)
		count += plan->list.step[i].kernel == kernel;
	return count;
}

/* Makes the plan: a first one that only requests the programs, and a second one when they are
 * compiled. Returns NULL if the kernel does not apply to all filters. The table's choices matter
 * only where there are several launches. */
static struct plan *make_plan(struct bench *b, struct wish *wish)
{
	struct plan *plan = NULL;

	for (int i = 0; i < 2; i++) {
		plan_free(&plan);
		wish->asked = wish->applied = 0;
		if (plan_new(b->session->programs, &b->pixels.c->chain, &b->pixels.part,
		             choose_wish, wish, &plan))
			return NULL;
		if (wish->kernel == TABLE ? plan->list.count < 2
		                          : !wish->applied || (i && wish->applied < wish->asked)) {
			plan_free(&plan);
			return NULL;
		}
		programs_wait(b->session->programs);
	}
	return plan;
}

/* Finds a runner's form. A published kernel that is the whole plan gets the form of its study. */
static enum form find_form(const struct bench *b, const struct runner *r)
{
	const struct padding *p = &b->pixels.padding;
	uint32_t needs;

	if (r->kernel == TABLE || kernel_row(r->kernel)->origin != KERNEL_CLASSIC ||
	    count_steps(r->plan, r->kernel) < r->plan->list.count)
		return FORM_TILE;
	needs = variant_rows[r->kernel].needs;
	if (needs & VARIANT_IMAGE)
		return needs & VARIANT_TARGET_IMAGE ? FORM_IMAGES : FORM_IMAGE;
	if (b->session->options->padding_given)
		return p->x || p->y ? FORM_PADDED : FORM_BARE;
	return kernel_row(r->kernel)->operations & 1u << OPERATION_GRADIENT ? FORM_PADDED
	                                                                    : FORM_BARE;
}

/* Adds a runner for a kernel in one of its shapes, if it applies. */
static void add_runner(struct bench *b, enum kernel kernel, uint32_t number)
{
	struct wish wish = {.kernel = kernel, .number = number, .device = &b->session->device};
	struct runner *r = &b->runner[b->count];
	struct padding pad = {0, 0};

	if (b->count == MEASURED_MAX)
		return;
	r->plan = make_plan(b, &wish);
	if (!r->plan)
		return;
	b->count++;
	r->kernel = kernel;
	r->failed = kernel != TABLE && count_steps(r->plan, kernel) < wish.applied;
	if (r->failed)
		warnx("%s cannot be compiled", runner_name(r));
	r->form = find_form(b, r);
	/* Tells the steps how much they may read. */
	if (r->form == FORM_PADDED)
		pad = b->pixels.padding;
	r->reach = (cl_int4){{-(cl_int)pad.x, -(cl_int)pad.y, (cl_int)(b->tile.width + pad.x) - 1,
	                      (cl_int)(b->tile.height + pad.y) - 1}};
	for (uint32_t i = 0; r->form != FORM_TILE && i < r->plan->list.count; i++)
		r->plan->list.step[i].reach = &r->reach;
	r->ms = bench_alloc(b->runs_max * sizeof *r->ms);
}

/* ---- runs ---- */

/* Enqueues all launches of a variant on the next pair of buffers; a pool runs them at once. */
static cl_int enqueue_once(struct bench *b, struct runner *r, uint32_t run)
{
	const struct case_pixels *p = &b->pixels;
	struct view views[PLACES] = {0};
	uint32_t pair = b->turn++ % PAIRS;
	cl_int code = CL_SUCCESS;

	r->pool_ms[run] = 0;
	views[PLACE_IN] = p->source_view[r->form][pair];
	views[PLACE_OUT] = *case_target(p, r->form, pair);
	for (uint32_t i = 0; !code && i < r->plan->list.count; i++) {
		const struct step *step = &r->plan->list.step[i];
		struct growing_buffer *scratch = &b->scratch[step->dst];
		uint64_t ns;
		double begun;

		if (step->dst >= PLACE_A && step->kernel != KERNEL_EXTEND) {
			bench_check(
			    growing_buffer_reserve(scratch, &b->session->device,
			                           region_pack(step, &b->tile, &views[step->dst])),
			    "scratch buffers");
			views[step->dst].buffer = scratch->memory;
		}
		if (!b->session->pool) {
			code = launch_step(step, &b->session->device, &b->tile, NULL,
			                   b->session->queue, views, &r->event[run][i]);
			continue;
		}
		begun = times_now();
		code = pool_run(b->session->pool, step, &b->tile, views, &ns);
		r->pool_ms[run] += times_now() - begun;
	}
	return code;
}

/* Returns the time, in milliseconds, of a finished run of enqueue_once(). */
static double collect(const struct bench *b, struct runner *r, uint32_t run, cl_int *code)
{
	double ms = r->pool_ms[run];

	for (uint32_t i = 0; !b->session->pool && i < r->plan->list.count; i++) {
		ms += times_of_event(r->event[run][i], code);
		r->event[run][i] = NULL;
	}
	return ms;
}

/* Runs a round: enqueues everything before it waits, as the service does. special: the round of
 * special kernels and of runners that are as fast, or that of all others. */
static void run_round(struct bench *b, bool special)
{
	const struct case_pixels *p = &b->pixels;
	cl_event copy = NULL;
	cl_int code, finished;
	uint32_t pair = b->turn++ % PAIRS;

	for (uint32_t i = 0; i < b->count; i++) {
		struct runner *r = &b->runner[i];
		const bool is_special =
		    r->kernel == TABLE || kernel_row(r->kernel)->origin == KERNEL_SPECIAL;
		/* A slow one ends when its time is used up. */
		const bool is_due = !r->failed && is_special == special &&
		                    (r->spent <= b->session->options->budget || r->runs < 4);
		const uint32_t most = is_due ? MIN(b->runs_max - r->runs, BATCH) : 0;

		r->code = CL_SUCCESS;
		for (r->batch = 0; !r->code && r->batch < most;)
			r->code = enqueue_once(b, r, r->batch++);
	}
	code = clEnqueueCopyBuffer(b->session->queue, p->source_view[FORM_TILE][pair].buffer,
	                           case_target(p, FORM_TILE, pair)->buffer, 0, 0,
	                           image_size(&b->pixels.part), 0, NULL, &copy);
	finished = clFinish(b->session->queue);
	for (uint32_t i = 0; i < b->count; i++) {
		struct runner *r = &b->runner[i];

		if (!r->code && r->batch)
			r->code = finished;
		for (uint32_t k = 0; k < r->batch; k++) {
			r->ms[r->runs] = collect(b, r, k, &r->code);
			r->spent += r->ms[r->runs++] * 1e-3;
		}
		r->failed |= r->code != CL_SUCCESS;
		if (r->code)
			warnx("%s: %s", runner_name(r), opencl_error_name(r->code));
	}
	if (!code)
		code = finished;
	b->copy_ms[b->copies++] = times_of_event(copy, &code);
}

/* ---- verification ---- */

/* Runs the variant once more, into a poisoned target, and compares the result. Keeps it for
 * --output if it is the fastest right one so far. Buffers and images have the same layout. */
static void verify(struct bench *b, struct runner *r, struct measured *m,
                   struct bench_result *result)
{
	const struct case_pixels *p = &b->pixels;
	const struct view *view = case_target(p, r->form, b->turn % PAIRS);
	const size_t row = image_row_size(&p->result);
	const size_t zero[3] = {0, 0, 0}, sides[3] = {p->area.width, p->area.height, 1};
	cl_command_queue queue = b->session->queue;
	char *target = bench_alloc(p->target_size);
	cl_int code;

	memset(target, POISON, p->target_size);
	code = view->image ? clEnqueueWriteImage(queue, view->image, CL_TRUE, zero, sides, 0, 0,
	                                         target, 0, NULL, NULL)
	                   : clEnqueueWriteBuffer(queue, view->buffer, CL_TRUE, 0, p->target_size,
	                                          target, 0, NULL, NULL);
	bench_check(code, m->variant);
	bench_check(enqueue_once(b, r, 0), m->variant);
	code = clFinish(queue);
	collect(b, r, 0, &code);
	bench_check(code, m->variant);
	code = view->image ? clEnqueueReadImage(queue, view->image, CL_TRUE, zero, sides, 0, 0,
	                                        target, 0, NULL, NULL)
	                   : clEnqueueReadBuffer(queue, view->buffer, CL_TRUE, 0, p->target_size,
	                                         target, 0, NULL, NULL);
	bench_check(code, m->variant);
	check_target(p, b->session->options->verify, target, m);
	if (b->session->options->output && measured_is_right(m) &&
	    (!result->best || result->best_ms > m->times.median)) {
		const char *from = target + case_target(p, FORM_TILE, 0)->origin;

		if (!result->pixels)
			result->pixels = bench_alloc(image_size(&p->result));
		for (size_t y = 0; y < p->result.height; y++)
			memcpy((char *)result->pixels + y * row,
			       from + y * case_target(p, FORM_TILE, 0)->pitch, row);
		result->best = m->variant;
		result->best_ms = m->times.median;
	}
	free(target);
}

/* ---- results ---- */

static void finish_runner(struct bench *b, struct runner *r, struct bench_result *result)
{
	static const char *const origins[] = {
	    [KERNEL_GENERAL] = "general",
	    [KERNEL_SPECIAL] = "special",
	    [KERNEL_CLASSIC] = "classic",
	};
	static const char *const forms[FORMS] = {
	    [FORM_TILE] = "tile",
	    [FORM_BARE] = "bare buffer",
	    [FORM_PADDED] = "padded buffer",
	    [FORM_IMAGE] = "image to buffer",
	    [FORM_IMAGES] = "image to image",
	};
	struct measured m = {.variant = runner_name(r),
	                     .form = forms[r->form],
	                     .origin = r->kernel == TABLE ? "service"
	                                                  : origins[kernel_row(r->kernel)->origin],
	                     .launches = r->plan->list.count};

	if (r->failed)
		return;
	if (m.launches == 1 || count_steps(r->plan, r->kernel) == m.launches)
		m.shape = r->plan->list.step[0].shape;
	m.times = times_of_runs(r->ms, r->runs, b->session->options->warmup, &m.runs);
	verify(b, r, &m, result);
	result_add(result, &m);
}

/* Times the reference on a part of the image and scales the time to the whole. */
static void measure_reference(const struct bench *b, struct bench_result *result)
{
	const struct case_pixels *p = &b->pixels;
	const struct view *tile = &p->source_view[FORM_TILE][0];
	const struct window w = {.width = MIN(p->result.width, REFERENCE_SIDE),
	                         .height = MIN(p->result.height, REFERENCE_SIDE)};
	struct measured m = {.variant = "reference",
	                     .origin = "processor",
	                     .form = "memory",
	                     .threads = 1,
	                     .runs = 1};
	struct reference reference;
	double begun = times_now();

	if (!bench_options_want(b->session->options, m.variant))
		return;
	bench_must(reference_window(&b->pixels.c->chain, &p->part, &w, case_first(p, &w),
	                            tile->pitch, &reference));
	m.times.median = m.times.mean = (times_now() - begun) * p->result.width * p->result.height /
	                                ((double)w.width * w.height);
	m.verified = (uint64_t)w.width * w.height * p->part.bands;
	reference_fini(&reference);
	result_add(result, &m);
}

static void measure_processor(const struct bench *b, struct bench_result *result)
{
	static const struct {
		uint32_t threads;
		const char *name;
	} rows[] = {
	    {1, "processor, 1 thread"}, {4, "processor, 4 threads"}, {8, "processor, 8 threads"}};

	if (!bench_options_want(b->session->options, "processor"))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct measured m = {.variant = rows[i].name,
		                     .origin = "processor",
		                     .form = "memory",
		                     .threads = rows[i].threads};

		if (processor_measure(&b->pixels, &m))
			result_add(result, &m);
	}
}

void measure_case(const struct session *session, const struct bench_case *c,
                  struct bench_result *result)
{
	const struct bench_options *options = session->options;
	struct bench *b = bench_alloc(sizeof *b);

	b->session = session;
	b->runs_max = options->iterations + options->warmup;
	b->copy_ms = bench_alloc(2 * b->runs_max * sizeof *b->copy_ms);
	case_pixels_init(&b->pixels, session, c);
	b->tile = (struct tile){.width = b->pixels.result.width, .height = b->pixels.result.height};
	for (enum kernel k = 0; k < KERNELS; k++)
		for (uint32_t i = 0; i < SHAPES_MAX; i++)
			if (kernel_row(k)->operations &&
			    bench_options_want(options, kernel_name(k)))
				add_runner(b, k, i);
	if (bench_options_want(options, "table"))
		add_runner(b, TABLE, 0);
	/* Leaves out runners whose images would be larger than the device allows. */
	for (uint32_t i = 0; i < b->count; i++) {
		const enum form form = b->runner[i].form;

		if (!b->runner[i].failed && !case_pixels_make(&b->pixels, form))
			for (uint32_t k = 0; k < b->count; k++)
				b->runner[k].failed |= b->runner[k].form == form;
	}
	for (uint32_t i = 0; i < 2 * b->runs_max; i++)
		run_round(b, i < b->runs_max);
	result_begin(result, &b->pixels.part, &b->pixels.result, b->copy_ms, b->runs_max,
	             options->warmup);
	for (uint32_t i = 0; i < b->count; i++) {
		finish_runner(b, &b->runner[i], result);
		plan_free(&b->runner[i].plan);
		free(b->runner[i].ms);
	}
	measure_processor(b, result);
	measure_reference(b, result);
	case_pixels_fini(&b->pixels);
	for (int i = 0; i < PLACES; i++)
		growing_buffer_free(&b->scratch[i]);
	free(b->copy_ms);
	free(b);
}
