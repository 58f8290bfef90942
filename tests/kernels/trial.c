/* Trials: random pixels, a plan, tiles of some height, the reference. */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "bare.h"
#include "reference/reference.h"

/* In a chain, how much of the result may be off by more than 1, because an intermediate result was
 * off by 1 and the next filter enlarged that. */
static const double SHARE_BEYOND_1 = 0.1;

/* In multiply-adds: some tens of milliseconds. */
static const double REFERENCE_COST_MOST = 8e6;

/* Drivers may round what each array takes. */
enum { LOCAL_SLACK = 64 };

/* The chain of a trial. With the tables of tiles it is longer than its struct. */
static union {
	struct chain chain;
	double room[1 << 20];
} trial_chain;

bool group_alpha_is_stable(const struct group *group)
{
	return !strstr(group->name, "gain") && !strstr(group->name, "sharpen") &&
	       !strstr(group->chain, "63:");
}

/* Puts a few pixels that are not numbers, or hardly, into an image of floats: they must not spread
 * further than the window. */
static void spoil(const struct image *image, float *samples, size_t count)
{
	static const float values[] = {INFINITY, NAN, 3e38f, -3e38f};

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (image->type == PIXEL_F32 && !image->alpha)
			samples[random_below((uint32_t)count)] = values[i];
}

/* Random pixels; now and then flat areas at both ends of the range. In chains alpha stays large:
 * an intermediate alpha that is off by 1 would else change the colour by more. alpha_signed: that
 * of floats is negative in places. */
static void *random_image(const struct image *image, bool alpha_large, bool alpha_signed)
{
	size_t count = (size_t)image_size(image) / pixel_type_rows[image->type].size;
	void *pixels = g_malloc((size_t)image_size(image));
	uint32_t kind = random_below(4);

	for (size_t i = 0; i < count; i++) {
		bool alpha = image->alpha && i % image->bands == image->bands - 1;
		double share = random_below(65536) / 65535.0;

		if (kind == 0)
			share = (double)(i / 37 % 2);
		else if (alpha && random_below(4) == 0)
			share = 0;
		if (alpha && alpha_large)
			share = 0.75 + share / 4;
		if (image->type == PIXEL_F32 && !alpha)
			share = 2 * share - 1;
		else if (image->type == PIXEL_F32 && alpha_signed && i / 53 % 2)
			share = -share;
		image_put_sample(pixels, i, (enum pixel_type)image->type,
		                 share * pixel_type_rows[image->type].full_scale);
	}
	if (kind == 1)
		spoil(image, pixels, count);
	return pixels;
}

static void report(const struct trial *t, const char *what)
{
	static const char *const modes[TRIAL_MODES] = {
	    [LANE_ZERO_COPY] = "in place",
	    [LANE_COPY] = "copied",
	    [MODE_BARE] = "bare",
	    [MODE_BARE_INSIDE] = "bare, inside matrices",
	};
	const char *variant = t->variant ? kernel_name(t->variant - 1) : "general";

	fail("%s by %s: %ux%ux%u %s alpha %u channels %u, border %d, tiles of %u rows, %s: %s",
	     t->group->name, variant, t->image.width, t->image.height, t->image.bands,
	     pixel_type_rows[t->image.type].name, t->image.alpha, t->channels, t->border,
	     t->tile_rows, modes[t->mode], what);
}

/* Compares all samples; reports the first that is off, and how many are off by more than 1. */
static void compare(const struct trial *t, const struct reference *wanted, const void *got)
{
	size_t pitch = wanted->window.width * image_pixel_size(&t->image);
	struct difference d = {0};
	char text[160];

	difference_add(&d, wanted, got, pitch);
	if (d.mismatches) {
		snprintf(text, sizeof text, "at %u,%u band %u: %.9g is not %.9g +- %.3g", d.x, d.y,
		         d.band, d.got, d.wanted, d.slack);
		report(t, text);
		return;
	}
	/* With alpha a bilateral filter may divide by next to nothing. */
	if (t->image.type == PIXEL_F32 ||
	    (t->image.alpha && strstr(t->group->chain, "bilateral")) ||
	    (double)d.beyond_1 <= SHARE_BEYOND_1 * (double)d.samples + 8)
		return;
	snprintf(text, sizeof text, "%llu of %llu samples are off by more than 1",
	         (unsigned long long)d.beyond_1, (unsigned long long)d.samples);
	report(t, text);
}

