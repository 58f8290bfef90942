/* Kernel launches. A kernel takes its buffers, each with the byte offset of the region, and then
 * the operation's parameters. If setting an argument fails, the kernel is not launched.
 *
 * A kernel that reads an image object gets a copy of the pixels in its reach, and the result of one
 * that writes an image is copied to the target, on the same queue; unless the views have images. */
#include "device/plan/launch.h"

#include <math.h>
#include <stddef.h>
#include <sys/param.h>

#include "local.h"

enum {
	BLOCK_MIN = 32,      /* see block_span() in common.cl */
	EXTEND_PIXELS = 256, /* a work-item's; a GPU likes many items */
	EXTEND_PIXELS_GPU = 16,
	VECTOR = 16,
	HELPER_TERMS = 8, /* multiply-adds per sample, roughly */
};

/* Multiply-adds in a piece of a launch, for each thread of the piece: the most, which take about a
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

/* The region of a tile that a step writes. */
struct region {
	uint32_t width, rows; /* pixels */
	uint32_t samples;     /* per row */
	uint32_t blocks;      /* work-items per row */
	uint32_t block_rows;  /* rows that a work-item makes, with others of its group or alone */
};

static bool needs(const struct step *step, uint32_t need)
{
	return variant_rows[step->kernel].needs & need;
}

static bool is_classic(const struct step *step)
{
	return kernel_row(step->kernel)->origin == KERNEL_CLASSIC;
}

/* Returns the largest number of blocks of pixelate in `length` pixels: one may be cut at each end,
 * and one wherever the image ends. image: its size, 0 if the step belongs to no plan. */
static uint32_t blocks_in(const struct step *step, uint32_t length, uint32_t image)
{
	return howmany(length, step->blocks.side) + 3 + (image ? length / image : 0);
}

/* Returns the rows of a group of resize_ring: as few as one round of groups on the device's
 * processors can make, or else a few rounds. Each group goes down the rows of the source that it
 * shares with the next one, so more groups would do more, and a last few run alone. */
static uint32_t ring_rows(const struct step *step, const struct device *device,
                          const struct region *region)
{
	const struct resizing *down = &step->geometry->scale[1];
	const uint32_t most = (uint32_t)((RESIZE_RING_ROWS - 1 - resizing_taps(down)) / down->step);
	const uint32_t across = region->blocks / step->shape.group_x;
	const uint32_t together = device->units * RESIZE_RING_TURN / step->shape.group_x;
	uint32_t rows = UINT32_MAX;

	for (uint32_t rounds = 1; rows > most; rounds++)
		rows = howmany(region->rows, MAX(together * rounds / across, 1));
	return MAX(rows, RESIZE_RING_TOGETHER);
}

static struct region find_region(const struct step *step, const struct device *device,
                                 const struct tile *tile)
{
	struct region region = {
	    .width = region_side(step, tile, false),
	    .rows = region_side(step, tile, true),
	    .block_rows = step->shape.y,
	};
	uint32_t block = step->shape.x; /* samples */

	if (needs(step, VARIANT_LOCAL)) { /* the block and its reach must fit into local memory */
		const uint64_t room = device->local_memory / sizeof(float) /
		                      variant_local_rows(step->kernel, step->shape);
		const uint64_t reach = 2 * (uint64_t)step->radius_x * step->bands + 2 * VECTOR;

		if (room < reach + block)
			block = room < reach + BLOCK_MIN ? BLOCK_MIN : (uint32_t)(room - reach);
	}
	region.samples = region.width * step->bands;
	if (step->kernel == KERNEL_EXTEND)
		region.blocks = region.width / (device->type == DEVICE_GPU ? EXTEND_PIXELS_GPU
		                                                           : EXTEND_PIXELS) +
		                1;
	else if (step->blocks.side)
		region.blocks =
		    howmany(blocks_in(step, region.width, step->image_width), step->blocks.run) *
		    step->blocks.lanes;
	else if (step->resize.out)
		region.blocks = howmany(region.width, step->resize.out) * step->shape.group_x;
	else if (needs(step, VARIANT_PIXELS))
		region.blocks = howmany(region.width, block);
	else if (kernel_row(step->kernel)->origin == KERNEL_GENERAL)
		region.blocks =
		    MAX(1, MIN(howmany(region.samples, block), region.samples / BLOCK_MIN));
	else
		region.blocks = howmany(region.samples, block);
	if (step->resize.out)
		region.block_rows = ring_rows(step, device, &region);
	return region;
}

