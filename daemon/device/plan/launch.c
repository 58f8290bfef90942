/* Kernel launches. A kernel takes its buffers, each with the byte offset of the region, and then
 * the operation's parameters. If setting an argument fails, the kernel is not launched.
 *
 * A kernel that reads an image object gets a copy of the pixels in its reach, and what one writes
 * to an image is copied to the target, on the same queue; unless the views have images. */
#include "device/plan/launch.h"

#include <math.h>

#include "device/plan/region.h"

enum {
	BLOCK_MIN = 32, /* see block_span() in common.cl */
	EXTEND_PIXELS = 256,
	VECTOR = 16,
	HELPER_TERMS = 8, /* multiply-adds per sample, roughly */
};

/* Multiply-adds in a piece of a launch, for each thread that it runs on: the most, about a
 * millisecond, and the fewest that are worth another thread. */
static const double piece_max = 4e7, piece_min = 5e5;

/* The arguments of a kernel, set in order, for a tile and its views. */
struct arguments {
	cl_kernel kernel;
	const struct tile *tile;
	const struct view *views;
	cl_uint next;
	cl_int code;
};

static void set(struct arguments *a, size_t size, const void *value)
{
	if (!a->code)
		a->code = clSetKernelArg(a->kernel, a->next++, size, value);
}

static void set_u32(struct arguments *a, uint32_t value)
{
	set(a, sizeof value, &value);
}

static void set_float(struct arguments *a, float value)
{
	set(a, sizeof value, &value);
}

/* The region of a tile that a step writes. */
struct region {
	uint32_t width, rows; /* pixels */
	uint32_t samples;     /* per row */
	uint32_t blocks;      /* work-items per row */
};

static bool needs(const struct step *step, uint32_t need)
{
	return variant_get(step->kernel)->needs & need;
}

/* Samples in the block of a work-item. The block and its reach must fit into local memory. */
static uint32_t block_samples(const struct step *step, const struct device *device)
{
	uint64_t room, reach;

	if (!needs(step, VARIANT_LOCAL))
		return step->shape.x;
	room = device->local_memory / sizeof(float) / variant_local_rows(step->kernel, step->shape);
	reach = 2 * (uint64_t)step->radius_x * step->bands + 2 * VECTOR;
	if (room >= reach + step->shape.x)
		return step->shape.x;
	return room < reach + BLOCK_MIN ? BLOCK_MIN : (uint32_t)(room - reach);
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
	return (a + b - 1) / b;
}

static bool is_classic(const struct step *step)
{
	return kernel_row(step->kernel)->origin == KERNEL_CLASSIC;
}

/* True for pixelate, whose work-items make blocks of the image. */
static bool has_blocks(const struct step *step)
{
	return kernel_row(step->kernel)->operations & 1u << OPERATION_PIXELATE;
}

/* Width and height of the blocks of pixelate. */
static uint32_t block_side(const struct step *step)
{
	return step->radius_x + 1;
}

/* Work-items that share a block of pixelate: a power of two, no more than the block is wide. */
static uint32_t block_lanes(const struct step *step)
{
	uint32_t lanes = 1;

	while (lanes * 2 <= min_u32(step->shape.group_x, block_side(step)))
		lanes *= 2;
	return lanes;
}

/* Blocks of pixelate, side by side, that a work-item makes. */
static uint32_t block_run(const struct step *step)
{
	return max_u32(1, step->shape.x / (block_side(step) * step->bands));
}

/* At most so many blocks of pixelate lie in `length` pixels: one may be cut at each end, and one
 * wherever the image ends. image: its size, 0 if the step is of no plan. */
static uint32_t blocks_in(const struct step *step, uint32_t length, uint32_t image)
{
	return divide_up(length, block_side(step)) + 3 + (image ? length / image : 0);
}

static struct region find_region(const struct step *step, const struct device *device,
                                 const struct tile *tile)
{
	struct region region = {
	    .width = region_columns(step, tile),
	    .rows = region_rows(step, tile),
	};
	uint32_t block = block_samples(step, device);

	region.samples = region.width * step->bands;
	if (step->kernel == KERNEL_EXTEND)
		region.blocks = region.width / EXTEND_PIXELS + 1;
	else if (has_blocks(step))
		region.blocks =
		    divide_up(blocks_in(step, region.width, step->image_width), block_run(step)) *
		    block_lanes(step);
	else if (needs(step, VARIANT_PIXELS))
		region.blocks = divide_up(region.width, block);
	else if (kernel_row(step->kernel)->origin == KERNEL_GENERAL)
		region.blocks = max_u32(
		    1, min_u32(divide_up(region.samples, block), region.samples / BLOCK_MIN));
	else
		region.blocks = divide_up(region.samples, block);
	return region;
}