/* The plan's kernels declare the local memory that the host expects. NVIDIA's driver counts one
 * byte for none; PoCL says 0 for all since its version 5. */
static void check_local(const struct harness *h, const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->list.count; i++) {
		const struct step *s = &plan->list.step[i];
		uint64_t expected = variant_local_bytes(s->kernel, &s->shape, s->program,
		                                        s->radius_x, s->radius_y, s->bands);
		cl_ulong bytes = 0;

		if (variant_rows[s->kernel].needs & VARIANT_LOCAL)
			continue;
		clGetKernelWorkGroupInfo(s->function, h->device.id, CL_KERNEL_LOCAL_MEM_SIZE,
		                         sizeof bytes, &bytes, NULL);
		if (bytes > 1 && (bytes > expected || bytes + LOCAL_SLACK < expected))
			fail("%s has %llu bytes of local memory, not %llu", kernel_name(s->kernel),
			     (unsigned long long)bytes, (unsigned long long)expected);
	}
}

static void try_plan(struct harness *h, const struct trial *t, const struct plan *plan,
                     const void *in)
{
	struct reference wanted;
	struct outcome outcome = {0};
	void *got;

	if (reference_filter(&plan->chain, &t->image, in, &wanted))
		abort();
	got = g_malloc((size_t)wanted.window.width * wanted.window.height *
	               image_pixel_size(&t->image));
	if (t->mode >= (int)LANE_MODES && bare_applies(plan))
		outcome.guard_broken =
		    !bare_filter(h, plan, t->mode == MODE_BARE_INSIDE, in, t->tile_rows, got);
	else
		outcome = harness_filter(h, (enum lane_mode)(t->mode % (int)LANE_MODES), plan, in,
		                         t->tile_rows, got);
	if (outcome.error)
		report(t, outcome.error == ERR_DEVICE ? opencl_error_name(outcome.code)
		                                      : error_row(outcome.error)->slug);
	else if (outcome.guard_broken)
		report(t, "bytes outside the result were written");
	else
		compare(t, &wanted, got);
	check_local(h, plan);
	free(got);
	reference_fini(&wanted);
}

/* Returns the size of the image that a call would get of the whole image. */
static struct image image_before(const struct trial *t, const struct chain *chain, uint32_t call)
{
	struct chain before = {.count = call + 1, .border = t->border};
	struct image image = t->image;
	struct problem problem;

	memcpy(before.call, chain->call, sizeof before.call);
	if (chain_output_size(&before, &t->image, &image.width, &image.height, &problem))
		image.width = image.height = 1;
	return image;
}

static void fill_word(double *number)
{
	const uint64_t word = (uint64_t)random_below(1u << 31) << 33 |
	                      (uint64_t)random_below(1u << 31) << 11 | random_below(1u << 11);

	memcpy(number, &word, sizeof word);
}

/* Gives calls that must know the whole image some numbers, or random bits, which for the two
 * colours of a kind without alpha are two. Trials of a canny that is to look for edges have another
 * name. */
static void gather(const struct trial *t, struct chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		const struct image image = image_before(t, chain, i);
		struct filter_call *call = &chain->call[i];
		const struct gathering what = filter_gathering(call);
		struct numbers *n = &call->gathered;

		if (what.kind == GATHER_NONE ||
		    (what.kind == GATHER_EDGES && strncmp(t->group->name, "edges", 5)))
			continue;
		n->first = chain->coefficients_used;
		call->gathered_from[0] = image.width;
		call->gathered_from[1] = image.height;
		gather_size(&what, &image, &n->width, &n->height);
		for (uint32_t k = 0; k < n->width * n->height; k++) {
			double *number = chain->coefficient + chain->coefficients_used++;

			if (what.kind == GATHER_EDGES || what.kind == GATHER_TILES)
				fill_word(number);
			else
				*number = random_below(1001) / 1000.0;
		}
	}
}

