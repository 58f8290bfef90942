/* Each kind of work has a trial, which launches all candidates in turn, for several rounds, so that
 * a busy moment of the host does not affect only one of them; the smallest median wins. A step is
 * one launch of some milliseconds, and a tile that arrives meanwhile waits no longer than that.
 * Small launches come first; a candidate that is much slower in these gets no others.
 *
 * The file with the choices is JSON and is rewritten after each choice. It names the device, its
 * driver and a digest of the kernels; if any of them differs, its choices are discarded. */
#include "device/tuner.h"

#include <errno.h>
#include <glib.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sort.h"
#include "device/cl/opencl.h"
#include "device/cl/source.h"
#include "device/plan/launch.h"

enum {
	SMALL_ROUNDS = 3,
	ROUNDS = 7,
	ALL_ROUNDS = SMALL_ROUNDS + ROUNDS,
	SMALL_PART = 16,
	WIDTH = 2048,
	CHOICES_MAX = 256
};

/* A candidate is dropped if its best small launch is this many times slower than another's. */
static const double hopeless = 4;

/* Maximum multiply-adds and samples of a launch. */
static const struct {
	double work, samples;
} budget[] = {
    [DEVICE_CPU] = {1.5e9, 2e6}, [DEVICE_GPU] = {2e11, 3e7}, [DEVICE_ACCELERATOR] = {1e9, 1e6}};

struct candidate {
	struct step step;
	enum program_state state;
	double small_ns; /* fastest small launch; INFINITY before the first */
	double ns[ROUNDS];
};

/* The measurements for one kind of work. */
struct trial {
	STAILQ_ENTRY(trial) place;
	struct message_choice choice; /* its text and candidates: the kind of work */
	struct work work;
	struct operation operation; /* the trial's own copy */
	struct geometry geometry;   /* see set_geometry() */
	struct tile tile;
	struct view views[PLACES];
	struct candidate candidate[CANDIDATES_MAX];
	uint32_t next; /* launch, of ALL_ROUNDS for each candidate */
	double min_small_ns;
	bool started;
};

struct tuner {
	struct programs *programs;
	struct pool *pool;
	cl_command_queue queue;
	STAILQ_HEAD(trials, trial) untried; /* work that has no choice yet */
	uint32_t trials;
	char path[4096], sources[65]; /* the file, or empty; the digest of the kernels */
	uint32_t choices;
	struct message_choice choice[CHOICES_MAX]; /* in the order in which they were made */
};

/* ---- the choices, and their file ---- */

/* The choice for a kind of work, given by its text and candidates, or NULL. */
static const struct message_choice *find_choice(const struct tuner *t,
                                                const struct message_choice *kind)
{
	for (uint32_t i = 0; i < t->choices; i++)
		if (choice_is_for(&t->choice[i], kind))
			return &t->choice[i];
	return NULL;
}

static void save(const struct tuner *t)
{
	const struct device *device = programs_device(t->programs);
	json_t *list = json_array(), *all;
	char path[sizeof t->path + 8];

	for (const struct message_choice *c = t->choice; c < t->choice + t->choices; c++) {
		json_t *candidates = json_array();

		for (uint32_t i = 0; i < c->count; i++) {
			const struct shape *s = &c->candidate[i].shape;

			json_array_append_new(candidates,
			                      json_pack("{s:s, s:[i,i,i,i], s:I}", "kernel",
			                                kernel_name(c->candidate[i].kernel),
			                                "shape", s->x, s->y, s->group_x, s->group_y,
			                                "ns", (json_int_t)c->candidate[i].ns));
		}
		json_array_append_new(list,
		                      json_pack("{s:s, s:i, s:I, s:o}", "work", c->work, "chosen",
		                                (int)c->chosen, "samples", (json_int_t)c->samples,
		                                "candidates", candidates));
	}
	all = json_pack("{s:s, s:s, s:s, s:o}", "device", device->name, "driver", device->driver,
	                "kernels", t->sources, "choices", list);
	snprintf(path, sizeof path, "%s.new", t->path);
	if (*t->path &&
	    (json_dump_file(all, path, JSON_INDENT(1) | JSON_COMPACT) || rename(path, t->path)))
		log_warning("cannot write %s: %s", path, strerror(errno));
	json_decref(all);
}