/* Sets a view's buffer, offset and pitch, from column x and row y on, relative to the view's
 * origin. */
static void set_place(struct arguments *a, const struct view *view, int64_t x, int64_t y,
                      uint64_t pixel)
{
	cl_ulong offset = (cl_ulong)((int64_t)view->origin + y * view->pitch + x * (int64_t)pixel);

	set(a, sizeof view->buffer, &view->buffer);
	set(a, sizeof offset, &offset);
	set_u32(a, view->pitch);
}

/* Sets a view, from the first pixel of the step's region on. */
static void set_view(struct arguments *a, const struct view *view, const struct step *step,
                     enum pixel_type type)
{
	set_place(a, view, -(int64_t)step->expand_x, -(int64_t)step->expand_y,
	          step->bands * pixel_type_size(type));
}

/* Sets where in the image a step works: PLACE_ARGUMENTS in common.cl. The image is at least what
 * the tile is of: a step that no plan has made knows no image. */
static void set_image_place(struct arguments *a, const struct step *step, const struct stack *stack)
{
	const struct tile *tile = a->tile;
	cl_int x0 = (cl_int)tile->x0 - (cl_int)step->expand_x;
	cl_int16 y0[2] = {0};

	_Static_assert(sizeof y0 == STACK_MAX * sizeof(cl_int), "one for each tile");
	for (uint32_t i = 0; i < stack->count; i++)
		y0[i / 16].s[i % 16] = (cl_int)stack->y0[i] - (cl_int)step->expand_y;
	set(a, sizeof x0, &x0);
	set(a, sizeof *y0, &y0[0]);
	set(a, sizeof *y0, &y0[1]);
	set_u32(a, stack->distance);
	set_u32(a, max_u32(step->image_width, tile->x0 + tile->width));
	set_u32(a, max_u32(step->image_height, stack->y0[0] + stack->height));
}

/* Sets the source of a step that shrinks or grows, from the first pixel or point that it reads
 * on. */
static void set_source_of_points(struct arguments *a, const struct step *step)
{
	const struct lattice *l = &step->points.lattice;
	const struct tile *tile = a->tile;
	const int64_t stride = l->stride, half = l->half;
	int64_t x = -(int64_t)step->expand_x, y = -(int64_t)step->expand_y;

	if (step->kernel == KERNEL_SHRINK_ACROSS)
		x = (region_points_across(step, tile).first + x) * stride - half - tile->x0;
	else if (step->kernel == KERNEL_SHRINK_DOWN)
		y = (region_points_down(step, tile).first + y) * stride - half - tile->y0;
	else if (step->kernel == KERNEL_GROW_ACROSS)
		x = 0;
	else
		y = 0;
	set_place(a, &a->views[step->src], x, y, step->bands * pixel_type_size(step->src_type));
}

static void set_extend(struct arguments *a, const struct step *step, const struct stack *stack,
                       const struct region *region)
{
	set_view(a, &a->views[step->dst], step, step->dst_type);
	set_u32(a, region->width);
	set_u32(a, region->rows);
	set_u32(a, step->bands);
	set_u32(a, region->blocks);
	set_image_place(a, step, stack);
	set_u32(a, step->border.mode);
	set(a, sizeof step->border.pixel, step->border.pixel);
}

/* Bytes of local memory that a work-group of a separable kernel needs for its block. */
static size_t scratch_size(const struct step *step, const struct region *region)
{
	/* block_span() rounds both ends, so a block can be 15 samples larger than its share. */
	size_t block = divide_up(region->samples, region->blocks) + VECTOR;
	size_t reach = 2 * (size_t)step->radius_x * step->bands;

	return (block + reach + VECTOR - 1) / VECTOR * VECTOR *
	       variant_local_rows(step->kernel, step->shape) * sizeof(float);
}