/* Returns false if the chain is not for images of this size. */
static bool parse_chain(struct chain *chain, const struct trial *t)
{
	struct chain *sized;
	struct problem problem;

	harness_parse(chain, t->group->chain);
	if (chain_has_shares(chain)) {
		if (chain_size_to(chain, t->image.width, t->image.height, &sized, &problem))
			return false;
		memcpy(chain, sized, chain_size(sized));
		free(sized);
	}
	gather(t, chain);
	chain->border = t->border;
	if (chain_resizing(chain) < chain->count &&
	    (t->border == BORDER_CROP || (t->border == BORDER_WRAP && chain->regions.count)))
		chain->border = BORDER_REPLICATE;
	if (chain->call[0].filter != FILTER_RESIZE)
		chain->call[0].channels = t->channels;
	if (t->variant == KERNEL_CURVE + 1) /* plans look up instead */
		chain->variant = t->variant;
	return true;
}

/* The device and the kernel that a plan is to use. */
struct wish {
	const struct device *device;
	enum kernel kernel;
	bool only_ask; /* whether it applies */
	bool applies;
};

/* Kernels that are shaped for GPUs take long to be compiled for a CPU, so their blocks are lower
 * there: their work on a row is the same. A small group of resize_ring would have no pixels. */
static void choose_wish(void *user, const struct work *work, enum kernel *kernel,
                        struct shape *shape)
{
	struct wish *wish = user;
	struct shape shapes[SHAPES_MAX];

	if (wish->kernel == KERNELS || !variant_applies(wish->kernel, work, wish->device, true))
		return; /* the general one stays */
	wish->applies = true;
	if (wish->only_ask)
		return;
	*kernel = wish->kernel;
	*shape = shapes[(work->bands + work->operation->radius_x) %
	                variant_shapes(*kernel, work, wish->device, shapes)];
	if (kernel_row(*kernel)->device >= KERNEL_FOR_GPU && wish->device->type == DEVICE_CPU)
		*shape =
		    (struct shape){shape->x, shape->y > 2 ? 2 : shape->y,
		                   wish->kernel == KERNEL_RESIZE_RING ? shape->group_x : 16, 1};
}

static bool uses_variant(const struct plan *plan, uint32_t variant)
{
	for (uint32_t i = 0; i < plan->list.count; i++)
		if (plan->list.step[i].kernel == variant - 1)
			return true;
	return !variant;
}

/* Returns the trial's plan; NULL if there is nothing to do. */
static struct plan *make_plan(struct harness *h, const struct trial *t, struct chain *chain,
                              bool only_ask)
{
	struct wish wish = {&h->device, t->variant ? t->variant - 1 : KERNELS, only_ask, false};
	struct problem problem;
	struct plan *plan = NULL;
	uint32_t width, height;

	if (chain_output_size(chain, &t->image, &width, &height, &problem))
		return NULL;
	if (plan_new(h->programs, chain, &t->image, choose_wish, &wish, &plan))
		abort();
	wish.applies |= uses_variant(plan, t->variant);
	if (!wish.applies)
		plan_free(&plan);
	return plan;
}

bool trial_plan(struct harness *h, const struct trial *t, bool only_ask)
{
	struct chain *chain = &trial_chain.chain;
	struct plan *plan;
	bool applies;

	plan = parse_chain(chain, t) ? make_plan(h, t, chain, only_ask) : NULL;
	applies = plan != NULL;
	plan_free(&plan);
	return applies;
}

