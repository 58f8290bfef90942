/* Pixels outside the ROI are those of `replicate`, the default border of a chain and the border of
 * the published kernels. */
#include "bench/bench.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "border.h"

enum { GUARD_ROWS = 16 }; /* above and below a target: the highest block of a published kernel */

/* Returns true if an object could be made; otherwise reports the failure. */
static bool is_made(const struct case_pixels *p, cl_int code)
{
	const struct image *image = &p->c->image;

	if (code)
		warnx("cannot make %ux%ux%u %s on the device: %s", image->width, image->height,
		      image->bands, pixel_type_rows[image->type].name, opencl_error_name(code));
	return !code;
}

/* Makes buffers with this content (NULL: none), and sets them in PAIRS views like this one. */
static void make_buffers(const struct case_pixels *p, const void *content, uint64_t size,
                         struct view like, struct view views[PAIRS])
{
	cl_int code = CL_SUCCESS;

	for (int i = 0; !code && i < PAIRS; i++) {
		views[i] = like;
		views[i].buffer =
		    device_buffer(&p->session->device, CL_MEM_READ_WRITE, size, NULL, &code);
		if (!code && content)
			code = clEnqueueWriteBuffer(p->session->queue, views[i].buffer, CL_TRUE, 0,
			                            size, content, 0, NULL, NULL);
	}
	if (!is_made(p, code))
		exit(1);
}

/* Does the same with images. pitch: of the content, in bytes. */
static bool make_images(const struct case_pixels *p, const struct image *image, const void *content,
                        size_t pitch, bool shares, struct view like, struct view views[PAIRS])
{
	const cl_image_format format = device_image_format(image->bands, image->type, shares);
	const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
	                            .image_width = image->width,
	                            .image_height = image->height};
	const size_t zero[3] = {0, 0, 0}, size[3] = {image->width, image->height, 1};
	cl_int code = CL_SUCCESS;

	for (int i = 0; !code && i < PAIRS; i++) {
		views[i] = like;
		views[i].image = object_add(OBJECT_IMAGE, clCreateImage(p->session->device.context,
		                                                        CL_MEM_READ_WRITE, &format,
		                                                        &desc, NULL, &code));
		if (!code && content)
			code = clEnqueueWriteImage(p->session->queue, views[i].image, CL_TRUE, zero,
			                           size, pitch, 0, content, 0, NULL, NULL);
	}
	return is_made(p, code);
}

/* Makes a form with pixels around the ROI, filled by the border rule: FORM_TILE, which stays on the
 * host, with the ROI's first pixel aligned; or FORM_PADDED as in the Sobel study, with rows of no
 * more than these pixels. */
static void make_padded(struct case_pixels *p, enum form form)
{
	const bool is_tile = form == FORM_TILE;
	const size_t image_row = image_row_size(&p->c->image);
	const int width = (int)p->source.width, height = (int)p->source.height;
	const uint64_t pixel = image_pixel_size(&p->c->image), align = is_tile ? ROW_ALIGNMENT : 1;
	struct extent x = {0, p->part.width}, y = {0, p->part.height};
	struct padding padding = p->padding;
	struct view view = {0};
	uint64_t lead, row, size;
	const char *from;
	char *bytes, *to;

	if (is_tile) {
		padding = (struct padding){p->geometry.halo[0], p->geometry.halo[1]};
		x = geometry_source(&p->geometry, 0, 0, p->result.width);
		y = geometry_source(&p->geometry, 1, 0, p->result.height);
	}
	lead = (padding.x * pixel + align - 1) / align * align;
	row = lead + (x.count + padding.x) * pixel;
	view.pitch = (uint32_t)(is_tile ? row_pitch(row) : row);
	view.origin = lead + (uint64_t)padding.y * view.pitch;
	size = view.pitch * (y.count + 2 * (uint64_t)padding.y);
	bytes = bench_alloc(size);
	from = (const char *)p->c->pixels + p->source.y * image_row + p->source.x * pixel;
	to = bytes + view.origin;
	for (int i = -(int)padding.y; i < (int)(y.count + padding.y); i++)
		for (int k = -(int)padding.x; k < (int)(x.count + padding.x); k++)
			memcpy(to + i * (ptrdiff_t)view.pitch + k * (ptrdiff_t)pixel,
			       from +
			           (size_t)border_map(y.first + i, height, BORDER_REPLICATE) *
			               image_row +
			           (size_t)border_map(x.first + k, width, BORDER_REPLICATE) * pixel,
			       pixel);
	make_buffers(p, bytes, size, view, p->source_view[form]);
	if (is_tile)
		p->tile = bytes;
	else
		free(bytes);
}