static void set_weights(struct arguments *a, const struct step *step)
{
	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->radius_x);
	set_u32(a, step->radius_y);
	set_float(a, (float)step->offset);
	if (step->kernel == KERNEL_MATRIX_COMPENSATED)
		set_float(a, (float)(step->offset - (float)step->offset));
	set_u32(a, step->keep);
	if (step->kernel == KERNEL_MATRIX_COMPENSATED)
		set_u32(a, step->alpha);
}

/* Of a blur and the comparison with it, in one kernel. */
static void set_comparison(struct arguments *a, const struct step *step)
{
	set_weights(a, step);
	set_float(a, step->amount);
	set_float(a, step->threshold);
}

static void set_gradient(struct arguments *a, const struct step *step)
{
	for (int i = 0; i < 3; i++)
		set_float(a, step->smooth[i]);
	set_u32(a, step->output);
	set_float(a, step->scale);
	set_float(a, (float)step->offset);
	set_u32(a, step->keep);
}

static void set_bilateral(struct arguments *a, const struct step *step)
{
	set_u32(a, step->radius_x);
	set_float(a, step->space);
	set_float(a, step->range);
	set_u32(a, step->alpha);
	set_u32(a, step->keep);
}

static void set_curve(struct arguments *a, const struct step *step)
{
	const struct curve *c = &step->curve;
	cl_float4 gain, bias;

	for (int b = 0; b < BANDS_MAX; b++) {
		gain.s[b] = (float)c->gain[b];
		bias.s[b] = (float)c->bias[b];
	}
	set(a, sizeof gain, &gain);
	set(a, sizeof bias, &bias);
	set_float(a, (float)c->low);
	set_float(a, (float)c->high);
	set_float(a, (float)c->exponent);
	set_float(a, (float)c->scale);
	set_float(a, (float)c->shift);
	set_u32(a, step->by_band);
	set_u32(a, step->keep);
}

static void set_lut(struct arguments *a, const struct step *step)
{
	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->tables);
	set_u32(a, step->entries);
	set_float(a, step->places);
	set_u32(a, step->keep);
}

static void set_mix(struct arguments *a, const struct step *step)
{
	for (int i = 0; i <= BANDS_MAX; i++)
		set(a, sizeof step->mix[i], &step->mix[i]);
	set_float(a, step->full);
	set_u32(a, step->alpha);
	set_u32(a, step->keep);
}

static void set_pixelate(struct arguments *a, const struct step *step)
{
	set_u32(a, block_side(step));
	set_u32(a, block_lanes(step));
	set_u32(a, block_run(step));
	set_u32(a, step->keep);
}

static void set_unpremultiply(struct arguments *a, const struct step *step)
{
	set_view(a, &a->views[step->original], step, step->original_type);
	set_float(a, (float)step->offset);
	set_u32(a, step->keep);
}

static void set_threshold_local(struct arguments *a, const struct step *step)
{
	set_view(a, &a->views[step->original], step, step->original_type);
	set_float(a, step->threshold);
	set_float(a, step->amount);
	set_u32(a, step->alpha);
	set_u32(a, step->keep);
}

static void set_unsharp(struct arguments *a, const struct step *step)
{
	set_view(a, &a->views[step->original], step, step->original_type);
	set_float(a, step->amount);
	set_float(a, step->threshold);
	set_u32(a, step->alpha);
	set_u32(a, step->keep);
}

static void set_extreme(struct arguments *a, const struct step *step)
{
	set_u32(a, step->radius_x);
	set_u32(a, step->element);
	set_u32(a, step->largest);
	set_u32(a, step->keep);
}

static void set_threshold(struct arguments *a, const struct step *step)
{
	set(a, sizeof step->limits, &step->limits);
	set_float(a, step->amount);
	set_u32(a, step->by_band);
	set_u32(a, step->keep);
}

static void set_rank(struct arguments *a, const struct step *step)
{
	set_u32(a, step->radius_x);
	set_u32(a, step->element);
	set_u32(a, step->rank);
	set_u32(a, step->keep);
}

/* The limits are numbers of what the kernel compares: squares, for integers. */
static void set_canny(struct arguments *a, const struct step *step)
{
	const double limits[] = {step->low, step->high};

	for (int i = 0; i < 2; i++) {
		const cl_long square = (cl_long)floor(limits[i] * limits[i]);

		if (step->program == PIXEL_U16)
			set(a, sizeof square, &square);
		else
			set_float(a, step->program == PIXEL_U8 ? (float)square : (float)limits[i]);
	}
	set_float(a, step->full);
	set_u32(a, step->keep);
}

