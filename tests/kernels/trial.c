/* Trials: random pixels, a plan, tiles of some height, the reference. */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/difference.h"

/* In a chain, how much of the result may be off by more than 1, because an intermediate result was
 * off by 1 and the next filter enlarged that. */
static const double SHARE_BEYOND_1 = 0.1;

uint64_t trial_seed = 1;
double trial_samples_most = 1e9;
int trial_every = 1;
bool trial_only_copy;

uint32_t random_below(uint32_t n)
{
	trial_seed = trial_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((trial_seed >> 33) % n);
}

bool group_alpha_is_stable(const struct group *group)
{
	return !strstr(group->name, "gain") && !strstr(group->name, "sharpen") &&
	       !strstr(group->chain, "63:");
}

/* Puts a few pixels that are not numbers into an image of floats: they must not spread further than
 * the window. */
static void spoil(const struct image *image, float *samples, size_t count)
{
	if (image->type == PIXEL_F32 && !image->alpha)
		for (int i = 0; i < 3; i++)
			samples[random_below((uint32_t)count)] = i ? NAN : INFINITY;
}

/* Random pixels; now and then flat areas at both ends of the range. In chains alpha stays large:
 * an intermediate alpha that is off by 1 would else change the colour by more. */
static void *random_image(const struct image *image, bool alpha_large)
{
	size_t count = (size_t)image_size(image) / pixel_type_size(image->type);
	void *pixels = malloc((size_t)image_size(image));
	uint32_t kind = random_below(4);

	for (size_t i = 0; pixels && i < count; i++) {
		bool alpha = image->alpha && i % image->bands == image->bands - 1;
		double share = random_below(65536) / 65535.0;

		if (kind == 0)
			share = (double)(i / 37 % 2);
		else if (alpha && random_below(4) == 0)
			share = 0;
		if (alpha && alpha_large)
			share = 0.75 + share / 4;
		if (image->type == PIXEL_U8)
			((uint8_t *)pixels)[i] = (uint8_t)(share * 255);
		else if (image->type == PIXEL_U16)
			((uint16_t *)pixels)[i] = (uint16_t)(share * 65535);
		else
			((float *)pixels)[i] = (float)(alpha ? share : 2 * share - 1);
	}
	if (pixels && kind == 1)
		spoil(image, pixels, count);
	return pixels;
}

static void report(const struct trial *t, const char *what)
{
	const char *variant = t->variant ? kernel_name(t->variant - 1) : "general";

	printf(
	    "# FAILED %s by %s: %ux%ux%u %s alpha %u channels %u, %s, tiles of %u rows, %s: %s\n",
	    t->group->name, variant, t->image.width, t->image.height, t->image.bands,
	    pixel_type_name(t->image.type), t->image.alpha, t->channels, border_name(t->border),
	    t->tile_rows, t->mode == LANE_COPY ? "copied" : "in place", what);
}

/* Compares all samples; reports the first that is off, and how many are off by more than 1. */
static bool compare(const struct trial *t, const struct reference *wanted, const void *got)
{
	size_t pitch = wanted->window.width * image_pixel_size(&t->image);
	struct difference d = {0};
	char text[160];

	difference_add(&d, wanted, got, pitch);
	if (d.mismatches) {
		snprintf(text, sizeof text, "at %u,%u band %u: %.9g is not %.9g +- %.3g", d.x, d.y,
		         d.band, d.got, d.wanted, d.slack);
		report(t, text);
		return false;
	}
	/* With alpha a bilateral filter may divide by next to nothing. */
	if (t->image.type == PIXEL_F32 ||
	    (t->image.alpha && strstr(t->group->chain, "bilateral")) ||
	    (double)d.beyond_1 <= SHARE_BEYOND_1 * (double)d.samples + 8)
		return true;
	snprintf(text, sizeof text, "%llu of %llu samples are off by more than 1",
	         (unsigned long long)d.beyond_1, (unsigned long long)d.samples);
	report(t, text);
	return false;
}

static bool try_plan(struct harness *h, const struct trial *t, const struct plan *plan,
                     const void *in)
{
	struct reference wanted;
	void *got = malloc((size_t)image_size(&t->image));
	bool ok = false;

	if (!got || reference_filter(&plan->chain, &t->image, in, &wanted))
		abort();

	struct outcome outcome = harness_filter(h, t->mode, plan, in, t->tile_rows, got);

	if (outcome.error)
		report(t, outcome.error == ERR_DEVICE ? opencl_error_name(outcome.code)
		                                      : error_slug(outcome.error));
	else if (outcome.guard_broken)
		report(t, "bytes outside the result were written");
	else
		ok = compare(t, &wanted, got);
	free(got);
	reference_fini(&wanted);
	return ok;
}