/* Sets a view's buffer, offset and pitch, starting at column x and row y from its origin. */
static void set_place(struct arguments *a, const struct view *view, int64_t x, int64_t y,
                      uint64_t pixel)
{
	cl_ulong offset = (cl_ulong)((int64_t)view->origin + y * view->pitch + x * (int64_t)pixel);

	set(a, sizeof view->buffer, &view->buffer);
	set(a, sizeof offset, &offset);
	set_u32(a, view->pitch);
}

/* Sets a view, starting at the first pixel of the step's region. */
static void set_view(struct arguments *a, const struct view *view, const struct step *step,
                     enum pixel_type type)
{
	set_place(a, view, -(int64_t)step->expand_x, -(int64_t)step->expand_y,
	          step->bands * pixel_type_rows[type].size);
}

/* Sets the step's position in the image: PLACE_ARGUMENTS in common.cl. A step without a plan knows
 * no image: it is the tile. */
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
	set_u32(a, step->image_width ? step->image_width : tile->x0 + tile->width);
	set_u32(a, step->image_height ? step->image_height : stack->y0[0] + stack->height);
}

/* Sets the source of a step that changes the size, from the first pixel or point that it reads. */
static void set_scaled_source(struct arguments *a, const struct step *step)
{
	const struct lattice *l = &step->points.lattice;
	const struct tile *tile = a->tile;
	const int64_t stride = l->stride, half = l->half;
	int64_t x = -(int64_t)step->expand_x, y = -(int64_t)step->expand_y;

	if (step->kernel == KERNEL_SHRINK_ACROSS)
		x = (region_points(step, tile, false).first + x) * stride - half -
		    (int32_t)tile->x0;
	else if (step->kernel == KERNEL_SHRINK_DOWN)
		y = (region_points(step, tile, true).first + y) * stride - half - (int32_t)tile->y0;
	else if (step->kernel == KERNEL_GROW_ACROSS || step->kernel == KERNEL_RESIZE_ACROSS)
		x = 0;
	else if (step->resize.out)
		x = y = 0;
	else
		y = 0;
	set_place(a, &a->views[step->src], x, y,
	          step->bands * pixel_type_rows[step->src_type].size);
}

/* An argument of a step besides its regions: a member, or a value that follows from several. */
struct argument {
	enum {
		END,
		MEMBER,   /* the step's, as it is */
		LIMIT,    /* a member whose size depends on the type that the kernel compares */
		ORIGINAL, /* a view */
		SPLINE_LENGTH,
		BLOCK_ROWS,
		PHASE,  /* see lattice_span */
		ENTRY,  /* the place of the region's first pixel among those that have weights */
		SOURCE, /* the place of the source's first pixel in the image */
	} kind;
	size_t place, size; /* a member's */
	bool down;          /* the direction of the last three */
};

#define VALUE_OF(type, member)                                                                     \
	{                                                                                          \
		.kind = type, .place = offsetof(struct step, member),                              \
		.size = sizeof((struct step *)NULL)->member                                        \
	}
#define VALUE(member) VALUE_OF(MEMBER, member)
#define COUNTED(...)                                                                               \
	{                                                                                          \
		.kind = __VA_ARGS__                                                                \
	}
#define ACROSS(type) COUNTED(type)
#define DOWN(type)   COUNTED(type, .down = true)
#define LIST(...)                                                                                  \
	(const struct argument[])                                                                  \
	{                                                                                          \
		__VA_ARGS__, COUNTED(END)                                                          \
	}
#define WEIGHTS VALUE(weights), VALUE(radius_x), VALUE(radius_y), VALUE(offset)