/* What is missing of the plane is on both sides alike. */
static void set_edges(struct arguments *a, const struct step *step)
{
	const cl_int width = (cl_int)step->plane_width, height = (cl_int)step->plane_height;
	const cl_int x = ((cl_int)step->image_width - width) / 2;
	const cl_int y = ((cl_int)step->image_height - height) / 2;

	set(a, sizeof step->weights, &step->weights);
	set_u32(a, 2 * divide_up(step->plane_width, 64));
	set(a, sizeof width, &width);
	set(a, sizeof height, &height);
	set(a, sizeof x, &x);
	set(a, sizeof y, &y);
	set_float(a, step->full);
	set_u32(a, step->keep);
}

static void set_subtract(struct arguments *a, const struct step *step)
{
	set_view(a, &a->views[step->original], step, step->original_type);
	set_u32(a, step->reverse);
	set_u32(a, step->keep);
}

static void set_blend(struct arguments *a, const struct step *step)
{
	set_view(a, &a->views[step->original], step, step->original_type);
	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->shapes);
	set_u32(a, step->feather);
	set_u32(a, step->invert);
	set_u32(a, step->alpha);
}

static bool is_shrink(const struct step *step)
{
	return step->kernel == KERNEL_SHRINK_DOWN || step->kernel == KERNEL_SHRINK_ACROSS;
}

static bool is_grow(const struct step *step)
{
	return step->kernel == KERNEL_GROW_DOWN || step->kernel == KERNEL_GROW_ACROSS;
}

static void set_shrink(struct arguments *a, const struct step *step)
{
	const struct lattice *l = &step->points.lattice;

	set(a, sizeof step->weights, &step->weights);
	set_u32(a, 2 * l->half + 1);
	set_u32(a, l->stride);
	if (step->kernel == KERNEL_SHRINK_ACROSS)
		return;
	set_u32(a, l->taps);
	set_u32(a, step->shape.y);
}

static void set_grow(struct arguments *a, const struct step *step)
{
	bool across = step->kernel == KERNEL_GROW_ACROSS;

	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->points.lattice.stride);
	set_u32(a, step->points.lattice.taps);
	set_u32(a,
	        (across ? region_points_across(step, a->tile) : region_points_down(step, a->tile))
	            .phase);
	if (across)
		return;
	set_u32(a, step->shape.y);
	set_view(a, &a->views[step->original], step, step->original_type);
	set_u32(a, step->keep);
}

static void set_premultiply(struct arguments *a, const struct step *step)
{
	set_u32(a, step->alpha);
}

static void set_ycc(struct arguments *a, const struct step *step)
{
	set_float(a, (float)step->offset);
}

/* Sets the arguments that a step has beyond its regions. */
typedef void setter(struct arguments *a, const struct step *step);

/* All kernels of an operation take the same arguments. NULL: the operation runs as other
 * kernels. */
static setter *const of_operation[] = {
    [OPERATION_SEPARABLE] = set_weights,
    [OPERATION_MATRIX] = set_weights,
    [OPERATION_GRADIENT] = set_gradient,
    [OPERATION_BILATERAL] = set_bilateral,
    [OPERATION_UNSHARP] = set_comparison,
    [OPERATION_DOG] = set_weights,
    [OPERATION_EXTREME] = set_extreme,
    [OPERATION_MORPHOLOGY] = NULL,
    [OPERATION_PIXELATE] = set_pixelate,
    [OPERATION_CURVE] = set_curve,
    [OPERATION_RANK] = set_rank,
    [OPERATION_THRESHOLD] = set_threshold,
    [OPERATION_LOCAL_THRESHOLD] = set_comparison,
    [OPERATION_LUT] = set_lut,
    [OPERATION_MIX] = set_mix,
    [OPERATION_CANNY] = set_canny,
    [OPERATION_EDGES] = set_edges,
};
_Static_assert(sizeof of_operation / sizeof *of_operation == OPERATIONS, "each has its place");