static bool read_choice(json_t *json, struct message_choice *c)
{
	json_t *list, *item;
	const char *work, *name;
	int chosen, side[4];
	json_int_t samples, ns;
	size_t i;

	*c = (struct message_choice){0};
	if (json_unpack(json, "{s:s, s:i, s:I, s:o}", "work", &work, "chosen", &chosen, "samples",
	                &samples, "candidates", &list) ||
	    !json_is_array(list) || json_array_size(list) > CANDIDATES_MAX)
		return false;
	snprintf(c->work, sizeof c->work, "%s", work);
	c->chosen = (uint32_t)chosen;
	c->samples = (uint64_t)samples;
	json_array_foreach(list, i, item) {
		if (json_unpack(item, "{s:s, s:[i,i,i,i], s:I}", "kernel", &name, "shape", &side[0],
		                &side[1], &side[2], &side[3], "ns", &ns))
			return false;
		for (int j = 0; j < 4; j++)
			if (side[j] < 1 || side[j] > UINT16_MAX)
				return false;
		c->candidate[i].kernel = kernel_parse(name);
		c->candidate[i].shape = (struct shape){(uint16_t)side[0], (uint16_t)side[1],
		                                       (uint16_t)side[2], (uint16_t)side[3]};
		c->candidate[i].ns = (uint64_t)ns;
		c->count++;
	}
	return choice_valid(c);
}

/* Loads the choices that were measured on the same device, with the same driver and kernels. */
static void load(struct tuner *t)
{
	const struct device *device = programs_device(t->programs);
	json_error_t error;
	json_t *all = json_load_file(t->path, 0, &error), *list, *item;
	const char *name, *driver, *sources;
	size_t i;

	if (!all) {
		if (access(t->path, F_OK) == 0)
			log_warning("%s: %s: measuring everything again", t->path, error.text);
		return;
	}
	if (json_unpack(all, "{s:s, s:s, s:s, s:o}", "device", &name, "driver", &driver, "kernels",
	                &sources, "choices", &list)) {
		log_warning("%s is not a tuning file: measuring everything again", t->path);
	} else if (strcmp(name, device->name) || strcmp(driver, device->driver) ||
	           strcmp(sources, t->sources)) {
		log_info("%s is for another device, driver or kernels: measuring everything again",
		         t->path);
	} else {
		json_array_foreach(list, i, item) {
			struct message_choice *choice = &t->choice[t->choices];

			if (t->choices < CHOICES_MAX && read_choice(item, choice) &&
			    !find_choice(t, choice))
				t->choices++;
		}
	}
	json_decref(all);
}

/* The SHA-256 of all kernel sources and of the shapes that the kernels have. */
static bool digest_sources(const char *kernel_dir, char text[65])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	bool complete = true;

	for (size_t i = 0; i < kernels_embedded_count; i++) {
		char *source = source_load(kernel_dir, kernels_embedded[i].name);

		complete &= source != NULL;
		if (source)
			g_checksum_update(sum, (const guchar *)source, -1);
		free(source);
	}
	for (enum kernel k = 0; k < KERNELS; k++)
		g_checksum_update(sum, (const guchar *)variant_rows[k].shape,
		                  sizeof variant_rows[k].shape);
	snprintf(text, 65, "%s", g_checksum_get_string(sum));
	g_checksum_free(sum);
	return complete;
}

/* ---- measuring ---- */

struct tuner *tuner_new(struct programs *programs, struct pool *pool, const char *state_dir,
                        const char *kernel_dir)
{
	const struct device *device = programs_device(programs);
	struct tuner *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->programs = programs;
	t->pool = pool;
	STAILQ_INIT(&t->untried);
	t->queue = device_queue(device, CL_QUEUE_PROFILING_ENABLE);
	if (!t->queue || !digest_sources(kernel_dir, t->sources)) {
		tuner_free(&t);
		return NULL;
	}
	if (state_dir) {
		snprintf(t->path, sizeof t->path, "%.4000s/%u-%u.json", state_dir, device->platform,
		         device->index);
		load(t);
	}
	return t;
}

static void remove_first(struct tuner *t)
{
	struct trial *r = STAILQ_FIRST(&t->untried);

	STAILQ_REMOVE_HEAD(&t->untried, place);
	t->trials--;
	for (uint32_t i = 0; i < r->choice.count; i++)
		step_release(&r->candidate[i].step);
	object_release(OBJECT_BUFFER, r->views[PLACE_IN].buffer);
	object_release(OBJECT_BUFFER, r->views[PLACE_OUT].buffer);
	operation_fini(&r->operation);
	free(r);
}

void tuner_free(struct tuner **tuner)
{
	struct tuner *t = *tuner;

	if (!t)
		return;
	while (!STAILQ_EMPTY(&t->untried))
		remove_first(t);
	object_release(OBJECT_QUEUE, t->queue);
	free(t);
	*tuner = NULL;
}