/* All kernels of an operation take the same arguments. NULL: it runs as other kernels. */
static const struct argument *const of_operation[] = {
    [OPERATION_SEPARABLE] = LIST(WEIGHTS, VALUE(keep)),
    [OPERATION_MATRIX] = LIST(WEIGHTS, VALUE(keep)),
    [OPERATION_GRADIENT] = LIST(VALUE(smooth[0]), VALUE(smooth[1]), VALUE(smooth[2]), VALUE(output),
                                VALUE(scale), VALUE(offset), VALUE(keep)),
    [OPERATION_BILATERAL] =
        LIST(VALUE(radius_x), VALUE(space), VALUE(range), VALUE(alpha), VALUE(keep)),
    [OPERATION_UNSHARP] = LIST(WEIGHTS, VALUE(keep), VALUE(amount), VALUE(threshold)),
    [OPERATION_DOG] = LIST(WEIGHTS, VALUE(keep)),
    [OPERATION_EXTREME] = LIST(VALUE(radius_x), VALUE(element), VALUE(output), VALUE(keep)),
    [OPERATION_MORPHOLOGY] = NULL,
    [OPERATION_RESIZE] = NULL,
    [OPERATION_PIXELATE] =
        LIST(VALUE(blocks.side), VALUE(blocks.lanes), VALUE(blocks.run), VALUE(keep)),
    [OPERATION_CURVE] = LIST(VALUE(curve.gain), VALUE(curve.bias), VALUE(curve.low),
                             VALUE(curve.high), VALUE(curve.exponent), VALUE(curve.scale),
                             VALUE(curve.shift), VALUE(by_band), VALUE(keep)),
    [OPERATION_RANK] = LIST(VALUE(radius_x), VALUE(element), VALUE(rank), VALUE(keep)),
    [OPERATION_THRESHOLD] = LIST(VALUE(limits), VALUE(amount), VALUE(by_band), VALUE(keep)),
    [OPERATION_LOCAL_THRESHOLD] = LIST(WEIGHTS, VALUE(keep), VALUE(amount), VALUE(threshold)),
    [OPERATION_LUT] =
        LIST(VALUE(weights), VALUE(tables), VALUE(entries), VALUE(places), VALUE(keep)),
    [OPERATION_MIX] = LIST(VALUE(mix[0]), VALUE(mix[1]), VALUE(mix[2]), VALUE(mix[3]),
                           VALUE(mix[4]), VALUE(full), VALUE(alpha), VALUE(keep)),
    [OPERATION_CANNY] = LIST(VALUE_OF(LIMIT, low), VALUE_OF(LIMIT, high), VALUE(full), VALUE(keep)),
    [OPERATION_CLAHE] = LIST(VALUE(weights), VALUE(plane.words), VALUE(plane.width),
                             VALUE(plane.height), VALUE(plane.x), VALUE(plane.y), VALUE(tables),
                             VALUE(entries), VALUE(places), VALUE(keep)),
    [OPERATION_EDGES] =
        LIST(VALUE(weights), VALUE(plane.words), VALUE(plane.width), VALUE(plane.height),
             VALUE(plane.x), VALUE(plane.y), VALUE(full), VALUE(keep)),
};
_Static_assert(sizeof of_operation / sizeof *of_operation == OPERATIONS, "each has its place");