static setter *const of_helper[KERNELS] = {
    [KERNEL_PREMULTIPLY] = set_premultiply,
    [KERNEL_UNPREMULTIPLY] = set_unpremultiply,
    [KERNEL_TO_YCC] = set_ycc,
    [KERNEL_FROM_YCC] = set_ycc,
    [KERNEL_UNSHARP] = set_unsharp,
    [KERNEL_THRESHOLD_LOCAL] = set_threshold_local,
    [KERNEL_BLEND] = set_blend,
    [KERNEL_SUBTRACT] = set_subtract,
    [KERNEL_SHRINK_DOWN] = set_shrink,
    [KERNEL_SHRINK_ACROSS] = set_shrink,
    [KERNEL_GROW_DOWN] = set_grow,
    [KERNEL_GROW_ACROSS] = set_grow,
};

static setter *setter_of(enum kernel kernel)
{
	uint32_t operations = kernel_row(kernel)->operations;

	return operations ? of_operation[__builtin_ctz(operations)] : of_helper[kernel];
}

/* The pixels that a classic kernel may read, relative to the first pixel of its region. */
static cl_int4 find_reach(const struct step *step, const struct region *region)
{
	cl_int4 reach = {{-(cl_int)step->radius_x, -(cl_int)step->radius_y,
	                  (cl_int)(region->width - 1 + step->radius_x),
	                  (cl_int)(region->rows - 1 + step->radius_y)}};

	return step->reach ? *step->reach : reach;
}

/* Rows of pixels in a buffer. */
struct rows {
	cl_mem buffer;
	size_t first, pitch; /* bytes */
};

/* Copies rows of so many bytes. */
static cl_int copy_rows(cl_command_queue queue, const struct rows *from, const struct rows *to,
                        size_t row, size_t count, cl_event *event)
{
	const size_t source[3] = {from->first % from->pitch, from->first / from->pitch, 0};
	const size_t target[3] = {to->first % to->pitch, to->first / to->pitch, 0};
	const size_t size[3] = {row, count, 1};
	cl_int code = CL_SUCCESS;

	if (source[0] + row <= from->pitch && target[0] + row <= to->pitch)
		return clEnqueueCopyBufferRect(queue, from->buffer, to->buffer, source, target,
		                               size, from->pitch, 0, to->pitch, 0, 0, NULL, event);
	for (size_t y = 0; !code && y < count; y++) /* a row may exceed the pitch */
		code = clEnqueueCopyBuffer(queue, from->buffer, to->buffer,
		                           from->first + y * from->pitch, to->first + y * to->pitch,
		                           row, 0, NULL, y + 1 == count ? event : NULL);
	return code;
}

/* The images of a launch, and a packed buffer on the way from or to each that it makes. */
struct images {
	cl_mem source, target, packed_source, packed_target;
	bool owned[2]; /* source, target */
};

static void images_fini(struct images *images)
{
	if (images->owned[0])
		object_release(OBJECT_IMAGE, images->source);
	if (images->owned[1])
		object_release(OBJECT_IMAGE, images->target);
	object_release(OBJECT_IMAGE, images->packed_source);
	object_release(OBJECT_IMAGE, images->packed_target);
}

/* Makes an image object, of which the driver reads integers as such or as shares of full scale, and
 * a packed buffer of its size. */
static cl_int make_image(const struct step *step, enum pixel_type type, size_t width, size_t height,
                         const struct device *device, cl_mem *image, cl_mem *packed)
{
	const cl_image_format format =
	    device_image_format(step->bands, type, needs(step, VARIANT_TARGET_IMAGE));
	const cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
	const size_t pixel = step->bands * pixel_type_size(type);
	cl_int code;

	*packed = object_add(OBJECT_IMAGE, clCreateBuffer(device->context, CL_MEM_READ_WRITE,
	                                                  width * height * pixel, NULL, &code));
	if (!code)
		*image = object_add(OBJECT_IMAGE, clCreateImage(device->context, CL_MEM_READ_WRITE,
		                                                &format, &desc, NULL, &code));
	return code;
}

/* Makes an image of the pixels in reach. */
static cl_int fill_source(const struct step *step, const struct view *src, const cl_int4 *reach,
                          const struct device *device, cl_command_queue queue,
                          struct images *images)
{
	const size_t pixel = step->bands * pixel_type_size(step->src_type);
	const size_t zero[3] = {0, 0, 0}, size[3] = {(size_t)(reach->s[2] - reach->s[0]) + 1,
	                                             (size_t)(reach->s[3] - reach->s[1]) + 1, 1};
	const int64_t first = (int64_t)src->origin +
	                      (reach->s[1] - (int64_t)step->expand_y) * src->pitch +
	                      (reach->s[0] - (int64_t)step->expand_x) * (int64_t)pixel;
	cl_int code = make_image(step, step->src_type, size[0], size[1], device, &images->source,
	                         &images->packed_source);
	const struct rows from = {src->buffer, (size_t)first, src->pitch},
	                  to = {images->packed_source, 0, size[0] * pixel};