/* The next power of 2. Resizes by ratios that are almost the same are one kind. */
static uint32_t power_of_2(uint32_t taps)
{
	return taps > 1 ? 1u << (32 - __builtin_clz(taps - 1)) : 1;
}

/* The kind of a piece of work: its text, and all candidates for it where rows are long enough. */
static struct message_choice kind_of(const struct tuner *t, const struct work *work)
{
	const struct device *device = programs_device(t->programs);
	static const char *const outputs[] = {" magnitude", " x", " y", " direction"};
	static const char *const elements[] = {" rectangle", " ellipse", " cross", " circle"};
	const struct operation *op = work->operation;
	struct message_choice kind = {0};
	struct shape shapes[SHAPES_MAX];
	struct work wide = *work;
	char kept[24] = "";
	uint32_t window[2] = {2 * op->radius_x + 1, 2 * op->radius_y + 1};

	if (work->keep)
		snprintf(kept, sizeof kept, " keep %u", work->keep);
	if (op->kind == OPERATION_RESIZE) {
		window[0] = power_of_2(resizing_taps(&op->across));
		window[1] = power_of_2(resizing_taps(&op->down));
	}
	snprintf(kind.work, sizeof kind.work, "%s%s %ux%u %s x%u%s%s%s", operation_name(op->kind),
	         op->kind == OPERATION_GRADIENT  ? outputs[op->output]
	         : op->kind == OPERATION_EXTREME ? elements[op->element]
	                                         : "",
	         window[0], window[1], pixel_type_rows[work->type].name, work->bands,
	         work_is_mean(op) ? " mean" : "", work->alpha ? " alpha" : "", kept);
	wide.width = WIDTH / work->bands;
	for (enum kernel k = 0; k < KERNELS; k++) {
		uint32_t count =
		    programs_makes(t->programs, k) && variant_applies(k, &wide, device, false)
		        ? variant_shapes(k, &wide, device, shapes)
		        : 0;

		for (uint32_t i = 0; i < count && kind.count < CANDIDATES_MAX; i++) {
			kind.candidate[kind.count].kernel = k;
			kind.candidate[kind.count++].shape = shapes[i];
		}
	}
	return kind;
}

/* Adds a trial for a kind of work, unless there is one. */
static void note_work(struct tuner *t, const struct work *work, const struct message_choice *kind)
{
	struct trial *r = STAILQ_FIRST(&t->untried);

	while (r && !choice_is_for(&r->choice, kind))
		r = STAILQ_NEXT(r, place);
	if (r || t->choices + t->trials == CHOICES_MAX)
		return;
	r = calloc(1, sizeof *r);
	if (!r || operation_copy(work->operation, &r->operation)) {
		free(r);
		return;
	}
	r->choice = *kind;
	r->work = *work;
	r->work.operation = &r->operation;
	r->min_small_ns = INFINITY;
	for (uint32_t i = 0; i < kind->count; i++)
		r->candidate[i].small_ns = INFINITY;
	STAILQ_INSERT_TAIL(&t->untried, r, place);
	t->trials++;
}

void tuner_choose(void *tuner, const struct work *work, enum kernel *kernel, struct shape *shape)
{
	struct tuner *t = tuner;
	const struct device *device = programs_device(t->programs);
	const struct message_choice kind = kind_of(t, work), *choice = find_choice(t, &kind);

	variant_choose_by_table(device, work, kernel, shape);
	/* A plane is an image's, and a note would keep the operation. */
	if (work->operation->plane)
		return;
	if (!choice && kind.count && *kernel < KERNELS)
		note_work(t, work, &kind);
	if (choice &&
	    variant_applies(choice->candidate[choice->chosen].kernel, work, device, false)) {
		*kernel = choice->candidate[choice->chosen].kernel;
		*shape = choice->candidate[choice->chosen].shape;
	}
}

/* Sets the geometry of a trial whose results have this size: to a resize, of the work's ratios. */
static void set_geometry(struct trial *r, uint32_t width, uint32_t height)
{
	struct geometry *g = &r->geometry;

	*g = (struct geometry){.resizes = r->operation.kind == OPERATION_RESIZE,
	                       .size = {width, height},
	                       .scale = {r->operation.across, r->operation.down}};
	for (int i = 0; i < 2; i++) {
		g->scale[i].first = 0;
		g->scale[i].to = g->size[i];
		g->scale[i].from = (uint32_t)ceil(g->size[i] * g->scale[i].step);
	}
}

