#include "device/plan/maker.h"

#include <string.h>

#include "base/log.h"
#include "device/plan/launch.h"

enum { WARM_WIDTH = 256 };

void product_fini(struct product *product)
{
	for (enum kernel k = 0; k < KERNELS; k++)
		object_release(OBJECT_KERNEL, product->function[k]);
	object_release(OBJECT_PROGRAM, product->program);
	*product = (struct product){0};
}

static _Atomic uint64_t launches;

uint64_t maker_launches(void)
{
	return launches;
}

/* Launches the kernel once, on a small area of zeros. */
static cl_int launch_once(const struct maker *m, const struct recipe *recipe, cl_kernel function)
{
	const struct step *like = &recipe->like;
	const struct variant *variant = &variant_rows[recipe->kernel];
	struct step step = *like;
	struct tile tile = {.width = WARM_WIDTH + variant->samples_min, .height = 2 * step.shape.y};
	uint64_t sample = sizeof(float) * step.bands;
	uint32_t pitch = (uint32_t)((tile.width + 2 * step.radius_x + 64) * sample + 63) & ~63u;
	uint64_t lead = (step.radius_x * sample + 63) & ~UINT64_C(63);
	uint64_t size = (uint64_t)pitch * (tile.height + 2 * step.radius_y + 1);
	struct view views[PLACES] = {0}, packed = {0};
	const struct device *device = m->source->device;
	cl_event event = NULL;
	cl_int code;
	cl_mem dst = NULL, src = device_buffer(device, CL_MEM_READ_WRITE, size, NULL, &code);

	if (variant->needs & VARIANT_IMAGE) /* the device has room for this if the kernel applies */
		tile.width = tile.height = 1;
	step.function = function;
	step.expand_x = step.expand_y = 0;
	step.points = (struct step_points){0};
	step.stage = STAGE_RESULT; /* the plan may be gone */
	step.image_width = step.image_height = 0;
	if (!code)
		dst = device_buffer(device, CL_MEM_READ_WRITE, region_pack(&step, &tile, &packed),
		                    NULL, &code);
	step.src = PLACE_IN;
	step.dst = PLACE_OUT;
	views[PLACE_IN] = (struct view){
	    .buffer = src, .origin = lead + (uint64_t)step.radius_y * pitch, .pitch = pitch};
	packed.buffer = dst;
	views[PLACE_OUT] = packed;
	launches++;
	if (!code)
		code = launch_step(&step, m->source->device, &tile, NULL, m->queue, views, &event);
	object_add(OBJECT_EVENT, event);
	if (!code)
		code = clFinish(m->queue);
	object_release(OBJECT_EVENT, event);
	object_release(OBJECT_BUFFER, src);
	object_release(OBJECT_BUFFER, dst);
	return code;
}

static cl_int make_kernel(struct product *product, enum kernel kernel)
{
	cl_int code;

	product->function[kernel] =
	    object_add(OBJECT_KERNEL, clCreateKernel(product->program, kernel_name(kernel), &code));
	return code;
}

/* A product is its program's kernels: all general ones of a file. */
bool maker_make(const struct maker *m, const struct recipe *recipe, enum way way,
                const struct binary *binary, struct product *product)
{
	const char *file = recipe->file, *options = recipe->options;
	enum kernel kernel = recipe->kernel;
	cl_program program = program_make(m->source, file, options, recipe->type, way, binary);
	cl_int code = CL_SUCCESS;

	*product = (struct product){.program = program};
	if (!program)
		return false;
	if (kernel == KERNELS)
		return true;
	if (variant_is_general(kernel)) {
		for (enum kernel k = 0; !code && k < KERNELS; k++)
			if (variant_is_general(k) && !strcmp(variant_rows[k].file, file))
				code = make_kernel(product, k);
	} else {
		code = make_kernel(product, kernel);
		/* A resize's source depends on its plan, which may be gone. */
		if (!code && !m->source->device->in_test && !recipe->like.resize.words)
			code = launch_once(m, recipe, product->function[kernel]);
	}
	if (!code)
		return true;
	log_error("cannot launch %s (%s): %s", kernel_name(kernel), options,
	          opencl_error_name(code));
	product_fini(product);
	return false;
}