const char *case_first(const struct case_pixels *p, const struct window *w)
{
	const struct view *tile = &p->source_view[FORM_TILE][0];
	const struct geometry *g = &p->geometry;
	const int x = geometry_source(g, 0, w->x0, w->width).first -
	              geometry_source(g, 0, 0, p->result.width).first;
	const int y = geometry_source(g, 1, w->y0, w->height).first -
	              geometry_source(g, 1, 0, p->result.height).first;

	return p->tile + tile->origin + (size_t)y * tile->pitch +
	       (size_t)x * image_pixel_size(&p->part);
}

bool case_pixels_make(struct case_pixels *p, enum form form)
{
	const struct image *image = &p->c->image;
	const bool images = form == FORM_IMAGES;
	const size_t pixel = image_pixel_size(image), row = image_row_size(image);
	const size_t first = p->source.y * row + p->source.x * pixel;
	const size_t pitch = p->area.width * pixel;
	/* Rows of targets are aligned, and lie equally far apart in buffers and images. */
	const struct view target = {.pitch = (uint32_t)pitch,
	                            .origin =
	                                (p->target.y + GUARD_ROWS) * pitch + p->target.x * pixel};
	struct view *views = p->source_view[form];

	if (images && !p->target_view[1][0].pitch &&
	    !make_images(p, &p->area, NULL, 0, true, target, p->target_view[1]))
		return false;
	if (!images && !p->target_view[0][0].pitch)
		make_buffers(p, NULL, p->target_size, target, p->target_view[0]);
	if (views[0].pitch)
		return true;
	if (images || form == FORM_IMAGE)
		return make_images(p, &p->part, (const char *)p->c->pixels + first, row, images,
		                   (struct view){.pitch = 1}, views);
	if (form == FORM_BARE)
		make_buffers(p, p->c->pixels, image_size(image),
		             (struct view){.origin = first, .pitch = (uint32_t)row}, views);
	else
		make_padded(p, form);
	return true;
}

const struct view *case_target(const struct case_pixels *p, enum form form, uint32_t pair)
{
	return &p->target_view[form == FORM_IMAGES][pair];
}

static void check_inside(const char *option, const struct area *area, const struct image *image)
{
	if (!area_inside(area, image))
		errx(2,
		     "%s '%u,%u,%u,%u': expected a part of the %ux%u image: "
		     "X + WIDTH up to %u, Y + HEIGHT up to %u",
		     option, area->x, area->y, area->width, area->height, image->width,
		     image->height, image->width, image->height);
}

void case_pixels_init(struct case_pixels *p, const struct session *s, const struct bench_case *c)
{
	const struct bench_options *options = s->options;
	const size_t pixel = image_pixel_size(&c->image);
	struct problem problem;
	uint64_t pitch;

	*p = (struct case_pixels){.session = s, .c = c};
	p->padding = options->padding_given ? options->padding : (struct padding){16, 1};
	p->source = options->source_roi;
	p->target = options->target_roi;
	if (!p->source.width)
		p->source = p->target = (struct area){0, 0, c->image.width, c->image.height};
	check_inside("--source-roi", &p->source, &c->image);
	check_inside("--target-roi", &p->target, &c->image);
	p->part = c->image;
	p->part.width = p->source.width;
	p->part.height = p->source.height;
	if (chain_geometry(&c->chain, &p->part, &p->geometry, &problem))
		errx(2, "%s", problem.detail);
	p->result = p->part;
	p->result.width = p->geometry.size[0];
	p->result.height = p->geometry.size[1];
	p->area = c->image;
	if (p->geometry.resizes) {
		if (options->source_roi.width)
			errx(2, "--source-roi and --target-roi: not with a resize");
		p->target = (struct area){0, 0, p->result.width, p->result.height};
		p->area = p->result;
	}
	/* The target: rows as long as the image's or a little longer, with guards above and
	 * below. A copy of the source fits in. */
	pitch = row_pitch(image_row_size(&p->area));
	while (pitch % pixel) /* if there are three bands */
		pitch += ROW_ALIGNMENT;
	p->area.width = (uint32_t)(pitch / pixel);
	p->area.height += 2 * GUARD_ROWS;
	p->target_size = MAX(pitch * p->area.height, image_size(&p->part));
	case_pixels_make(p, FORM_TILE);
}

static void release(struct view *view)
{
	object_release(OBJECT_BUFFER, view->buffer);
	object_release(OBJECT_IMAGE, view->image);
	*view = (struct view){0};
}

void case_pixels_fini(struct case_pixels *p)
{
	for (int i = 0; i < PAIRS; i++) {
		for (int form = 0; form < FORMS; form++)
			release(&p->source_view[form][i]);
		for (int images = 0; images < 2; images++)
			release(&p->target_view[images][i]);
	}
	free(p->tile);
	p->tile = NULL;
}
