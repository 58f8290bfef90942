#include "device/plan/variant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/plan/half_error.h"
#include "local.h"

enum {
#define NEED(symbol, text) symbol = VARIANT_##symbol,
#include "device/plan/needs.def"
};

const struct variant variant_rows[KERNELS] = {
#define S(...) {__VA_ARGS__},
#define KERNEL(symbol, name, operations, origin, device, types, bands, radius, text, file,         \
               weights, samples, needs, shapes)                                                    \
	[KERNEL_##symbol] = {file, WEIGHTS_##weights, samples, needs, {shapes}, #symbol},
#include "kernels.def"
#undef KERNEL
#undef S
};

uint32_t variant_local_rows(enum kernel kernel, struct shape shape)
{
	return shape.y + (variant_rows[kernel].needs & VARIANT_LINE ? 1u : 0u);
}

struct shape variant_general_shape(const struct device *device, enum kernel kernel)
{
	const struct variant *variant = &variant_rows[kernel];
	struct shape shape = variant->shape[device->type != DEVICE_CPU];
	/* A row, its reach on both sides for the largest radius, and two vectors */
	const uint64_t row =
	    (2 * (uint64_t)kernel_row(kernel)->radius * BANDS_MAX + 64) * sizeof(float);

	while (shape.group_x > 1 &&
	       (shape.group_x > device->group_max || shape.group_x > device->group_sides[0]))
		shape.group_x /= 2;
	if (variant->needs & VARIANT_LOCAL)
		while (shape.y > 1 &&
		       variant_local_rows(kernel, shape) * row > device->local_memory)
			shape.y /= 2;
	return shape;
}

static bool shaped_for(enum kernel kernel, const struct device *device)
{
	const enum kernel_device for_device = kernel_row(kernel)->device;

	return for_device == KERNEL_FOR_ANY ||
	       (for_device == KERNEL_FOR_CPU && device->type == DEVICE_CPU) ||
	       (for_device == KERNEL_FOR_GPU && device->type == DEVICE_GPU) ||
	       (for_device >= KERNEL_FOR_NVIDIA && device->nvidia);
}

/* The maximum number of roundings in a sum of `count` terms in the separable kernel. */
static double separable_roundings(double count)
{
	enum { TERMS = 32 }; /* SEPARABLE_TERMS in separable.cl */

	return fmin(count, TERMS) + count / TERMS;
}

static bool is_linear(const struct operation *op)
{
	return op->kind == OPERATION_MATRIX || op->kind == OPERATION_SEPARABLE;
}

/* Returns true if plain float sums may be off by about 1 in an image of integers: each rounding
 * loses up to 2^-25 of the largest possible sum. Images of floats are judged relative to the
 * magnitudes, so plain sums suffice. weighted: colour is multiplied by alpha and divided by an
 * equally inexact sum. */
static bool needs_compensation(const struct operation *op, enum pixel_type image_type,
                               bool weighted)
{
	double width = 2.0 * op->radius_x + 1, height = 2.0 * op->radius_y + 1;
	double largest = op->gain * pixel_type_rows[image_type].full_scale + fabs(op->offset);
	double roundings = op->kind == OPERATION_MATRIX
	                       ? width + height
	                       : separable_roundings(width) + separable_roundings(height);
	double lost = (weighted ? 2 * (roundings + 3) : roundings + 2) * largest * 0x1p-25;

	return is_linear(op) && image_type != PIXEL_F32 && lost > 0.5;
}

/* True if the window fits the compensated kernel. */
static bool can_compensate(const struct operation *op)
{
	uint32_t max = kernel_row(KERNEL_MATRIX_COMPENSATED)->radius;

	return op->radius_x <= max && op->radius_y <= max;
}

bool variant_weights_by_alpha(const struct operation *op, enum pixel_type image_type)
{
	return op->kind == OPERATION_BILATERAL ||
	       (needs_compensation(op, image_type, true) && can_compensate(op));
}

bool work_is_mean(const struct operation *op)
{
	size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	double row = 0, column = 0;

	if (op->kind != OPERATION_SEPARABLE || op->offset != 0)
		return false;
	for (size_t i = 0; i < width + height; i++) {
		if (op->coefficients[i] < 0)
			return false;
		*(i < width ? &row : &column) += op->coefficients[i];
	}
	return fabs(row - 1) < 1e-9 && fabs(column - 1) < 1e-9;
}

