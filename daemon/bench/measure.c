/* One case: buffers are made once for all variants. The source exists twice: with the halo that the
 * service's tiles have, made by the border rule, for our own kernels; and bare, for the published
 * ones, which clamp what they read into it (`reach`). Of each there are three copies, used in turn
 * with three targets, so that no run finds its pixels in a cache.
 *
 * A round runs every variant a few times in a row, as tiles of a job do (a large kernel that has
 * not run for a while must first be fetched itself), and the copy; the medians are over all rounds.
 * The general and the published kernels have their rounds after the special ones: they take so much
 * longer that the device would be too hot for its full clock when it comes to these. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "border.h"
#include "common/difference.h"
#include "common/log.h"

enum { PAIRS = 3, WINDOWS = 24, WINDOW_SIDE = 96, REFERENCE_SIDE = 256, POISON = 0xa5, BATCH = 5 };

/* A variant in one shape. */
struct runner {
	enum kernel kernel;
	struct plan *plan;
	cl_int4 reach;
	bool bare, failed;
	cl_int code;
	uint32_t batch;           /* runs that are enqueued */
	cl_event event[BATCH][2]; /* theirs: sep_two_pass has two launches */
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
	struct rectangle source, target; /* in the image */
	struct image part;               /* the image that is the source ROI */
	struct tile tile;
	uint32_t halo_x, halo_y;
	char *padded; /* the source with its halo */
	struct view padded_view, bare_view, target_view;
	uint64_t padded_size, bare_size;
	cl_mem padded_buffer[PAIRS], bare_buffer[PAIRS], target_buffer[PAIRS], scratch;
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

/* ---- buffers ---- */

/* Copies the source with its halo, outside the ROI by the border rule. */
static void fill_padded(struct bench *b)
{
	const size_t pixel = image_pixel_size(&b->c->image), row = image_row_size(&b->c->image);
	const int mode = BORDER_REPLICATE;

	for (int y = -(int)b->halo_y; y < (int)(b->source.height + b->halo_y); y++) {
		const char *from =
		    (const char *)b->c->pixels +
		    (b->source.y + (size_t)border_map(y, (int)b->source.height, mode)) * row;
		char *to = b->padded + b->padded_view.origin + (ptrdiff_t)y * b->padded_view.pitch;

		for (int x = -(int)b->halo_x; x < (int)(b->source.width + b->halo_x); x++)
			memcpy(to + (ptrdiff_t)x * (ptrdiff_t)pixel,
			       from + (b->source.x +
			               (size_t)border_map(x, (int)b->source.width, mode)) *
			                  pixel,
			       pixel);
	}
}

static enum error make_padded(struct bench *b)
{
	const uint64_t pixel = image_pixel_size(&b->c->image), align = ROW_ALIGNMENT - 1;
	const uint64_t lead = (b->halo_x * pixel + align) & ~align;

	b->padded_view.pitch = (uint32_t)row_pitch(lead + (b->source.width + b->halo_x) * pixel);
	b->padded_view.origin = lead + (uint64_t)b->halo_y * b->padded_view.pitch;
	b->padded_size = b->padded_view.pitch * (uint64_t)(b->source.height + 2 * b->halo_y);
	b->padded = calloc(1, b->padded_size);
	if (!b->padded)
		return ERR_MEMORY;
	fill_padded(b);
	return ERR_OK;
}

static cl_mem new_buffer(const struct bench *b, uint64_t size, const void *content, cl_int *code)
{
	cl_mem buffer;

	if (*code)
		return NULL;
	buffer = clCreateBuffer(b->device->context, CL_MEM_READ_WRITE, size, NULL, code);
	if (!*code && content)
		*code = clEnqueueWriteBuffer(b->queue, buffer, CL_TRUE, 0, size, content, 0, NULL,
		                             NULL);
	return buffer;
}

static enum error make_buffers(struct bench *b)
{
	const uint64_t pixel = image_pixel_size(&b->c->image);
	cl_int code = CL_SUCCESS;

