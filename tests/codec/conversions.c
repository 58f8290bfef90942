/* Formats that cannot hold an image's pixels as they are, and bare pixels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "pictures.h"

/* Returns a sample as another type, by double arithmetic. */
static double converted(const struct picture *p, size_t i, enum pixel_type to)
{
	double v, full = pixel_type_full_scale(to);

	if (p->image.type == to)
		return to == PIXEL_F32   ? (double)((float *)(void *)p->pixels)[i]
		       : to == PIXEL_U16 ? ((uint16_t *)(void *)p->pixels)[i]
		                         : p->pixels[i];
	v = p->image.type == PIXEL_U16 ? ((uint16_t *)(void *)p->pixels)[i] / 65535.0
	                               : (double)((float *)(void *)p->pixels)[i];
	v = v > 0 ? v : 0;
	return floor((v < 1 ? v : 1) * full + 0.5);
}

static struct picture convert(const struct picture *p, enum pixel_type to)
{
	struct picture c = {.image = p->image};
	size_t samples = (size_t)p->image.width * p->image.height * p->image.bands;

	c.image.type = to;
	c.pixels = malloc(image_size(&c.image));
	for (size_t i = 0; i < samples; i++) {
		double v = converted(p, i, to);

		if (to == PIXEL_U8)
			c.pixels[i] = (uint8_t)v;
		else if (to == PIXEL_U16)
			((uint16_t *)(void *)c.pixels)[i] = (uint16_t)v;
		else
			((float *)(void *)c.pixels)[i] = (float)v;
	}
	return c;
}

/* Checks that the answer decodes to the same picture as libvips's own file of the converted
 * picture. */
static void test_conversion(const struct picture *p, enum format format, enum pixel_type written,
                            const char *suffix)
{
	struct picture c = convert(p, written), seen;
	struct file file = file_of_picture(&c, suffix);
	struct reply reply;
	struct request request = {.body = p->pixels,
	                          .body_size = image_size(&p->image),
	                          .raw = &p->image,
	                          .filters = "box=size=3",
	                          .format = format,
	                          .expected = p,
	                          .samples_max = 3000};

	if (run_well(&request, &reply, suffix)) {
		picture_load(&seen, file.bytes, file.size);
		expect(picture_equals_file(&seen, reply.answer, reply.done.answer_size),
		       "raw %s x%u to %s: pixels differ", pixel_type_name(p->image.type),
		       p->image.bands, suffix);
		/* libvips reads a GIF of greys as grey; it is written as RGB. */
		expect(reply.done.image.type == seen.image.type &&
		           (reply.done.image.bands == seen.image.bands || format == FORMAT_GIF) &&
		           reply.done.format == format && reply.done.input_format == FORMAT_RAW,
		       "raw to %s: described as %ux%u", suffix, reply.done.image.bands,
		       reply.done.image.type);
		picture_fini(&seen);
		reply_fini(&reply);
	}
	file_fini(&file);
	picture_fini(&c);
}

static void test_all_conversions(void)
{
	static const enum pixel_type png[] = {PIXEL_U8, PIXEL_U16, PIXEL_U16};
	struct picture p;

	for (enum pixel_type type = PIXEL_U8; type < PIXEL_TYPES; type++)
		for (uint32_t bands = 1; bands <= 4; bands++) {
			bool alpha = bands % 2 == 0;

			picture_make(&p, 53, 90, bands, type, alpha);
			if (type == PIXEL_F32) {
				((float *)(void *)p.pixels)[0] = -3;
				((float *)(void *)p.pixels)[bands] = 70000;
			}
			test_conversion(&p, FORMAT_PNG, png[type], ".png");
			test_conversion(&p, FORMAT_TIFF, type, ".tif");
			test_conversion(&p, FORMAT_JPEG, PIXEL_U8, ".jpg[Q=85]");
			test_conversion(&p, FORMAT_WEBP, PIXEL_U8, ".webp[Q=80]");
			test_conversion(&p, FORMAT_GIF, PIXEL_U8, ".gif[effort=4]");
			if (!alpha)
				test_conversion(&p, FORMAT_PNM, type,
				                type == PIXEL_F32 ? ".pfm"
				                : bands == 1      ? ".pgm"
				                                  : ".ppm");
			picture_fini(&p);
		}
}

static void test_raw(void)
{
	struct picture p;
	struct reply reply;

	picture_make(&p, 301, 99, 4, PIXEL_F32, false);
	struct request request = {.body = p.pixels,
	                          .body_size = image_size(&p.image),
	                          .raw = &p.image,
	                          .filters = "box=size=5",
	                          .border = "wrap",
	                          .expected = &p,
	                          .samples_max = 3000,
	                          .reverse = true};
	if (run_well(&request, &reply, "raw")) {
		expect(reply.done.format == FORMAT_RAW &&
		           reply.done.answer_size == image_size(&p.image) &&
		           !memcmp(reply.answer, p.pixels, reply.done.answer_size),
		       "raw to raw: pixels differ");
		reply_fini(&reply);
	}
	request.format = FORMAT_PNG;
	expect_error(&request, ERR_UNENCODABLE, "four bands without alpha to png");
	request.body_size--;
	expect_error(&request, ERR_BAD_PARAMETER, "raw of another size");
	picture_fini(&p);
}

/* White is 1000 in this file, and 65535 in ours. */
static void test_pnm_maximum(void)
{
	static const char body[] = "P2\n# comment\n4 1\n1000\n0 500 999 1000\n";
	static uint16_t pixels[] = {0, 32768, 65469, 65535};
	struct picture expected = {.image = {4, 1, 1, PIXEL_U16, 0}, .pixels = (uint8_t *)pixels};
	struct request request = {.body = body,
	                          .body_size = sizeof body - 1,
	                          .filters = "box=size=1",
	                          .expected = &expected};
	struct reply reply;

	if (run_well(&request, &reply, "pgm of maximum 1000"))
		expect(picture_equals_file(&expected, reply.answer, reply.done.answer_size),
		       "pgm of maximum 1000: pixels differ");
	reply_fini(&reply);
}

void test_conversions(void)
{
	test_all_conversions();
	test_raw();
	test_pnm_maximum();
}