/* The arguments of helpers, and of a kernel with more of them than its operation's others. */
static const struct argument *const of_kernel[KERNELS] = {
    [KERNEL_EXTEND] = LIST(VALUE(border.mode), VALUE(border.pixel)),
    [KERNEL_MATRIX_COMPENSATED] = LIST(WEIGHTS, VALUE(offset_rest), VALUE(keep), VALUE(alpha)),
    [KERNEL_PREMULTIPLY] = LIST(VALUE(alpha)),
    [KERNEL_UNPREMULTIPLY] = LIST(COUNTED(ORIGINAL), VALUE(offset), VALUE(keep)),
    [KERNEL_TO_YCC] = LIST(VALUE(offset)),
    [KERNEL_FROM_YCC] = LIST(VALUE(offset)),
    [KERNEL_UNSHARP] =
        LIST(COUNTED(ORIGINAL), VALUE(amount), VALUE(threshold), VALUE(alpha), VALUE(keep)),
    [KERNEL_THRESHOLD_LOCAL] =
        LIST(COUNTED(ORIGINAL), VALUE(threshold), VALUE(amount), VALUE(alpha), VALUE(keep)),
    [KERNEL_BLEND] = LIST(COUNTED(ORIGINAL), VALUE(weights), VALUE(shapes), VALUE(feather),
                          VALUE(invert), VALUE(alpha)),
    [KERNEL_SUBTRACT] = LIST(COUNTED(ORIGINAL), VALUE(reverse), VALUE(keep)),
    [KERNEL_RESIZE_DOWN] = LIST(VALUE(weights), VALUE(resize.words), DOWN(ENTRY), DOWN(SOURCE)),
    [KERNEL_RESIZE_ACROSS] =
        LIST(VALUE(weights), VALUE(resize.words), ACROSS(ENTRY), ACROSS(SOURCE)),
    [KERNEL_RESIZE_RING] = LIST(VALUE(weights), VALUE(resize), ACROSS(ENTRY), ACROSS(SOURCE),
                                DOWN(ENTRY), DOWN(SOURCE), COUNTED(BLOCK_ROWS)),
    [KERNEL_SHRINK_DOWN] =
        LIST(VALUE(weights), COUNTED(SPLINE_LENGTH), VALUE(points.lattice.stride),
             VALUE(points.lattice.taps), COUNTED(BLOCK_ROWS)),
    [KERNEL_SHRINK_ACROSS] =
        LIST(VALUE(weights), COUNTED(SPLINE_LENGTH), VALUE(points.lattice.stride)),
    [KERNEL_GROW_DOWN] =
        LIST(VALUE(weights), VALUE(points.lattice.stride), VALUE(points.lattice.taps), DOWN(PHASE),
             COUNTED(BLOCK_ROWS), COUNTED(ORIGINAL), VALUE(keep)),
    [KERNEL_GROW_ACROSS] = LIST(VALUE(weights), VALUE(points.lattice.stride),
                                VALUE(points.lattice.taps), ACROSS(PHASE)),
};

static uint32_t first_entry(const struct step *step, const struct tile *tile, bool down)
{
	return (down ? tile->y0 : tile->x0) + step->geometry->after[down] -
	       (down ? step->expand_y : step->expand_x);
}

static void set_listed(struct arguments *a, const struct step *step, const struct region *region)
{
	const struct argument *l = of_kernel[step->kernel];

	if (!l)
		l = of_operation[__builtin_ctz(kernel_row(step->kernel)->operations)];
	for (; l->kind != END; l++) {
		const void *member = (const char *)step + l->place;

		if (l->kind == MEMBER)
			set(a, l->size, member);
		else if (l->kind == LIMIT)
			set(a, step->program == PIXEL_U16 ? sizeof(cl_long) : sizeof(cl_float),
			    member);
		else if (l->kind == ORIGINAL)
			set_view(a, &a->views[step->original], step, step->original_type);
		else if (l->kind == SPLINE_LENGTH)
			set_u32(a, 2 * step->points.lattice.half + 1);
		else if (l->kind == BLOCK_ROWS)
			set_u32(a, region->block_rows);
		else if (l->kind == ENTRY)
			set_u32(a, first_entry(step, a->tile, l->down));
		else if (l->kind == SOURCE)
			set_u32(a, (uint32_t)step_source(step, a->tile, l->down).first);
		else
			set_u32(a, region_points(step, a->tile, l->down).phase);
	}
}

/* True for a step to or from a lattice, or of a resize. */
static bool is_scaled(const struct step *step)
{
	return step->kernel == KERNEL_SHRINK_DOWN || step->kernel == KERNEL_SHRINK_ACROSS ||
	       step->kernel == KERNEL_GROW_DOWN || step->kernel == KERNEL_GROW_ACROSS ||
	       step->resize.words;
}

/* Rows of pixels in a buffer. */
struct rows {
	cl_mem buffer;
	size_t first, pitch; /* bytes */
};