	b->bare_view.pitch = (uint32_t)image_row_size(&b->c->image);
	b->bare_view.origin = (uint64_t)b->source.y * b->bare_view.pitch + b->source.x * pixel;
	b->target_view.pitch = (uint32_t)row_pitch(image_row_size(&b->c->image));
	b->target_view.origin = (uint64_t)b->target.y * b->target_view.pitch + b->target.x * pixel;
	b->bare_size = image_size(&b->c->image);
	for (int i = 0; i < PAIRS; i++) {
		b->padded_buffer[i] = new_buffer(b, b->padded_size, b->padded, &code);
		b->bare_buffer[i] = new_buffer(b, b->bare_size, b->c->pixels, &code);
		b->target_buffer[i] =
		    new_buffer(b, (uint64_t)b->target_view.pitch * b->c->image.height, NULL, &code);
	}
	if (!code)
		return ERR_OK;
	fprintf(stderr, "convolved-bench: no room on the device for %ux%ux%u %s: %s\n",
	        b->c->image.width, b->c->image.height, b->c->image.bands,
	        pixel_type_name(b->c->image.type), opencl_error_name(code));
	return ERR_DEVICE;
}

static void release(cl_mem *buffer)
{
	if (*buffer)
		clReleaseMemObject(*buffer);
	*buffer = NULL;
}

static void bench_fini(struct bench *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		plan_free(&b->runner[i].plan);
		free(b->runner[i].ms);
	}
	for (int i = 0; i < PAIRS; i++) {
		release(&b->padded_buffer[i]);
		release(&b->bare_buffer[i]);
		release(&b->target_buffer[i]);
	}
	release(&b->scratch);
	if (b->queue)
		clReleaseCommandQueue(b->queue);
	free(b->copy_ms);
	free(b->padded);
}

/* ---- runners ---- */