static void parse_chain(struct chain *chain, const struct trial *t)
{
	struct problem problem;

	chain_init(chain);
	if (chain_parse(chain, t->group->chain, &problem)) {
		fprintf(stderr, "%s: %s\n", t->group->chain, problem.detail);
		abort();
	}
	chain->border = t->border;
	chain->call[0].channels = t->channels;
}

/* What a plan is to use. */
struct wish {
	const struct device *device;
	enum kernel kernel;
	bool applies;
};

/* Kernels that are shaped for GPUs take long to be compiled for a CPU, so their blocks are lower
 * there: what they do to a row is the same. */
static void choose_wish(void *user, const struct work *work, enum kernel *kernel,
                        struct shape *shape)
{
	struct wish *wish = user;
	struct shape shapes[SHAPES_MAX];

	if (!variant_applies(wish->kernel, work, wish->device, true))
		return;
	wish->applies = true;
	*kernel = wish->kernel;
	*shape = shapes[(work->bands + work->operation->radius_x) %
	                variant_shapes(*kernel, work, wish->device, shapes)];
	if (kernel_row(*kernel)->device >= KERNEL_FOR_GPU && wish->device->type == DEVICE_CPU)
		*shape = (struct shape){shape->x, shape->y > 2 ? 2 : shape->y, 16, 1};
}

/* The trial's plan; NULL if there is nothing to do. */
static struct plan *make_plan(struct harness *h, const struct trial *t, struct chain *chain)
{
	struct wish wish = {&h->device, t->variant ? t->variant - 1 : KERNELS, !t->variant};
	struct problem problem;
	struct plan *plan = NULL;
	uint32_t width, height;

	if (chain_output_size(chain, &t->image, &width, &height, &problem))
		return NULL;
	if (plan_new(h->programs, chain, &t->image,
	             t->variant ? choose_wish : variant_choose_general, &wish, &plan))
		abort();
	if (!wish.applies)
		plan_free(&plan);
	return plan;
}

static bool uses_variant(const struct plan *plan, uint32_t variant)
{
	for (uint32_t i = 0; i < plan->list.count; i++)
		if (plan->list.step[i].kernel == variant - 1)
			return true;
	return !variant;
}

bool trial_prepare(struct harness *h, const struct trial *t)
{
	static struct chain chain;
	struct plan *plan;
	bool used;

	parse_chain(&chain, t);
	plan = make_plan(h, t, &chain);
	used = plan != NULL;
	plan_free(&plan);
	return used;
}

int trial_run(struct harness *h, const struct trial *t)
{
	static struct chain chain;
	struct plan *plan;
	uint64_t before;
	void *in;
	bool ok = false;

	parse_chain(&chain, t);
	if (t->image.type != PIXEL_F32 && random_below(2)) {
		chain.border_values = 1;
		chain.border_value[0] = random_below(256);
	}
	before = trial_seed;
	plan = make_plan(h, t, &chain);
	if (!plan)
		return -1;
	if (!uses_variant(plan, t->variant)) { /* it had to be built first */
		plan_free(&plan);
		programs_wait(h->programs);
		trial_seed = before;
		plan = make_plan(h, t, &chain);
	}
	if (plan_await(plan, h->programs) != PROGRAM_READY)
		abort();
	in = random_image(&t->image, chain.count > 1 || !group_alpha_is_stable(t->group));
	if (!in)
		abort();
	if (uses_variant(plan, t->variant))
		ok = try_plan(h, t, plan, in);
	else
		report(t, "its program was not built");
	plan_free(&plan);
	free(in);
	return ok;
}

void trial_choose(struct trial *t, uint32_t least, uint32_t extra)
{
	static const uint32_t sides[] = {1,  2,  3,  5,  7,   8,   15,  16,  17,
	                                 31, 33, 64, 67, 129, 257, 601, 1003};
	static const uint32_t rows[] = {1, 3, 8, 20, 61, 5000};
	const uint32_t count = sizeof sides / sizeof *sides;
	double most = fmin(t->group->samples_most, trial_samples_most) / t->image.bands;

	do {
		t->image.width = sides[random_below(count)] + extra;
		t->image.height = sides[random_below(count)] + extra;
		if (t->image.width < least)
			t->image.width += least;
	} while ((double)t->image.width * t->image.height > most &&
	         (t->image.width > 1 + least + extra || t->image.height > 1 + extra));
	t->tile_rows = rows[random_below(sizeof rows / sizeof *rows)];
	if (t->tile_rows < 8 && t->image.height > 100)
		t->tile_rows += 40;
	t->mode = random_below(2) || trial_only_copy ? LANE_COPY : LANE_ZERO_COPY;
}