/* Copies rows of so many bytes. */
static cl_int copy_rows(cl_command_queue queue, const struct rows *from, const struct rows *to,
                        size_t row, size_t count)
{
	const size_t source[3] = {from->first % from->pitch, from->first / from->pitch, 0};
	const size_t target[3] = {to->first % to->pitch, to->first / to->pitch, 0};
	const size_t size[3] = {row, count, 1};
	cl_int code = CL_SUCCESS;

	if (source[0] + row <= from->pitch && target[0] + row <= to->pitch)
		return clEnqueueCopyBufferRect(queue, from->buffer, to->buffer, source, target,
		                               size, from->pitch, 0, to->pitch, 0, 0, NULL, NULL);
	for (size_t y = 0; !code && y < count; y++) /* a row may exceed the pitch */
		code = clEnqueueCopyBuffer(queue, from->buffer, to->buffer,
		                           from->first + y * from->pitch, to->first + y * to->pitch,
		                           row, 0, NULL, NULL);
	return code;
}

/* The images that a launch makes, and the target's pixels before they are copied to the view. */
struct images {
	cl_mem source, target, packed;
};

/* Makes an image object, which holds integers or shares of full scale, and a buffer of its size. */
static cl_int make_image(const struct step *step, enum pixel_type type, size_t width, size_t height,
                         const struct device *device, cl_mem *image, cl_mem *packed)
{
	const cl_image_format format =
	    device_image_format(step->bands, type, needs(step, VARIANT_TARGET_IMAGE));
	const cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
	const size_t pixel = step->bands * pixel_type_rows[type].size;
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
                          const struct device *device, cl_command_queue queue, cl_mem *image)
{
	const size_t pixel = step->bands * pixel_type_rows[step->src_type].size;
	const size_t zero[3] = {0, 0, 0}, size[3] = {(size_t)(reach->s[2] - reach->s[0]) + 1,
	                                             (size_t)(reach->s[3] - reach->s[1]) + 1, 1};
	const int64_t first = (int64_t)src->origin +
	                      (reach->s[1] - (int64_t)step->expand_y) * src->pitch +
	                      (reach->s[0] - (int64_t)step->expand_x) * (int64_t)pixel;
	cl_mem packed = NULL;
	cl_int code = make_image(step, step->src_type, size[0], size[1], device, image, &packed);
	const struct rows from = {src->buffer, (size_t)first, src->pitch},
	                  to = {packed, 0, size[0] * pixel};

	if (!code)
		code = copy_rows(queue, &from, &to, to.pitch, size[1]);
	if (!code)
		code =
		    clEnqueueCopyBufferToImage(queue, packed, *image, 0, zero, size, 0, NULL, NULL);
	object_release(OBJECT_IMAGE, packed); /* the driver keeps it until it is used */
	return code;
}

/* Bytes from the start of a view's buffer to the first pixel of the region that a step writes. */
static size_t target_offset(const struct step *step, const struct view *dst)
{
	const size_t pixel = step->bands * pixel_type_rows[step->dst_type].size;

	return (size_t)dst->origin - (size_t)step->expand_y * dst->pitch - step->expand_x * pixel;
}

/* Sets the target as an image object: the view's, or one that holds just the region. */
static void set_target_image(struct arguments *a, const struct step *step, const struct view *dst,
                             const struct region *region, const struct device *device,
                             struct images *images)
{
	const size_t pixel = step->bands * pixel_type_rows[step->dst_type].size;
	const size_t offset = dst->image ? target_offset(step, dst) : 0;
	const cl_int place[2] = {(cl_int)(offset % dst->pitch / pixel),
	                         (cl_int)(offset / dst->pitch)};

	if (!a->code && !dst->image)
		a->code = make_image(step, step->dst_type, region->width, region->rows, device,
		                     &images->target, &images->packed);
	set(a, sizeof(cl_mem), dst->image ? &dst->image : &images->target);
	set(a, sizeof place, place);
}

/* Chooses how many pieces there are, across and down. Each has at least one group for each thread
 * that a launch runs on, so that none is idle. Tests cut as much as possible. */