/* Makes the buffers with a pattern, sets the launches' size, and requests all programs. */
static void start_trial(struct tuner *t, struct trial *r)
{
	const struct device *device = programs_device(t->programs);
	const struct operation *op = &r->operation;
	const uint64_t pixel = r->work.bands * pixel_type_rows[r->work.type].size;
	const uint32_t width = WIDTH / r->work.bands, pattern = 0x3d813d02;
	const uint64_t lead = roundup(op->radius_x * pixel, (uint64_t)ROW_ALIGNMENT);
	const double shrinks = fmax(op->across.step * op->down.step, 1);
	const double samples =
	    fmin(budget[device->type].samples,
	         budget[device->type].work / operation_terms(op->kind, op->radius_x, op->radius_y));
	const uint32_t height =
	    (uint32_t)fmax(samples / shrinks / (width * (double)r->work.bands), 32) & ~31u;
	uint64_t pitch, size;
	struct view *in = &r->views[PLACE_IN], *out = &r->views[PLACE_OUT];
	cl_int code;

	r->started = true;
	r->tile = (struct tile){.width = width, .height = height};
	set_geometry(r, width, height);
	pitch = row_pitch(2 * lead + MAX(width, r->geometry.scale[0].from) * pixel);
	size = pitch * (MAX(height, r->geometry.scale[1].from) + 2 * (uint64_t)op->radius_y);
	*in = (struct view){.origin = lead + op->radius_y * pitch, .pitch = (uint32_t)pitch};
	*out = (struct view){.pitch = (uint32_t)pitch};
	in->buffer = device_buffer(device, CL_MEM_READ_WRITE, size, NULL, &code);
	if (!code)
		code = clEnqueueFillBuffer(t->queue, in->buffer, &pattern, sizeof pattern, 0,
		                           size & ~UINT64_C(3), 0, NULL, NULL);
	if (!code)
		out->buffer = device_buffer(device, CL_MEM_READ_WRITE, size, NULL, &code);
	for (uint32_t i = 0; i < r->choice.count; i++) {
		struct candidate *c = &r->candidate[i];

		c->step = (struct step){.kernel = r->choice.candidate[i].kernel,
		                        .shape = r->choice.candidate[i].shape,
		                        .src = PLACE_IN,
		                        .dst = PLACE_OUT,
		                        .geometry = &r->geometry};
		if (code || step_fill(device, &r->work, &c->step))
			c->state = PROGRAM_FAILED;
		else
			c->state = programs_find(t->programs, &c->step, false);
	}
}

bool tuner_ready(struct tuner *t)
{
	struct trial *r = STAILQ_FIRST(&t->untried);
	bool ready = r;

	for (uint32_t i = 0; r && r->started && i < r->choice.count; i++) {
		struct candidate *c = &r->candidate[i];

		if (c->state == PROGRAM_PENDING) {
			programs_for(t->programs, 0);
			c->state = programs_find(t->programs, &c->step, false);
		}
		ready &= c->state != PROGRAM_PENDING;
	}
	return ready;
}

static uint32_t small_height(const struct trial *r)
{
	return (r->tile.height + SMALL_PART - 1) / SMALL_PART;
}

static bool is_hopeless(const struct trial *r, const struct candidate *c)
{
	return c->small_ns > hopeless * r->min_small_ns;
}

static void choose_fastest(struct trial *r)
{
	struct message_choice *choice = &r->choice;
	double fastest = INFINITY;

	choice->samples = (uint64_t)r->tile.width * r->tile.height * r->work.bands;
	for (uint32_t i = 0; i < choice->count; i++) {
		struct candidate *c = &r->candidate[i];
		double ns = 0;

		/* The median, or for dropped candidates an estimate from small launches. */
		if (c->state == PROGRAM_READY && is_hopeless(r, c)) {
			ns = c->small_ns * r->tile.height / small_height(r);
		} else if (c->state == PROGRAM_READY) {
			sort_doubles(c->ns, ROUNDS);
			ns = c->ns[ROUNDS / 2];
		}
		choice->candidate[i].ns = (uint64_t)ns;
		if (choice->candidate[i].ns && ns < fastest) {
			fastest = ns;
			choice->chosen = i;
		}
	}
	log_info("%s: %s, %.0f ns of %u candidates", choice->work,
	         kernel_name(choice->candidate[choice->chosen].kernel), fastest, choice->count);
}