	images->owned[0] = images->source != NULL;
	if (!code)
		code = copy_rows(queue, &from, &to, to.pitch, size[1], NULL);
	if (!code)
		code = clEnqueueCopyBufferToImage(queue, images->packed_source, images->source, 0,
		                                  zero, size, 0, NULL, NULL);
	return code;
}

/* Sets the source as an image object. */
static void set_source_image(struct arguments *a, const struct step *step, const struct view *src,
                             const cl_int4 *reach, const struct device *device,
                             cl_command_queue queue, struct images *images)
{
	const cl_int origin[2] = {-reach->s[0], -reach->s[1]};

	images->source = src->image;
	if (!a->code && !images->source)
		a->code = fill_source(step, src, reach, device, queue, images);
	set(a, sizeof images->source, &images->source);
	set(a, sizeof origin, origin);
}

/* Bytes from the start of a view's buffer to the first pixel of the region that a step writes. */
static size_t target_offset(const struct step *step, const struct view *dst)
{
	const size_t pixel = step->bands * pixel_type_size(step->dst_type);

	return (size_t)dst->origin - (size_t)step->expand_y * dst->pitch - step->expand_x * pixel;
}

/* Sets the target as an image object: the view's, or one that holds just the region. */
static void set_target_image(struct arguments *a, const struct step *step, const struct view *dst,
                             const struct region *region, const struct device *device,
                             struct images *images)
{
	const size_t pixel = step->bands * pixel_type_size(step->dst_type);
	const size_t offset = dst->image ? target_offset(step, dst) : 0;
	const cl_int place[2] = {(cl_int)(offset % dst->pitch / pixel),
	                         (cl_int)(offset / dst->pitch)};

	images->target = dst->image;
	if (!a->code && !images->target) {
		a->code = make_image(step, step->dst_type, region->width, region->rows, device,
		                     &images->target, &images->packed_target);
		images->owned[1] = images->target != NULL;
	}
	set(a, sizeof images->target, &images->target);
	set(a, sizeof place, place);
}

/* Work-items across and down, before rounding up to whole groups. */
static void find_items(const struct step *step, const struct region *region, size_t items[2])
{
	items[0] = region->blocks;
	items[1] = divide_up(region->rows, step->shape.y);
	if (has_blocks(step))
		items[1] = blocks_in(step, region->rows, step->image_height);
	if (step->kernel != KERNEL_SEP_TWO_PASS)
		return;
	items[0] = step->pass ? region->rows : region->samples;
	items[1] = step->pass ? region->samples : region->rows + 2 * step->radius_y;
}

/* Multiply-adds of a step. If its kernel does several operations, the largest number. */
static double step_work(const struct step *step, const struct region *region)
{
	const uint32_t operations = kernel_row(step->kernel)->operations;
	double terms = operations ? 0 : HELPER_TERMS;

	for (enum operation_kind kind = 0; kind < OPERATIONS; kind++)
		if (operations >> kind & 1)
			terms = fmax(terms, operation_terms(kind, step->radius_x, step->radius_y));
	return terms * region->samples * region->rows;
}

/* True if a launch can be split. Kernels for GPUs and classic kernels use group numbers, which
 * start at 0 in each piece, so theirs cannot. */
static bool has_pieces(const struct step *step, const struct device *device)
{
	return device->type == DEVICE_CPU && !is_classic(step) &&
	       !needs(step, VARIANT_IMAGE | VARIANT_TARGET_IMAGE) &&
	       kernel_row(step->kernel)->device <= KERNEL_FOR_CPU;
}

/* Chooses how many pieces there are, across and down. Each has at least one group for each thread
 * that a launch runs on, so that none is idle. Tests cut as much as possible. */
