#include "bare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <glib.h>

#include "device/plan/launch.h"

/* Poison of a source is NaN where pixels are floats. */
enum { GUARD = 4096, POISON_SOURCE = 0xFF, POISON_TARGET = 0xA5, POISON_SCRATCH = 0xFF };

/* Rows of pixels, further apart than they are long, with guards before and behind; and the part of
 * them that is used. */
struct matrix {
	size_t pixel, pitch, size;
	struct area part;
	uint8_t *bytes;
	cl_mem buffer, image; /* image: of the rows, or NULL */
};

static uint8_t *matrix_row(const struct matrix *m, uint32_t y)
{
	return m->bytes + GUARD + (m->part.y + y) * m->pitch + m->part.x * m->pixel;
}

/* Makes a matrix of poison, or around packed pixels. Inside: the part is at an end as often as
 * elsewhere. as_image: the kernel writes an image object, whose rows have no room between them. */
static struct matrix matrix_new(const struct harness *h, const struct plan *plan, uint32_t width,
                                uint32_t height, bool inside, bool as_image, const void *pixels)
{
	const uint32_t right = inside ? random_below(20) : 0, below = inside ? random_below(20) : 0;
	struct matrix m = {
	    .pixel = image_pixel_size(&plan->image),
	    .part = {random_below(3) * right / 2, random_below(3) * below / 2, width, height}};
	const size_t sides[3] = {width + right, height + below, 1}, row = width * m.pixel;
	const cl_image_format format =
	    device_image_format(plan->image.bands, (enum pixel_type)plan->image.type, true);
	const cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = sides[0], .image_height = sides[1]};
	cl_int code;

	m.pitch = sides[0] * m.pixel;
	if (!as_image)
		m.pitch += random_below(5) * pixel_type_rows[plan->image.type].size;
	m.size = m.pitch * sides[1] + 2 * GUARD;
	m.bytes = g_malloc(m.size);
	memset(m.bytes, pixels ? POISON_SOURCE : POISON_TARGET, m.size);
	for (uint32_t y = 0; pixels && y < height; y++)
		memcpy(matrix_row(&m, y), (const char *)pixels + y * row, row);
	m.buffer = clCreateBuffer(h->device.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
	                          m.size, m.bytes, &code);
	must(code);
	if (as_image)
		m.image = clCreateImage(h->device.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
		                        &format, &desc, m.bytes + GUARD, &code);
	must(code);
	return m;
}

static void matrix_free(struct matrix *m)
{
	clReleaseMemObject(m->buffer);
	if (m->image)
		clReleaseMemObject(m->image);
	free(m->bytes);
}

/* The view of the pixel at (x, y) of the part. */
static struct view view_of(const struct matrix *m, uint32_t x, uint32_t y)
{
	const uint8_t *start = m->image ? m->bytes + GUARD : m->bytes;

	return (struct view){m->buffer, (uint64_t)(matrix_row(m, y) - start) + x * m->pixel,
	                     (uint32_t)m->pitch, m->image};
}

/* Takes the part from the device. False: bytes around it were written. */
static bool take_part(const struct matrix *m, cl_command_queue queue, uint8_t *out)
{
	const struct rows rows = {matrix_row(m, 0), m->part.width * m->pixel, m->pitch,
	                          m->part.height};
	const size_t zero[3] = {0};
	const size_t sides[3] = {m->pitch / m->pixel, (m->size - 2 * GUARD) / m->pitch, 1};

	must(m->image ? clEnqueueReadImage(queue, m->image, CL_TRUE, zero, sides, 0, 0,
	                                   m->bytes + GUARD, 0, NULL, NULL)
	              : clEnqueueReadBuffer(queue, m->buffer, CL_TRUE, 0, m->size, m->bytes, 0,
	                                    NULL, NULL));
	for (uint32_t y = 0; y < m->part.height; y++)
		memcpy(out + y * rows.bytes, matrix_row(m, y), rows.bytes);
	return poison_around(&rows, m->bytes, m->bytes + m->size, POISON_TARGET);
}

/* Runs a plan's steps on a region of the result. False: bytes beside the intermediate result of
 * sep_two_pass were written. */
static bool run(const struct harness *h, cl_command_queue queue, const struct plan *plan,
                const struct tile *tile, const cl_int4 *reach, struct view views[PLACES])
{
	struct growing_buffer scratch = {0}; /* new, so full of poison */
	struct rows rows = {0};
	uint8_t *bytes;
	bool intact;

	for (uint32_t i = 0; i < plan->list.count; i++) {
		struct step step = plan->list.step[i];
		struct view *target = &views[step.dst];

		step.reach = reach;
		if (step.dst >= PLACE_A) {
			must(growing_buffer_reserve(&scratch, &h->device,
			                            region_pack(&step, tile, target) + GUARD));
			target->buffer = scratch.memory;
			rows =
			    (struct rows){NULL, (tile->height + 2 * step.radius_y) * sizeof(float),
			                  target->pitch, tile->width * step.bands};
		}
		must(launch_step(&step, &h->device, tile, NULL, queue, views, NULL));
	}
	must(clFinish(queue));
	if (!scratch.memory)
		return true;
	rows.first = bytes = g_malloc(scratch.size);
	must(clEnqueueReadBuffer(queue, scratch.memory, CL_TRUE, 0, scratch.size, bytes, 0, NULL,
	                         NULL));
	intact = poison_around(&rows, bytes, bytes + scratch.size, POISON_SCRATCH);
	free(bytes);
	growing_buffer_free(&scratch);
	return intact;
}

bool bare_applies(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->list.count; i++)
		if (kernel_row(plan->list.step[i].kernel)->origin != KERNEL_CLASSIC)
			return false;
	return true;
}

bool bare_filter(struct harness *h, const struct plan *plan, bool inside, const void *in,
                 uint32_t tile_rows, void *out)
{
	const struct image *image = &plan->image;
	const uint32_t needs = variant_rows[plan->list.step[0].kernel].needs;
	cl_command_queue queue = device_queue(&h->device, 0);
	struct matrix source, target;
	struct problem problem;
	uint32_t width, height, x0, y0;
	bool intact = true;

	if (!queue || chain_output_size(&plan->chain, image, &width, &height, &problem))
		die("no queue, or no result");
	x0 = plan->geometry.crop[0];
	y0 = plan->geometry.crop[1];
	source = matrix_new(h, plan, image->width, image->height, inside, false, in);
	target = matrix_new(h, plan, width, height, inside, needs & VARIANT_TARGET_IMAGE, NULL);
	for (uint32_t y = 0, rows = inside ? tile_rows : height; y < height; y += rows) {
		const uint32_t middle = inside ? random_below(width) : 0;

		for (uint32_t x = 0, end = middle; x < width; x = end, end = width) {
			const struct tile tile = {.width = end - x,
			                          .height = MIN(rows, height - y)};
			const cl_int left = (cl_int)(x0 + x), top = (cl_int)(y0 + y);
			const cl_int4 reach = {{-left, -top, (cl_int)image->width - 1 - left,
			                        (cl_int)image->height - 1 - top}};
			struct view views[PLACES] = {[PLACE_IN] = view_of(&source, x0 + x, y0 + y),
			                             [PLACE_OUT] = view_of(&target, x, y)};

			if (tile.width)
				intact &= run(h, queue, plan, &tile, &reach, views);
		}
	}
	intact &= take_part(&target, queue, out);
	matrix_free(&source);
	matrix_free(&target);
	clReleaseCommandQueue(queue);
	return intact;
}