/* Returns true for the mean of a rectangle, even one that something is compared with. */
static bool is_box(const struct operation *op)
{
	const size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;

	for (size_t i = 0; i < width + height; i++)
		if (fabs(op->coefficients[i] * (double)(i < width ? width : height) - 1) > 1e-9)
			return false;
	return op->offset == 0;
}

/* True if a gradient's weights are integers, so small that sums of bytes fit signed 16 bits. */
static bool smooth_is_whole(const struct operation *op)
{
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		if (op->coefficients[i] < 0 || op->coefficients[i] != floor(op->coefficients[i]))
			return false;
		sum += op->coefficients[i];
	}
	return 255 * sum <= INT16_MAX && op->output != GRADIENT_DIRECTION;
}

uint32_t variant_resize_pixels(const struct operation *op, uint32_t bands, uint32_t group_x)
{
	enum { ALIGNED = 3, PIXELS_MIN = 8 };
	const struct resizing *r = &op->across;
	const uint32_t taps = resizing_taps(r);
	const double room = (RESIZE_RING_SAMPLES(group_x) - ALIGNED) / (double)bands;
	const double out = fmin(floor((room - taps - 1) / r->step) + 1,
	                        floor((double)RESIZE_RING_WEIGHTS / RESIZE_RING_STRIDE(taps)));

	return r->step >= 1 && out >= PIXELS_MIN ? (uint32_t)out : 0;
}

static bool has_what_it_needs(uint32_t needs, const struct work *work)
{
	const struct operation *op = work->operation;
	const uint32_t alpha_band = 1u << (work->bands - 1), side = 2 * op->radius_x + 1;

	if (needs & VARIANT_ONLY_3X3 && (op->radius_x != 1 || op->radius_y != 1))
		return false;
	if (needs & VARIANT_MEAN && !work_is_mean(op))
		return false;
	if (needs & VARIANT_BOX && !is_box(op))
		return false;
	if (needs & VARIANT_WHOLE_SMOOTH && !smooth_is_whole(op))
		return false;
	if (needs & VARIANT_MAGNITUDE && op->output != GRADIENT_MAGNITUDE)
		return false;
	if (needs & VARIANT_STRAIGHT && op->curve.exponent != 1)
		return false;
	if (needs & VARIANT_SMALLER && (op->down.step < 1 || op->across.step < 1))
		return false;
	if (needs & (VARIANT_RECTANGLE | VARIANT_MEDIAN) && op->element != ELEMENT_RECTANGLE)
		return false;
	if (needs & VARIANT_MEDIAN && 2 * op->rank + 1 != side * side)
		return false;
	return !(needs & VARIANT_NO_KEEP) || !work->keep ||
	       (work->alpha && work->keep == alpha_band);
}

/* Classic kernels change all bands and support only the standard Sobel weights. Image objects must
 * have room for all pixels that are read at once. */
static bool classic_applies(enum kernel kernel, const struct work *work,
                            const struct device *device)
{
	const struct operation *op = work->operation;
	const uint32_t needs = variant_rows[kernel].needs;
	const uint32_t *bands =
	    needs & VARIANT_TARGET_IMAGE ? device->share_bands : device->image_bands;

	if (work->keep || work->alpha)
		return false;
	if (needs & VARIANT_IMAGE &&
	    (!(bands[work->type] >> work->bands & 1) || work->read_width > device->image_width ||
	     work->read_height > device->image_height))
		return false;
	return op->kind != OPERATION_GRADIENT ||
	       (op->output == GRADIENT_MAGNITUDE && op->coefficients[0] == 1 &&
	        op->coefficients[1] == 2);
}

/* True if a kernel cannot be the fastest: a large separable window as a matrix, running sums of a
 * small one, or compensated sums without need. */
static bool is_hopeless(enum kernel kernel, const struct work *work)
{
	const struct operation *op = work->operation;
	double width = 2.0 * op->radius_x + 1, height = 2.0 * op->radius_y + 1;

	if (kernel == KERNEL_SEPARABLE_SUMS)
		return width + height < 18;
	if (kernel == KERNEL_MATRIX_COMPENSATED)
		return !needs_compensation(op, work->image_type, work->alpha);
	return op->kind == OPERATION_SEPARABLE &&
	       kernel_row(kernel)->operations & 1u << OPERATION_MATRIX &&
	       width * height > 4 * (width + height);
}

/* The most that NVIDIA's compiler adds to local memory: the alignment of its largest type. */
enum { COMPILER_ADDS = 16 };