/* What a plan's choice is to be. */
struct wish {
	enum kernel kernel;
	uint32_t number; /* of the shape among those that fit */
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

/* Adds a runner for a kernel in one of its shapes, if it applies. The first plan asks for the
 * program; only the second, when it has been built, has it. */
static void add_runner(struct bench *b, enum kernel kernel, uint32_t number)
{
	struct wish wish = {kernel, number, false, b->device};
	struct runner *r = &b->runner[b->count];

	if (b->count == MEASURED_MAX)
		return;
	for (int i = 0; i < 2; i++) {
		plan_free(&r->plan);
		if (plan_new(b->programs, &b->c->chain, &b->part, choose_wish, &wish, &r->plan) ||
		    !wish.applies) {
			plan_free(&r->plan);
			return;
		}
		programs_wait(b->programs);
	}
	r->kernel = kernel;
	r->bare = kernel_row(kernel)->origin == KERNEL_CLASSIC;
	r->failed = r->plan->step[0].kernel != kernel; /* its program could not be built */
	r->reach = (cl_int4){{0, 0, (cl_int)b->source.width - 1, (cl_int)b->source.height - 1}};
	r->ms = calloc(b->options->iterations + b->options->warmup, sizeof *r->ms);
	for (uint32_t i = 0; i < r->plan->count; i++) {
		struct view view;
		uint64_t needed = step_pack(&r->plan->step[i], &b->tile, &view);

		r->plan->step[i].reach = &r->reach;
		if (r->plan->step[i].dst >= PLACE_A && needed > b->scratch_size)
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

/* Enqueues all launches of a variant, on the pair of buffers whose turn it is. */
static cl_int enqueue_once(struct bench *b, struct runner *r, cl_event event[2])
{
	struct view views[PLACES] = {0};
	uint32_t pair = b->turn++ % PAIRS;
	cl_int code = CL_SUCCESS;

	views[PLACE_IN] = r->bare ? b->bare_view : b->padded_view;
	views[PLACE_IN].buffer = r->bare ? b->bare_buffer[pair] : b->padded_buffer[pair];
	views[PLACE_OUT] = b->target_view;
	views[PLACE_OUT].buffer = b->target_buffer[pair];
	for (uint32_t i = 0; !code && i < r->plan->count; i++) {
		const struct step *step = &r->plan->step[i];

		if (step->dst >= PLACE_A) {
			step_pack(step, &b->tile, &views[step->dst]);
			views[step->dst].buffer = b->scratch;
		}
		code = step_launch(step, b->device, &b->tile, NULL, b->queue, views, &event[i]);
	}
	return code;
}

/* The time of what enqueue_once() enqueued, which is through. */
static double collect(const struct runner *r, cl_event event[2], cl_int *code)
{
	double ms = 0;

	for (uint32_t i = 0; i < r->plan->count; i++) {
		ms += event_ms(event[i], code);
		event[i] = NULL;
	}
	return ms;
}

/* True if the runner has a run to do; what is slow and has used its time does none. */
static bool is_due(const struct bench *b, const struct runner *r, bool special)
{
	return !r->failed && (kernel_row(r->kernel)->origin == KERNEL_SPECIAL) == special &&
	       r->runs < b->options->iterations + b->options->warmup &&
	       (r->spent <= b->options->budget || r->runs < 4);
}

/* Takes the times of a runner's batch, which is through. */
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

/* Everything is enqueued before any of it is waited for, as in service. */
static void run_round(struct bench *b, bool special)
{
	const uint32_t most = b->options->iterations + b->options->warmup;
	cl_event copy = NULL;
	cl_int code, finished;
	uint32_t pair = b->turn++ % PAIRS;

	for (uint32_t i = 0; i < b->count; i++) {
		struct runner *r = &b->runner[i];

		r->code = CL_SUCCESS;
		for (r->batch = 0; !r->code && r->batch < BATCH && is_due(b, r, special) &&
		                   r->runs + r->batch < most;)
			r->code = enqueue_once(b, r, r->event[r->batch++]);
	}
	code = clEnqueueCopyBuffer(b->queue, b->bare_buffer[pair], b->target_buffer[pair], 0, 0,
	                           b->bare_size, 0, NULL, &copy);
	finished = clFinish(b->queue);
	for (uint32_t i = 0; i < b->count; i++)
		if (b->runner[i].batch)
			collect_batch(&b->runner[i], finished);
	if (!code)
		code = finished;
	b->copy_ms[b->copies++] = event_ms(copy, &code);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of what is left after the warm-up, or after the first run where there were few. */
static double median(double *ms, uint32_t runs, uint32_t warmup, uint32_t *timed)
{
	uint32_t skip = runs > 2 * warmup ? warmup : runs > 1;

	*timed = runs - skip;
	if (!*timed)
		return NAN;
	qsort(ms + skip, *timed, sizeof *ms, compare_doubles);
	return ms[skip + *timed / 2];
}

/* ---- verification ---- */

/* Compares a window of a target with the reference. */
static enum error verify_window(const struct bench *b, const struct window *w, const char *target,
                                struct difference *difference)
{
	const size_t pixel = image_pixel_size(&b->part);
	const char *from = b->padded + b->padded_view.origin +
	                   (size_t)w->y0 * b->padded_view.pitch + w->x0 * pixel;
	struct reference reference;
	enum error e =
	    reference_window(&b->c->chain, &b->part, w, from, b->padded_view.pitch, &reference);

	if (e)
		return e;
	difference_add(difference, &reference,
	               target + b->target_view.origin + (size_t)w->y0 * b->target_view.pitch +
	                   w->x0 * pixel,
	               b->target_view.pitch);
	reference_fini(&reference);
	return ERR_OK;
}

/* The i-th window: the corners first, then anywhere; with --verify, bands of the whole. */
static bool window_get(const struct bench *b, uint32_t i, struct window *w)
{
	const uint32_t width = b->source.width, height = b->source.height;
	const uint32_t side = WINDOW_SIDE, rows = 64;
	uint64_t hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (b->options->verify) {
		*w = (struct window){0, i * rows, width, rows};
		if (w->y0 >= height)
			return false;
		w->height = height - w->y0 < rows ? height - w->y0 : rows;
		return true;
	}
	w->width = width < side ? width : side;
	w->height = height < side ? height : side;
	w->x0 = i % 2 ? width - w->width : 0;
	w->y0 = i / 2 % 2 ? height - w->height : 0;
	if (i >= 4) {
		w->x0 = (uint32_t)((hash >> 32) % (width - w->width + 1));
		w->y0 = (uint32_t)((hash & UINT32_MAX) % (height - w->height + 1));
	}
	return i < WINDOWS;
}

/* Runs once more into a poisoned target and compares. */
static enum error verify(struct bench *b, struct runner *r, struct measured *m)
{
	const uint64_t size = (uint64_t)b->target_view.pitch * b->c->image.height;
	const uint8_t poison = POISON;
	struct difference difference = {0};
	struct window w;
	char *target = malloc(size);
	enum error e = target ? ERR_OK : ERR_MEMORY;
	cl_int code = CL_SUCCESS;

	for (int i = 0; !e && !code && i < PAIRS; i++)
		code = clEnqueueFillBuffer(b->queue, b->target_buffer[i], &poison, 1, 0, size, 0,
		                           NULL, NULL);
	if (!code)
		code = enqueue_once(b, r, r->event[0]);
	if (!code)
		code = clFinish(b->queue);
	collect(r, r->event[0], &code);
	if (!e && !code)
		code = clEnqueueReadBuffer(b->queue, b->target_buffer[(b->turn - 1) % PAIRS],
		                           CL_TRUE, 0, size, target, 0, NULL, NULL);
	for (uint32_t i = 0; !e && !code && window_get(b, i, &w); i++)
		e = verify_window(b, &w, target, &difference);
	free(target);
	m->verified = difference.samples;
	m->mismatches = difference.mismatches;
	m->max_difference = difference.largest;
	return code ? ERR_DEVICE : e;
}

/* ---- results ---- */

static double bytes_moved(const struct bench *b)
{
	return 2.0 * (double)image_size(&b->part);
}

static void add_measured(const struct bench *b, struct bench_result *result,
                         const struct measured *m)
{
	struct measured *slot = NULL;

	/* One row a variant: its best shape. */
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
	struct measured m = {.variant = kernel_name(r->kernel), .shape = r->plan->step[0].shape};
	enum error e;

	if (r->failed)
		return ERR_OK;
	m.median_ms = median(r->ms, r->runs, b->options->warmup, &m.runs);
	e = verify(b, r, &m);
	if (!e)
		add_measured(b, result, &m);
	return e;
}

/* Times the reference on a part of the image, as if all went so. */
static enum error measure_reference(const struct bench *b, struct bench_result *result)
{
	struct window w = {0, 0, b->source.width, b->source.height};
	struct measured m = {.variant = "reference", .runs = 1};
	struct reference reference;
	double begun = now();
	enum error e;

	if (b->options->variant && strcmp(b->options->variant, "reference"))
		return ERR_OK;
	w.width = w.width < REFERENCE_SIDE ? w.width : REFERENCE_SIDE;
	w.height = w.height < REFERENCE_SIDE ? w.height : REFERENCE_SIDE;
	e = reference_window(&b->c->chain, &b->part, &w, b->padded + b->padded_view.origin,
	                     b->padded_view.pitch, &reference);
	if (e)
		return e;
	m.median_ms = (now() - begun) * 1e3 * b->source.width * b->source.height /
	              ((double)w.width * w.height);
	m.verified = (uint64_t)w.width * w.height * b->part.bands;
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
		b->scratch = new_buffer(b, b->scratch_size, NULL, &code);
	if (code)
		return ERR_DEVICE;
	for (uint32_t i = 0; i < 2 * rounds; i++)
		run_round(b, i < rounds);
	result->copy_ms = median(b->copy_ms, rounds, b->options->warmup, &copies);
	result->copy_gb_per_s = 2.0 * (double)b->bare_size / result->copy_ms * 1e-6;
	for (uint32_t i = 0; !e && i < b->count; i++)
		e = finish_runner(b, &b->runner[i], result);
	return e ? e : measure_reference(b, result);
}

static enum error bench_init(struct bench *b)
{
	const struct image *image = &b->c->image;
	cl_int code;

	b->source = b->options->source_roi;
	b->target = b->options->target_roi;
	if (!b->source.width)
		b->source = b->target = (struct rectangle){0, 0, image->width, image->height};
	b->part = *image;
	b->part.width = b->source.width;
	b->part.height = b->source.height;
	b->tile = (struct tile){.width = b->source.width, .height = b->source.height};
	chain_halo(&b->c->chain, &b->halo_x, &b->halo_y);
	b->queue = clCreateCommandQueue(b->device->context, b->device->id,
	                                CL_QUEUE_PROFILING_ENABLE, &code);
	if (code)
		return ERR_DEVICE;
	return make_padded(b);
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
	if (!e)
		e = make_buffers(b);
	for (enum kernel k = 0; !e && k < KERNELS; k++)
		add_kernel(b, k);
	if (!e)
		e = run_all(b, result);
	bench_fini(b);
	free(b);
	return e;
}