static void cut(const struct region *region, uint32_t threads, struct launch *l)
{
	const struct device *device = l->device;
	const uint32_t own = device->serial || device->in_test ? 1 : max_u32(device->units, 1);
	const double work = step_work(&l->step, region) / own;
	const double spread = device->serial ? fmin(work / piece_min, threads) : 0;
	const double wanted = fmax(work / piece_max, spread);
	size_t count = l->groups[0] * l->groups[1] / own;

	if ((double)count > wanted && !device->in_test)
		count = (size_t)wanted;
	if (spread >= threads) /* so many for each */
		count = (count + threads - 1) / threads * threads;
	if (!count)
		count = 1;
	l->pieces[1] = count < l->groups[1] ? count : l->groups[1];
	l->pieces[0] = count / l->pieces[1] < l->groups[0] ? count / l->pieces[1] : l->groups[0];
}

static void count_groups(const struct step *step, const struct region *region, size_t groups[2])
{
	const size_t local[2] = {step->shape.group_x, step->shape.group_y};
	size_t items[2];

	find_items(step, region, items);
	for (int i = 0; i < 2; i++)
		groups[i] = (items[i] + local[i] - 1) / local[i];
}

/* The work-items of a piece. */
static void find_piece(const struct step *step, const size_t groups[2], const size_t pieces[2],
                       uint32_t piece, size_t offset[2], size_t global[2])
{
	const size_t local[2] = {step->shape.group_x, step->shape.group_y};
	const size_t place[2] = {piece % pieces[0], piece / pieces[0]};

	for (int i = 0; i < 2; i++) {
		offset[i] = groups[i] * place[i] / pieces[i] * local[i];
		global[i] = groups[i] * (place[i] + 1) / pieces[i] * local[i] - offset[i];
	}
}

/* Enqueues a piece for so many tiles. Kernels use global numbers, which are the same in a piece as
 * in the whole. On a serial device they do not all begin at 0: see may_run() in pool.c. */
static cl_int enqueue(const struct step *step, const struct device *device, const size_t groups[2],
                      const size_t pieces[2], uint32_t piece, uint32_t tiles,
                      cl_command_queue queue, cl_event *event)
{
	const size_t local[3] = {step->shape.group_x, step->shape.group_y, 1};
	size_t offset[3] = {0, 0, device->serial}, global[3] = {0, 0, tiles};

	find_piece(step, groups, pieces, piece, offset, global);
	return clEnqueueNDRangeKernel(queue, step->function, device->serial || tiles > 1 ? 3 : 2,
	                              offset, global, local, 0, NULL, event);
}

/* Enqueues a launch that is not cut. */
static cl_int enqueue_whole(const struct step *step, const struct device *device,
                            const struct region *region, uint32_t tiles, cl_command_queue queue,
                            cl_event *event)
{
	const size_t one[2] = {1, 1};
	size_t groups[2];

	count_groups(step, region, groups);
	return enqueue(step, device, groups, one, 0, tiles, queue, event);
}

/* Copies what a kernel has written to an image of this launch to the target. */
static cl_int enqueue_copy_back(const struct step *step, const struct view *dst,
                                const struct region *region, const struct images *images,
                                cl_command_queue queue)
{
	const size_t pixel = step->bands * pixel_type_size(step->dst_type);
	const size_t zero[3] = {0, 0, 0}, size[3] = {region->width, region->rows, 1};
	const struct rows from = {images->packed_target, 0, region->width * pixel},
	                  target = {dst->buffer, target_offset(step, dst), dst->pitch};
	cl_int code = clEnqueueCopyImageToBuffer(queue, images->target, images->packed_target, zero,
	                                         size, 0, 0, NULL, NULL);

	return code ? code : copy_rows(queue, &from, &target, from.pitch, region->rows, NULL);
}

static void set_region_view(struct arguments *a, const struct step *step, bool dst)
{
	const struct view *view = &a->views[dst ? step->dst : step->src];
	cl_ulong none = 0;

	if (!region_is_transposed(step, dst)) {
		set_view(a, view, step, dst ? step->dst_type : step->src_type);
		return;
	}
	set(a, sizeof view->buffer, &view->buffer);
	set(a, sizeof none, &none);
	set_u32(a, view->pitch);
}

/* Sets what follows the regions in REGION_ARGUMENTS. */
static void set_counts(struct arguments *a, const struct step *step, const struct region *region)
{
	set_u32(a, region->samples);
	set_u32(a, region->rows);
	set_u32(a, step->bands);
	set_u32(a, region->blocks);
}

bool launch_can_stack(const struct step *step)
{
	return !is_classic(step) && !is_shrink(step) && !is_grow(step);
}

/* Sets the arguments of a kernel that knows its place. It gets all tiles of a stack in one launch,
 * each on its own. */
