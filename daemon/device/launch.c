/* Kernel launches. Kernels take their region's place as a byte offset into a whole buffer, then
 * what their family needs; the first failed argument is remembered and the launch not made. */
#include "device/launch.h"

enum {
	/* Samples of a work-item's block. On a CPU, enough to make calling it cheap; for
	 * `separable` such that its rows stay in the second-level cache. */
	CPU_BLOCK = 4096,
	CPU_SEPARABLE_BLOCK = 1024,
	GPU_BLOCK = 32,
	BLOCK_MIN = 32, /* see block_span() in common.cl */
	GPU_GROUP = 32,
	EXTEND_PIXELS = 256,
	VECTOR = 16,
};

/* Arguments being set, in order. */
struct arguments {
	cl_kernel kernel;
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

/* The region that a step writes, of a tile. */
struct region {
	uint32_t samples, rows; /* samples a row */
	uint32_t blocks;        /* parts of a row that a work-item makes */
};

static uint32_t block_samples(const struct programs *programs, const struct plan *plan,
                              const struct step *step)
{
	const struct device *device = programs->device;
	uint64_t room = device->local_memory / sizeof(float) / programs->separable_rows;
	uint64_t reach = 2 * (uint64_t)step->radius_x * plan->image.bands + 2 * VECTOR;

	if (device->type != DEVICE_CPU)
		return GPU_BLOCK;
	if (step->kernel != KERNEL_SEPARABLE)
		return CPU_BLOCK;
	if (room < reach + CPU_SEPARABLE_BLOCK)
		return room < reach + BLOCK_MIN ? BLOCK_MIN : (uint32_t)(room - reach);
	return CPU_SEPARABLE_BLOCK;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct region find_region(const struct programs *programs, const struct plan *plan,
                                 const struct step *step, const struct tile *tile)
{
	struct region region = {
	    .samples = (tile->width + 2 * step->expand_x) * plan->image.bands,
	    .rows = tile->height + 2 * step->expand_y,
	};
	uint32_t block = block_samples(programs, plan, step);

	if (step->kernel == KERNEL_EXTEND)
		region.blocks = (tile->width + 2 * step->expand_x) / EXTEND_PIXELS + 1;
	else
		region.blocks = max_u32(
		    1, min_u32((region.samples + block - 1) / block, region.samples / BLOCK_MIN));
	return region;
}

/* Bytes from the buffer's start to the first pixel of the step's region. */
static cl_ulong region_offset(const struct view *view, const struct plan *plan,
                              const struct step *step, enum pixel_type type)
{
	return view->origin - (uint64_t)step->expand_y * view->pitch -
	       (uint64_t)step->expand_x * plan->image.bands * pixel_type_size(type);
}

static void set_view(struct arguments *a, const struct view *view, const struct plan *plan,
                     const struct step *step, enum pixel_type type)
{
	cl_ulong offset = region_offset(view, plan, step, type);

	set(a, sizeof view->buffer, &view->buffer);
	set(a, sizeof offset, &offset);
	set_u32(a, view->pitch);
}

static void set_extend(struct arguments *a, const struct plan *plan, const struct step *step,
                       const struct tile *tile, const struct region *region,
                       const struct view *view)
{
	cl_int x0 = (cl_int)tile->x0 - (cl_int)step->expand_x;
	cl_int y0 = (cl_int)tile->y0 - (cl_int)step->expand_y;

	set_view(a, view, plan, step, step->dst_type);
	set_u32(a, tile->width + 2 * step->expand_x);
	set_u32(a, region->rows);
	set_u32(a, plan->image.bands);
	set_u32(a, region->blocks);
	set(a, sizeof x0, &x0);
	set(a, sizeof y0, &y0);
	set_u32(a, plan->image.width);
	set_u32(a, plan->image.height);
	set_u32(a, plan->chain.border);
	set(a, sizeof plan->border_pixel, plan->border_pixel);
}

/* Bytes of local memory for the block of a separable launch. */
static size_t scratch_size(const struct programs *programs, const struct plan *plan,
                           const struct step *step, const struct region *region)
{
	/* block_span() rounds both ends, so a block is up to 15 samples larger than its share. */
	size_t block = (region->samples + region->blocks - 1) / region->blocks + VECTOR;
	size_t reach = 2 * (size_t)step->radius_x * plan->image.bands;

	return (block + reach + VECTOR - 1) / VECTOR * VECTOR * programs->separable_rows *
	       sizeof(float);
}

static void set_separable(struct arguments *a, const struct programs *programs,
                          const struct plan *plan, const struct step *step,
                          const struct region *region)
{
	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->radius_x);
	set_u32(a, step->radius_y);
	set_float(a, (float)step->offset);
	set_u32(a, step->keep_alpha);
	set(a, scratch_size(programs, plan, step, region), NULL);
}

static void set_matrix(struct arguments *a, const struct step *step)
{
	set(a, sizeof step->weights, &step->weights);
	set_u32(a, step->radius_x);
	set_u32(a, step->radius_y);
	set_float(a, (float)step->offset);
	if (step->kernel == KERNEL_MATRIX_COMPENSATED)
		set_float(a, (float)(step->offset - (float)step->offset));
	set_u32(a, step->keep_alpha);
}

static void set_gradient(struct arguments *a, const struct step *step)
{
	for (int i = 0; i < 3; i++)
		set_float(a, step->smooth[i]);
	set_u32(a, step->output);
	set_float(a, (float)step->offset);
	set_u32(a, step->keep_alpha);
}

static void set_family(struct arguments *a, const struct programs *programs,
                       const struct plan *plan, const struct step *step,
                       const struct region *region)
{
	switch (step->kernel) {
	case KERNEL_SEPARABLE:
		set_separable(a, programs, plan, step, region);
		break;
	case KERNEL_MATRIX:
	case KERNEL_MATRIX_COMPENSATED:
		set_matrix(a, step);
		break;
	case KERNEL_GRADIENT:
		set_gradient(a, step);
		break;
	case KERNEL_UNPREMULTIPLY:
		set_float(a, (float)step->offset);
		break;
	default:
		break;
	}
}

/* Rows that a work-item makes. */
static uint32_t block_rows(const struct programs *programs, enum kernel kernel)
{
	switch (kernel) {
	case KERNEL_SEPARABLE:
		return programs->separable_rows;
	case KERNEL_MATRIX:
		return MATRIX_ROWS;
	case KERNEL_GRADIENT:
		return GRADIENT_ROWS;
	default:
		return 1;
	}
}

static cl_int enqueue(const struct programs *programs, const struct step *step,
                      const struct region *region, cl_command_queue queue, cl_event *event)
{
	bool single = programs->device->type == DEVICE_CPU || step->kernel == KERNEL_SEPARABLE;
	size_t group = single ? 1 : GPU_GROUP, rows = block_rows(programs, step->kernel);
	size_t local[2] = {group, 1};
	size_t global[2] = {(region->blocks + group - 1) / group * group,
	                    (region->rows + rows - 1) / rows};

	return clEnqueueNDRangeKernel(queue, programs->kernel[step->program][step->kernel], 2, NULL,
	                              global, local, 0, NULL, event);
}

cl_int launch_step(const struct programs *programs, const struct plan *plan,
                   const struct step *step, const struct tile *tile, cl_command_queue queue,
                   const struct view *src, const struct view *dst, cl_event *event)
{
	struct arguments a = {.kernel = programs->kernel[step->program][step->kernel]};
	struct region region = find_region(programs, plan, step, tile);

	if (step->kernel == KERNEL_EXTEND) {
		set_extend(&a, plan, step, tile, &region, dst);
	} else {
		set_view(&a, src, plan, step, step->src_type);
		set_view(&a, dst, plan, step, step->dst_type);
		set_u32(&a, region.samples);
		set_u32(&a, region.rows);
		set_u32(&a, plan->image.bands);
		set_u32(&a, region.blocks);
		set_family(&a, programs, plan, step, &region);
	}
	return a.code ? a.code : enqueue(programs, step, &region, queue, event);
}

/* Pixels of the tile's result, larger by x and y on each side. */
static uint64_t expanded_pixels(const struct tile *tile, uint64_t x, uint64_t y)
{
	return (tile->width + 2 * x) * (tile->height + 2 * y);
}

uint64_t launch_bytes(const struct plan *plan, const struct step *step, const struct tile *tile)
{
	uint64_t x = step->expand_x, y = step->expand_y;
	uint64_t read = expanded_pixels(tile, x + step->radius_x, y + step->radius_y);
	uint64_t written = expanded_pixels(tile, x, y);

	if (step->kernel == KERNEL_EXTEND) {
		written -= expanded_pixels(tile, 0, 0); /* about what lies outside */
		read = written;
	}
	return plan->image.bands *
	       (read * pixel_type_size(step->src_type) + written * pixel_type_size(step->dst_type));
}