static void cut(const struct region *region, uint32_t threads, struct launch *l)
{
	const struct device *device = l->device;
	const struct step *step = &l->step;
	const uint32_t operations = kernel_row(step->kernel)->operations;
	const uint32_t own = device->serial || device->in_test ? 1 : MAX(device->units, 1);
	double terms = operations ? 0 : HELPER_TERMS, work, spread, wanted;
	size_t count = l->groups[0] * l->groups[1] / own;

	/* If the kernel does several operations, the one with the most work counts. */
	for (enum operation_kind kind = 0; kind < OPERATIONS; kind++)
		if (operations >> kind & 1)
			terms = fmax(terms, operation_terms(kind, step->radius_x, step->radius_y));
	work = terms * region->samples * region->rows / own;
	spread = device->serial ? fmin(work / piece_min, threads) : 0;
	wanted = fmax(work / piece_max, spread);
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
	size_t across = region->blocks, down = howmany(region->rows, region->block_rows);

	if (step->blocks.side)
		down = blocks_in(step, region->rows, step->image_height);
	if (step->kernel == KERNEL_SEP_TWO_PASS) {
		across = step->pass ? region->rows : region->samples;
		down = step->pass ? region->samples : region->rows + 2 * step->radius_y;
	}
	groups[0] = howmany(across, step->shape.group_x);
	groups[1] = howmany(down, step->shape.group_y);
}

/* The work-items of a piece. */
static void find_piece(const struct launch *l, uint32_t piece, size_t offset[2], size_t global[2])
{
	const size_t local[2] = {l->step.shape.group_x, l->step.shape.group_y};
	const size_t place[2] = {piece % l->pieces[0], piece / l->pieces[0]};

	for (int i = 0; i < 2; i++) {
		offset[i] = l->groups[i] * place[i] / l->pieces[i] * local[i];
		global[i] = l->groups[i] * (place[i] + 1) / l->pieces[i] * local[i] - offset[i];
	}
}

/* Enqueues a piece for `tiles` tiles. Kernels use global numbers, which are the same in a piece as
 * in the whole. On a serial device they do not all begin at 0: see may_run() in pool.c. */
static cl_int enqueue(const struct launch *l, uint32_t piece, uint32_t tiles,
                      cl_command_queue queue, cl_event *event)
{
	const bool serial = l->device->serial;
	const size_t local[3] = {l->step.shape.group_x, l->step.shape.group_y, 1};
	size_t offset[3] = {0, 0, serial}, global[3] = {0, 0, tiles};

	find_piece(l, piece, offset, global);
	return clEnqueueNDRangeKernel(queue, l->step.function, serial || tiles > 1 ? 3 : 2, offset,
	                              global, local, 0, NULL, event);
}

static void set_region_view(struct arguments *a, const struct step *step, bool dst)
{
	const struct view *view = &a->views[dst ? step->dst : step->src];

	if (region_is_transposed(step, dst))
		set_place(a, view, 0, 0, 0);
	else
		set_view(a, view, step, dst ? step->dst_type : step->src_type);
}

bool launch_can_stack(const struct step *step)
{
	return !is_classic(step) && !is_scaled(step);
}

/* Sets all arguments of a step for the tile, or for a stack of that height (NULL: none). queue,
 * images: for kernels that need image objects. *region: the region covered by the kernel's groups,
 * for each tile if the kernel knows its place: it then gets all tiles of a stack in one launch,
 * each on its own. */
static void set_arguments(struct arguments *a, const struct step *step, const struct device *device,
                          const struct stack *stack, cl_command_queue queue, struct images *images,
                          struct region *region)
{
	const bool in_place = step->kernel == KERNEL_EXTEND;
	const struct stack alone = {.count = 1, .height = a->tile->height, .y0 = {a->tile->y0}};
	struct tile one = *a->tile;
	cl_int4 reach; /* the pixels that a classic kernel may read */