static void set_placed(struct arguments *a, const struct step *step, const struct stack *stack,
                       const struct region *region)
{
	if (step->kernel == KERNEL_EXTEND) {
		set_extend(a, step, stack, region);
		return;
	}
	set_region_view(a, step, false);
	set_region_view(a, step, true);
	set_counts(a, step, region);
	set_image_place(a, step, stack);
	setter_of(step->kernel)(a, step);
}

/* Sets all arguments of a step for the tile, or a stack as high as that. queue, images: for kernels
 * that need image objects. *region: what the kernel's groups cover, of each tile if it knows its
 * place. */
static void set_arguments(struct arguments *a, const struct step *step, const struct device *device,
                          const struct stack *stack, cl_command_queue queue, struct images *images,
                          struct region *region)
{
	const struct view *views = a->views;
	struct tile one = *a->tile;
	cl_int4 reach;

	if (needs(step, VARIANT_PLACE)) {
		one.height = stack->height;
		*region = find_region(step, device, &one);
		set_placed(a, step, stack, region);
		return;
	}
	*region = find_region(step, device, a->tile);
	reach = find_reach(step, region);
	if (needs(step, VARIANT_IMAGE))
		set_source_image(a, step, &views[step->src], &reach, device, queue, images);
	else if (is_shrink(step) || is_grow(step))
		set_source_of_points(a, step);
	else
		set_region_view(a, step, false);
	if (needs(step, VARIANT_TARGET_IMAGE))
		set_target_image(a, step, &views[step->dst], region, device, images);
	else
		set_region_view(a, step, true);
	set_counts(a, step, region);
	setter_of(step->kernel)(a, step);
	if (needs(step, VARIANT_LOCAL))
		set(a, scratch_size(step, region), NULL);
	if (is_classic(step))
		set(a, sizeof reach, &reach);
	if (step->kernel == KERNEL_SEP_TWO_PASS)
		set_u32(a, step->pass);
}

static struct stack stack_of(const struct tile *tile)
{
	return (struct stack){.count = 1, .height = tile->height, .y0 = {tile->y0}};
}

cl_int launch_step(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event)
{
	const struct stack alone = stack_of(tile);
	struct arguments a = {.kernel = step->function, .tile = tile, .views = views};
	struct images images = {0};
	struct region region;
	uint32_t tiles = stack && needs(step, VARIANT_PLACE) ? stack->count : 1;

	set_arguments(&a, step, device, stack ? stack : &alone, queue, &images, &region);
	if (!a.code)
		a.code = enqueue_whole(step, device, &region, tiles, queue, event);
	if (!a.code && images.owned[1])
		a.code = enqueue_copy_back(step, &views[step->dst], &region, &images, queue);
	images_fini(&images); /* the driver keeps them until they are used */
	return a.code;
}

cl_int launch_prepare(const struct step *step, cl_kernel kernel, const struct device *device,
                      const struct tile *tile, const struct view views[PLACES], uint32_t threads,
                      struct launch *launch)
{
	const struct stack alone = stack_of(tile);
	struct arguments a = {.kernel = kernel, .tile = tile, .views = views};
	struct region region;

	*launch = (struct launch){*step, device, tile, views, {0}, {1, 1}};
	launch->step.function = kernel;
	if (!has_pieces(step, device))
		return CL_SUCCESS;
	set_arguments(&a, step, device, &alone, NULL, NULL, &region);
	count_groups(step, &region, launch->groups);
	cut(&region, threads, launch);
	return a.code;
}

uint32_t launch_pieces(const struct launch *launch)
{
	return (uint32_t)(launch->pieces[0] * launch->pieces[1]);
}

uint32_t launch_side(const struct launch *l, uint32_t piece)
{
	size_t offset[2], global[2];

	if (!l->groups[0])
		return UINT32_MAX;
	find_piece(&l->step, l->groups, l->pieces, piece, offset, global);
	return (uint32_t)(global[0] > global[1] ? global[0] : global[1]);
}

cl_int launch_piece(const struct launch *l, uint32_t piece, cl_command_queue queue, cl_event *event)
{
	return l->groups[0]
	           ? enqueue(&l->step, l->device, l->groups, l->pieces, piece, 1, queue, event)
	           : launch_step(&l->step, l->device, l->tile, NULL, queue, l->views, event);
}