bool trial_run(struct harness *h, const struct trial *t)
{
	struct chain *chain = &trial_chain.chain;
	struct plan *plan;
	void *in;

	if (!parse_chain(chain, t))
		return false;
	if (t->image.type != PIXEL_F32 && random_below(2)) {
		chain->border_values = 1;
		chain->border_value[0] = random_below(256);
	}
	plan = make_plan(h, t, chain, false);
	if (!plan)
		return false;
	if (!uses_variant(plan, t->variant)) { /* it had to be built first */
		plan_free(&plan);
		programs_wait(h->programs);
		plan = make_plan(h, t, chain, false);
	}
	harness_await(h, plan, TILE_PIXELS);
	in = random_image(&t->image, chain->count > 1 || !group_alpha_is_stable(t->group),
	                  strstr(t->group->chain, "bilateral"));
	if (uses_variant(plan, t->variant))
		try_plan(h, t, plan, in);
	else
		report(t, "its program was not built");
	plan_free(&plan);
	free(in);
	return true;
}

void *trial_make(struct harness *h, const struct trial *t, uint32_t variant, uint32_t tile_rows,
                 bool alone, size_t *size)
{
	struct chain *chain = &trial_chain.chain;
	struct image image = t->image;
	struct problem problem;
	void *in, *out = NULL;
	uint32_t count;

	if (!parse_chain(chain, t))
		return NULL;
	chain->variant = variant;
	if (chain_output_size(chain, &image, &image.width, &image.height, &problem))
		return NULL;
	*size = (size_t)image_size(&image);
	image = t->image;
	in = random_image(&image, false, true);
	count = alone ? chain->count : 1;
	for (uint32_t i = 0; i < count; i++) {
		struct plan *plan;

		if (alone && i)
			memmove(chain->call, chain->call + 1, (count - i) * sizeof *chain->call);
		if (alone)
			chain->count = 1;
		out = g_malloc0((size_t)image_size(&image));
		plan = harness_plan(h, chain, &image, TILE_PIXELS);
		if (harness_filter(h, (enum lane_mode)t->mode, plan, in, tile_rows, out).error)
			abort();
		plan_free(&plan);
		free(in);
		in = out;
	}
	return out;
}

static const struct {
	uint32_t bands, alpha, channels;
} kinds[KINDS] = {
    [PIXELS_GREY] = {1, 0, CHANNELS_ALL},      [PIXELS_TWO] = {2, 0, CHANNELS_ALL},
    [PIXELS_RGB] = {3, 0, CHANNELS_ALL},       [PIXELS_CMYK] = {4, 0, CHANNELS_ALL},
    [PIXELS_GREEN] = {3, 0, CHANNELS_GREEN},   [PIXELS_GREY_ALPHA] = {2, 1, CHANNELS_ALL},
    [PIXELS_RGB_ALPHA] = {4, 1, CHANNELS_ALL}, [PIXELS_RGB_ALPHA_COLOR] = {4, 1, CHANNELS_COLOR},
};

void trial_set_kind(struct trial *t, enum kind kind)
{
	t->image.bands = kinds[kind].bands;
	t->image.alpha = kinds[kind].alpha;
	t->channels = kinds[kind].channels;
}

/* Shapes of results. A trial has a random size of each. */
enum shape_kind {
	SHAPE_POINT,  /* 1 x 1 */
	SHAPE_COLUMN, /* 1 x n */
	SHAPE_ROW,    /* n x 1 */
	SHAPE_SMALL,  /* smaller than a vector or a group */
	SHAPE_VECTOR, /* as wide as some of them, or nearly */
	SHAPE_TALL,   /* has many tiles */
	SHAPE_WIDE,   /* about as wide as a work-item's block, or two */
	SHAPE_LARGE,
	SHAPES
};

static const uint32_t tile_rows[] = {1, 3, 8, 20, 61, 5000};

enum { TILE_ROWS = sizeof tile_rows / sizeof *tile_rows, BLOCK = 4096 };