uint64_t variant_local_bytes(enum kernel kernel, const struct shape *shape, enum pixel_type type,
                             uint32_t radius_x, uint32_t radius_y, uint32_t bands)
{
	const uint64_t reach = (uint64_t)radius_x * bands, group_x = shape->group_x;
	const uint64_t rows = (uint64_t)shape->group_y * shape->y;
	const uint64_t samples = type == PIXEL_U8 ? SAMPLES_WORDS(group_x) : 0;
	const uint64_t words[KERNELS] = {
	    [KERNEL_SEPARABLE_LOCAL] = rows * SEPARABLE_LOCAL_STRIDE(group_x, shape->x, reach),
	    [KERNEL_EXTREME_LOCAL] =
	        rows * EXTREME_LOCAL_STRIDE(group_x, shape->x, reach, pixel_type_rows[type].size),
	    [KERNEL_THRESHOLD_WIDE] = samples,
	    [KERNEL_CURVE_WIDE] = samples,
	    [KERNEL_LUT_WIDE] = samples,
	    [KERNEL_RANK_COUNTS] = RANK_COUNTS_WORDS(group_x, radius_x),
	    [KERNEL_SEPARABLE_MMA] = SEPARABLE_MMA_ROW(reach) +
	                             SEPARABLE_MMA_COLUMN(reach, radius_y) +
	                             SEPARABLE_MMA_SCRATCH(group_x * shape->group_y, radius_y),
	    [KERNEL_BILATERAL_TABLE] = BILATERAL_TABLE_WORDS,
	    [KERNEL_RESIZE_RING] = RESIZE_RING_WORDS(group_x),
	    [KERNEL_PIXELATE] = 64 * BANDS_MAX, /* PIXELATE_GROUP in pixelate.cl */
	    [KERNEL_CONV_LOCAL_SINGLE] = CONV_LOCAL_FLOATS,
	    [KERNEL_CONV_LOCAL_COOP] = CONV_LOCAL_FLOATS,
	    [KERNEL_SEP_ONE_PASS] = SEP_ONE_PASS_FLOATS(reach, (uint64_t)radius_y),
	    [KERNEL_SEP_TILED] = SEP_TILED_FLOATS(reach, (uint64_t)radius_y),
	};

	return words[kernel] ? 4 * words[kernel] + COMPILER_ADDS : 0;
}

/* Returns true if the device supports such large groups and has the local memory for them, and a
 * kernel can be compiled in this shape: see gpu/window.cl. */
static bool shape_fits(enum kernel kernel, const struct shape *shape, const struct work *work,
                       const struct device *device)
{
	const uint64_t bytes = shape->x * pixel_type_rows[work->type].size;
	const bool windows = kernel_row(kernel)->device >= KERNEL_FOR_GPU;
	const struct operation *op = work->operation;

	if ((size_t)shape->group_x * shape->group_y > device->group_max ||
	    shape->group_x > device->group_sides[0] || shape->group_y > device->group_sides[1] ||
	    variant_local_bytes(kernel, shape, work->type, op->radius_x, op->radius_y,
	                        work->bands) > device->local_memory)
		return false;
	if (kernel == KERNEL_SEPARABLE_LOCAL)
		return shape->x % (work->type == PIXEL_U8 ? 8 : 4) == 0;
	if (kernel == KERNEL_RANK_COUNTS)
		return true;
	if (kernel == KERNEL_RESIZE_RING)
		return RESIZE_RING_TOGETHER * op->down.step + resizing_taps(&op->down) <
		           RESIZE_RING_ROWS &&
		       variant_resize_pixels(op, work->bands, shape->group_x) > 0;
	if (kernel == KERNEL_BILATERAL_WIDE && shape->x % work->bands)
		return false;
	if (kernel == KERNEL_SEPARABLE_MMA || kernel == KERNEL_MATRIX_FIXED ||
	    kernel == KERNEL_EXTREME_LOCAL)
		return (uint64_t)op->radius_x * work->bands <= 64;
	return !windows || bytes % 8 == 0;
}

uint32_t variant_shapes(enum kernel kernel, const struct work *work, const struct device *device,
                        struct shape shapes[SHAPES_MAX])
{
	const struct shape *shape = variant_rows[kernel].shape;
	uint32_t count = 0;

	if (variant_is_general(kernel)) {
		shapes[0] = variant_general_shape(device, kernel);
		return 1;
	}
	for (int i = 0; i < SHAPES_MAX && shape[i].x; i++)
		if (shape_fits(kernel, &shape[i], work, device))
			shapes[count++] = shape[i];
	return count;
}