/* Makes the trial's next launch, unless its candidate has been dropped. */
static void launch_next(const struct tuner *t, struct trial *r)
{
	struct candidate *c = &r->candidate[r->next % r->choice.count];
	uint32_t round = r->next / r->choice.count;
	bool small = round < SMALL_ROUNDS;
	struct tile tile = {.width = r->tile.width,
	                    .height = small ? small_height(r) : r->tile.height};
	cl_event event = NULL;
	uint64_t ns = 0;
	cl_int code;

	if (c->state != PROGRAM_READY || (!small && is_hopeless(r, c)))
		return;
	if (t->pool) {
		code = pool_run(t->pool, &c->step, &tile, r->views, &ns);
	} else {
		code = launch_step(&c->step, programs_device(t->programs), &tile, NULL, t->queue,
		                   r->views, &event);
		object_add(OBJECT_EVENT, event);
		if (!code)
			code = clFinish(t->queue);
		if (!code)
			code = opencl_time_between(event, event, &ns);
		object_release(OBJECT_EVENT, event);
	}
	if (code)
		c->state = PROGRAM_FAILED;
	else if (small)
		c->small_ns = fmin(c->small_ns, (double)ns);
	else
		c->ns[round - SMALL_ROUNDS] = (double)ns;
	if (small)
		r->min_small_ns = fmin(r->min_small_ns, c->small_ns);
}

void tuner_step(struct tuner *t)
{
	struct trial *r = STAILQ_FIRST(&t->untried);

	if (!r)
		return;
	if (!r->started) {
		start_trial(t, r);
		return;
	}
	launch_next(t, r);
	if (++r->next < r->choice.count * ALL_ROUNDS)
		return;
	choose_fastest(r);
	if (choice_valid(&r->choice)) /* or the machine has stood still meanwhile */
		t->choice[t->choices++] = r->choice;
	remove_first(t);
	programs_trim(t->programs);
	save(t);
}

const struct message_choice *tuner_choices(const struct tuner *t, uint32_t *count)
{
	*count = t->choices;
	return t->choice;
}

/* The filters that --tune measures by default. */
static const char *const usual[] = {
    "gaussian=size=3",
    "gaussian=size=5",
    "gaussian=sigma=2",
    "gaussian=sigma=5",
    "box=size=3",
    "sobel",
    "sobel=output=x",
    "laplacian",
    "sharpen",
    "emboss",
    "bilateral=radius=4",
    "unsharp",
    "convolve=kernel=1 2 3 4 5;2 9 4 7 6;3 1 8 0 7;4 4 2 7 1;5 6 7 8 0",
};

static enum error parse_filter(struct chain *chain, const char *filter)
{
	struct problem problem;
	enum error e;

	chain_init(chain);
	e = chain_parse(chain, filter, &problem);
	if (!e)
		e = chain_check(chain, &problem);
	if (e)
		log_error("cannot tune %s: %s", filter, problem.detail);
	return e;
}

enum error tuner_check(const char *const *filters, size_t count)
{
	static struct chain chain;
	enum error e = ERR_OK;

	for (size_t i = 0; !e && i < count; i++)
		e = parse_filter(&chain, filters[i]);
	return e;
}

/* Adds trials for these filters, on images of all types. */
static enum error note_filters(struct tuner *t, const char *const *filters, size_t count)
{
	static const uint32_t bands[3] = {1, 3, 4};
	static struct chain chain;
	enum error e = ERR_OK;

	for (enum pixel_type type = 0; !e && type < PIXEL_TYPES; type++)
		for (size_t i = 0; !e && i < 3 * count; i++) {
			struct image image = {.width = WIDTH,
			                      .height = WIDTH,
			                      .bands = bands[i / count],
			                      .type = type};
			struct plan *plan = NULL;

			e = parse_filter(&chain, filters[i % count]);
			if (!e)
				e = plan_new(t->programs, &chain, &image, tuner_choose, t, &plan);
			plan_free(&plan);
		}
	return e;
}

enum error tuner_run(struct tuner *t, const char *const *filters, size_t count,
                     void (*report)(const struct message_choice *choice))
{
	uint32_t reported = t->choices;
	enum error e;

	programs_hurry(t->programs);
	e = count ? note_filters(t, filters, count)
	          : note_filters(t, usual, sizeof usual / sizeof *usual);
	while (!e && !STAILQ_EMPTY(&t->untried)) {
		if (!tuner_ready(t))
			programs_wait(t->programs);
		else
			tuner_step(t);
		for (; reported < t->choices; reported++)
			report(&t->choice[reported]);
	}
	return e;
}