static uint32_t between(uint32_t least, uint32_t most)
{
	return least + random_below(most - least + 1);
}

/* Sides of results: at random in a range, or as those of vectors. */
static const struct side {
	uint32_t least, most; /* 0: always a vector's */
	bool or_vector;
} sides[SHAPES][2] = {
    [SHAPE_POINT] = {{1, 1, false}, {1, 1, false}},
    [SHAPE_COLUMN] = {{1, 1, false}, {2, 40, true}},
    [SHAPE_ROW] = {{2, 1100, true}, {1, 1, false}},
    [SHAPE_SMALL] = {{2, 15, false}, {2, 15, false}},
    [SHAPE_VECTOR] = {{.or_vector = true}, {2, 40, true}},
    [SHAPE_TALL] = {{2, 40, false}, {130, 700, false}},
    [SHAPE_WIDE] = {{1, 2, false}, {2, 9, false}}, /* the width in blocks */
    [SHAPE_LARGE] = {{50, 260, false}, {50, 180, false}},
};

/* A vector's side is a multiple of 16, or one more or less. */
static uint32_t choose_side(const struct side *side)
{
	if (side->or_vector && (!side->most || random_below(2)))
		return (16u << random_below(5)) + random_below(3) - 1;
	return between(side->least, side->most);
}

static void choose_size(struct trial *t, enum shape_kind shape)
{
	t->image.width = choose_side(&sides[shape][0]);
	t->image.height = choose_side(&sides[shape][1]);
	if (shape == SHAPE_WIDE)
		t->image.width = t->image.width * BLOCK / t->image.bands + between(0, 34) - 17;
}

static bool is_too_large(const struct trial *t, const struct chain *chain)
{
	const struct image *i = &t->image;

	return (double)i->width * i->height * i->bands > options.most ||
	       reference_cost(chain, i, i->width, i->height) > REFERENCE_COST_MOST;
}

/* Halves the side that matters less to the shape, as long as there is one. */
static void bound_size(struct trial *t, const struct chain *chain, enum shape_kind shape)
{
	uint32_t *first = shape == SHAPE_TALL ? &t->image.width : &t->image.height;
	uint32_t *second = shape == SHAPE_TALL ? &t->image.height : &t->image.width;

	while (is_too_large(t, chain) && *first * *second > 1)
		*(*first > 1 ? first : second) /= 2;
}

void trial_circumstances(uint32_t variant, unsigned levels[CIRCUMSTANCES])
{
	const bool bare = variant && kernel_row(variant - 1)->origin == KERNEL_CLASSIC;

	levels[BORDER] = BORDERS;
	levels[SHAPE] = SHAPES;
	levels[ROWS] = TILE_ROWS;
	levels[MODE] = bare ? (unsigned)TRIAL_MODES : (unsigned)LANE_MODES;
}

void trial_set_circumstances(struct trial *t, const uint8_t *levels)
{
	const uint32_t least =
	    t->variant ? variant_rows[t->variant - 1].samples_min / t->image.bands + 1 : 0;
	const enum shape_kind shape = levels[SHAPE];
	struct chain *chain = &trial_chain.chain;
	uint32_t halo_x, halo_y;

	t->mode = options.copy && levels[MODE] == LANE_ZERO_COPY ? LANE_COPY : levels[MODE];
	t->border = levels[BORDER];
	if (t->mode >= (int)LANE_MODES)
		t->border = t->border % 2 ? BORDER_CROP : BORDER_REPLICATE;
	harness_parse(chain, t->group->chain);
	choose_size(t, shape);
	bound_size(t, chain, shape);
	t->tile_rows = tile_rows[levels[ROWS]];
	if (t->tile_rows < 8 && t->image.height > 100)
		t->tile_rows += 40;
	if (t->image.width < least)
		t->image.width += least;
	if (t->border != BORDER_CROP)
		return;
	chain_halo(chain, &halo_x, &halo_y);
	t->image.width += 2 * halo_x;
	t->image.height += 2 * halo_y;
}
