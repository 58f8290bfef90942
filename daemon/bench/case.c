/* Outside the ROI pixels are those of `replicate`, which is the default border of a chain and what
 * the published kernels do. */
#include "bench/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "border.h"

/* Copies the source and its halo; outside the ROI pixels are made by the border rule. */
static void fill_padded(struct case_pixels *p, const struct bench_case *c)
{
	const size_t pixel = image_pixel_size(&c->image), row = image_row_size(&c->image);
	const int mode = BORDER_REPLICATE;

	for (int y = -(int)p->halo_y; y < (int)(p->source.height + p->halo_y); y++) {
		const char *from =
		    (const char *)c->pixels +
		    (p->source.y + (size_t)border_map(y, (int)p->source.height, mode)) * row;
		char *to = p->padded + p->padded_view.origin + (ptrdiff_t)y * p->padded_view.pitch;

		for (int x = -(int)p->halo_x; x < (int)(p->source.width + p->halo_x); x++)
			memcpy(to + (ptrdiff_t)x * (ptrdiff_t)pixel,
			       from + (p->source.x +
			               (size_t)border_map(x, (int)p->source.width, mode)) *
			                  pixel,
			       pixel);
	}
}

static enum error make_padded(struct case_pixels *p, const struct bench_case *c)
{
	const uint64_t pixel = image_pixel_size(&c->image), align = ROW_ALIGNMENT - 1;
	const uint64_t lead = (p->halo_x * pixel + align) & ~align;

	p->padded_view.pitch = (uint32_t)row_pitch(lead + (p->source.width + p->halo_x) * pixel);
	p->padded_view.origin = lead + (uint64_t)p->halo_y * p->padded_view.pitch;
	p->padded_size = p->padded_view.pitch * (uint64_t)(p->source.height + 2 * p->halo_y);
	p->padded = calloc(1, p->padded_size);
	if (!p->padded)
		return ERR_MEMORY;
	fill_padded(p, c);
	return ERR_OK;
}

/* Makes a device buffer. content: copied to it; NULL: none. Does nothing after an error. */
static cl_mem new_buffer(const struct device *device, cl_command_queue queue, uint64_t size,
                         const void *content, cl_int *code)
{
	cl_mem buffer;

	if (*code)
		return NULL;
	buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE, size, NULL, code);
	if (!*code && content)
		*code =
		    clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, content, 0, NULL, NULL);
	return buffer;
}

static enum error make_buffers(struct case_pixels *p, const struct bench_case *c,
                               const struct device *device, cl_command_queue queue)
{
	const struct image *image = &c->image;
	const uint64_t pixel = image_pixel_size(image);
	cl_int code = CL_SUCCESS;

	p->bare_view.pitch = (uint32_t)image_row_size(image);
	p->bare_view.origin = (uint64_t)p->source.y * p->bare_view.pitch + p->source.x * pixel;
	p->bare_size = image_size(image);
	p->target_view.pitch = (uint32_t)row_pitch(image_row_size(image));
	p->target_view.origin = (uint64_t)p->target.y * p->target_view.pitch + p->target.x * pixel;
	p->target_size = (uint64_t)p->target_view.pitch * image->height;
	for (int i = 0; i < PAIRS; i++) {
		p->padded_buffer[i] = new_buffer(device, queue, p->padded_size, p->padded, &code);
		p->bare_buffer[i] = new_buffer(device, queue, p->bare_size, c->pixels, &code);
		p->target_buffer[i] = new_buffer(device, queue, p->target_size, NULL, &code);
	}
	if (!code)
		return ERR_OK;
	fprintf(stderr, "convolved-bench: not enough memory on the device for %ux%ux%u %s: %s\n",
	        image->width, image->height, image->bands, pixel_type_name(image->type),
	        opencl_error_name(code));
	return ERR_DEVICE;
}

enum error case_pixels_init(struct case_pixels *p, const struct bench_case *c,
                            const struct bench_options *options, const struct device *device,
                            cl_command_queue queue)
{
	enum error e;

	*p = (struct case_pixels){.source = options->source_roi, .target = options->target_roi};
	if (!p->source.width)
		p->source = p->target = (struct rectangle){0, 0, c->image.width, c->image.height};
	p->part = c->image;
	p->part.width = p->source.width;
	p->part.height = p->source.height;
	chain_halo(&c->chain, &p->halo_x, &p->halo_y);
	e = make_padded(p, c);
	return e ? e : make_buffers(p, c, device, queue);
}

static void release(cl_mem *buffer)
{
	if (*buffer)
		clReleaseMemObject(*buffer);
	*buffer = NULL;
}

void case_pixels_fini(struct case_pixels *p)
{
	for (int i = 0; i < PAIRS; i++) {
		release(&p->padded_buffer[i]);
		release(&p->bare_buffer[i]);
		release(&p->target_buffer[i]);
	}
	free(p->padded);
	p->padded = NULL;
}