	if (!stack)
		stack = &alone;
	if (needs(step, VARIANT_PLACE))
		one.height = stack->height;
	*region = find_region(step, device, &one);
	reach = (cl_int4){{-(cl_int)step->radius_x, -(cl_int)step->radius_y,
	                   (cl_int)(region->width - 1 + step->radius_x),
	                   (cl_int)(region->rows - 1 + step->radius_y)}};
	if (step->reach)
		reach = *step->reach;
	if (needs(step, VARIANT_IMAGE)) {
		const struct view *src = &a->views[step->src];
		const cl_int origin[2] = {-reach.s[0], -reach.s[1]};

		if (!a->code && !src->image)
			a->code = fill_source(step, src, &reach, device, queue, &images->source);
		set(a, sizeof(cl_mem), src->image ? &src->image : &images->source);
		set(a, sizeof origin, origin);
	} else if (is_scaled(step)) {
		set_scaled_source(a, step);
	} else if (!in_place) {
		set_region_view(a, step, false);
	}
	if (needs(step, VARIANT_TARGET_IMAGE))
		set_target_image(a, step, &a->views[step->dst], region, device, images);
	else
		set_region_view(a, step, true);
	set_u32(a, in_place ? region->width : region->samples);
	set_u32(a, region->rows);
	set_u32(a, step->bands);
	set_u32(a, region->blocks);
	if (needs(step, VARIANT_PLACE))
		set_image_place(a, step, stack);
	set_listed(a, step, region);
	if (needs(step, VARIANT_LOCAL)) {
		/* block_span() rounds both ends: a block may exceed its share by 15 samples. */
		const size_t samples = howmany(region->samples, region->blocks) + VECTOR +
		                       2 * (size_t)step->radius_x * step->bands;
		const uint32_t rows = variant_local_rows(step->kernel, step->shape);

		set(a, roundup(samples, (size_t)VECTOR) * rows * sizeof(float), NULL);
	}
	if (is_classic(step))
		set(a, sizeof reach, &reach);
	if (step->kernel == KERNEL_SEP_TWO_PASS)
		set_u32(a, step->pass);
}

cl_int launch_step(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event)
{
	const struct tile own = step_tile(step, tile);
	struct arguments a = {.kernel = step->function, .tile = &own, .views = views};
	struct images images = {0};
	struct region region;
	struct launch whole = {*step, device, tile, views, {0}, {1, 1}};
	uint32_t tiles = stack && needs(step, VARIANT_PLACE) ? stack->count : 1;

	set_arguments(&a, step, device, stack, queue, &images, &region);
	count_groups(step, &region, whole.groups);
	if (!a.code)
		a.code = enqueue(&whole, 0, tiles, queue, event);
	if (!a.code && images.target) {
		const size_t zero[3] = {0, 0, 0}, size[3] = {region.width, region.rows, 1};
		const size_t row =
		    step->bands * pixel_type_rows[step->dst_type].size * region.width;
		const struct view *dst = &views[step->dst];
		const struct rows from = {images.packed, 0, row},
		                  to = {dst->buffer, target_offset(step, dst), dst->pitch};

		a.code = clEnqueueCopyImageToBuffer(queue, images.target, images.packed, zero, size,
		                                    0, 0, NULL, NULL);
		if (!a.code)
			a.code = copy_rows(queue, &from, &to, row, region.rows);
	}
	/* The driver keeps them until they are used. */
	object_release(OBJECT_IMAGE, images.source);
	object_release(OBJECT_IMAGE, images.target);
	object_release(OBJECT_IMAGE, images.packed);
	return a.code;
}

cl_int launch_prepare(const struct step *step, cl_kernel kernel, const struct device *device,
                      const struct tile *tile, const struct view views[PLACES], uint32_t threads,
                      struct launch *launch)
{
	const struct tile own = step_tile(step, tile);
	struct arguments a = {.kernel = kernel, .tile = &own, .views = views};
	struct region region;

	*launch = (struct launch){*step, device, tile, views, {0}, {1, 1}};
	launch->step.function = kernel;
	/* Other kernels may use image objects, or group numbers, which start at 0 in each piece. */
	if (device->type != DEVICE_CPU || is_classic(step) ||
	    kernel_row(step->kernel)->device > KERNEL_FOR_CPU)
		return CL_SUCCESS;
	set_arguments(&a, step, device, NULL, NULL, NULL, &region);
	count_groups(step, &region, launch->groups);
	cut(&region, threads, launch);
	return a.code;
}

uint32_t launch_side(const struct launch *l, uint32_t piece)
{
	size_t offset[2], global[2];

	if (!l->groups[0])
		return UINT32_MAX;
	find_piece(l, piece, offset, global);
	return (uint32_t)(global[0] > global[1] ? global[0] : global[1]);
}

cl_int launch_piece(const struct launch *l, uint32_t piece, cl_command_queue queue, cl_event *event)
{
	return l->groups[0]
	           ? enqueue(l, piece, 1, queue, event)
	           : launch_step(&l->step, l->device, l->tile, NULL, queue, l->views, event);
}