bool variant_applies(enum kernel kernel, const struct work *work, const struct device *device,
                     bool asked_for)
{
	const struct kernel_row *row = kernel_row(kernel);
	const struct variant *variant = &variant_rows[kernel];
	const struct operation *op = work->operation;
	struct shape shapes[SHAPES_MAX];

	if (!(row->operations & 1u << op->kind) || !(row->types & 1u << work->type) ||
	    !(row->bands & 1u << work->bands) || op->radius_x > row->radius ||
	    op->radius_y > row->radius || work->width * work->bands < variant->samples_min)
		return false;
	if (row->origin == KERNEL_CLASSIC && !classic_applies(kernel, work, device))
		return false;
	if (work->alpha && is_linear(op) && kernel != KERNEL_MATRIX_COMPENSATED)
		return false;
	if (!asked_for && (row->origin == KERNEL_CLASSIC || !shaped_for(kernel, device) ||
	                   is_hopeless(kernel, work)))
		return false;
	if ((row->device == KERNEL_FOR_ONLY_NVIDIA && !device->nvidia) ||
	    (!shaped_for(kernel, device) && (!device->in_test || row->device == KERNEL_FOR_CPU)) ||
	    !variant_shapes(kernel, work, device, shapes) ||
	    !has_what_it_needs(variant->needs, work))
		return false;
	/* Half floats have an error bound of their own; plain float sums suffice for most
	 * coefficients, compensated sums for all. */
	if (variant->needs & VARIANT_EXACT)
		return half_error_bound(kernel, op) < 1;
	return (variant->weights != WEIGHTS_PADDED && variant->weights != WEIGHTS_PLAIN) ||
	       !needs_compensation(op, work->image_type, work->alpha) || !can_compensate(op);
}

/* The first kernel of an origin that applies, or KERNELS. */
static enum kernel first_kernel(enum kernel_origin origin, const struct device *device,
                                const struct work *work)
{
	enum kernel k = 0;

	while (k < KERNELS &&
	       (kernel_row(k)->origin != origin || !variant_applies(k, work, device, false)))
		k++;
	return k;
}

void variant_choose_by_table(const struct device *device, const struct work *work,
                             enum kernel *kernel, struct shape *shape)
{
	struct shape shapes[SHAPES_MAX];
	enum kernel k = first_kernel(KERNEL_SPECIAL, device, work);

	if (k == KERNELS)
		k = variant_general_kernel(device, work);
	if (k == KERNELS)
		return;
	*kernel = k;
	variant_shapes(k, work, device, shapes);
	*shape = shapes[0];
}

enum kernel variant_general_kernel(const struct device *device, const struct work *work)
{
	return first_kernel(KERNEL_GENERAL, device, work);
}

/* Appends a requirement to the list. */
static void add_need(char *text, size_t size, const char *need)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", text[used - 1] == ')' ? ", which needs " : ", ",
	         need);
}

void variant_describe(enum kernel kernel, char *text, size_t size)
{
	static const char *const texts[] = {
#define NEED(symbol, text) text,
#include "device/plan/needs.def"
	};
	const struct kernel_row *row = kernel_row(kernel);
	const struct variant *variant = &variant_rows[kernel];
	uint32_t group = UINT32_MAX; /* work-items of the smallest */
	char rows[32];

	for (int i = 0; i < SHAPES_MAX && variant->shape[i].x; i++) {
		uint32_t items = (uint32_t)variant->shape[i].group_x * variant->shape[i].group_y;

		group = items < group ? items : group;
	}
	snprintf(text, size, "%s (%s)", row->name, row->text);
	if (row->device == KERNEL_FOR_ONLY_NVIDIA)
		add_need(text, size, "an NVIDIA GPU");
	if (row->types == 1u << PIXEL_U8)
		add_need(text, size, "bytes");
	if (variant->samples_min) {
		snprintf(rows, sizeof rows, "rows of %u samples", variant->samples_min);
		add_need(text, size, rows);
	}
	if (group > 1) {
		snprintf(rows, sizeof rows, "groups of %u work-items", group);
		add_need(text, size, rows);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (variant->needs >> i & 1 && texts[i])
			add_need(text, size, texts[i]);
	if (row->origin == KERNEL_CLASSIC && row->operations & 1u << OPERATION_GRADIENT)
		add_need(text, size, "sobel's magnitude");
	if (row->operations & (1u << OPERATION_LOCAL_THRESHOLD | 1u << OPERATION_UNSHARP))
		add_need(text, size, "colours not alpha-weighted, no lattice");
	if (row->origin == KERNEL_CLASSIC)
		add_need(text, size, "all bands, not alpha-weighted");
}
