/* Random pixels, and image files read by libvips. */
#include "bench/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

void picture_random(const struct image *image, void *pixels)
{
	uint64_t state = 1;
	size_t count = (size_t)image->width * image->height * image->bands;

	for (size_t i = 0; i < count; i++) {
		uint32_t r;

		/* A linear congruential generator (D. E. Knuth's MMIX). */
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		r = (uint32_t)(state >> 33);
		if (image->type == PIXEL_U8)
			((uint8_t *)pixels)[i] = (uint8_t)(r >> 8);
		else if (image->type == PIXEL_U16)
			((uint16_t *)pixels)[i] = (uint16_t)(r >> 8);
		else
			((float *)pixels)[i] = (float)r * 0x1p-30f - 1;
	}
}

static enum error refuse(const char *path, const char *why)
{
	fprintf(stderr, "convolved-bench: %s: %s\n", path, why);
	return ERR_NOT_AN_IMAGE;
}

static const VipsBandFormat formats[PIXEL_TYPES] = {
    [PIXEL_U8] = VIPS_FORMAT_UCHAR,
    [PIXEL_U16] = VIPS_FORMAT_USHORT,
    [PIXEL_F32] = VIPS_FORMAT_FLOAT,
};

static enum error copy_pixels(VipsImage *from, const char *path, struct image *image, void **pixels)
{
	size_t size;

	*image = (struct image){.width = (uint32_t)vips_image_get_width(from),
	                        .height = (uint32_t)vips_image_get_height(from),
	                        .bands = (uint32_t)vips_image_get_bands(from),
	                        .type = PIXEL_TYPES};
	for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
		if (formats[type] == vips_image_get_format(from))
			image->type = type;
	if (image->type == PIXEL_TYPES || !image_valid(image) || image_planes(image) > 1)
		return refuse(path, "expected 1 to 4 bands of 8-bit or 16-bit integers or floats");
	*pixels = vips_image_write_to_memory(from, &size);
	return *pixels ? ERR_OK : refuse(path, vips_error_buffer());
}

enum error picture_read(const char *path, struct image *image, void **pixels)
{
	VipsImage *from;
	enum error e;

	if (VIPS_INIT("convolved-bench"))
		return refuse(path, vips_error_buffer());
	from = vips_image_new_from_file(path, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
	if (!from)
		return refuse(path, vips_error_buffer());
	e = copy_pixels(from, path, image, pixels);
	g_object_unref(from);
	return e;
}

bool picture_can_write(const char *path)
{
	if (!VIPS_INIT("convolved-bench") && vips_foreign_find_save(path))
		return true;
	fprintf(stderr,
	        "convolved-bench: --output '%s': expected the name of a file that libvips can "
	        "write, e.g. out.png\n",
	        path);
	return false;
}

enum error picture_write(const char *path, const struct image *image, const void *pixels)
{
	VipsImage *bare =
	    vips_image_new_from_memory(pixels, image_size(image), (int)image->width,
	                               (int)image->height, (int)image->bands, formats[image->type]);
	VipsImage *all = NULL;
	const bool wide = image->type == PIXEL_U16, grey = image->bands < 3;
	const VipsInterpretation meaning = /* of the bands, for formats that ask */
	    grey ? (wide ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_B_W)
	         : (wide ? VIPS_INTERPRETATION_RGB16 : VIPS_INTERPRETATION_sRGB);
	int failed = !bare || vips_copy(bare, &all, "interpretation", meaning, NULL) ||
	             vips_image_write_to_file(all, path, NULL);

	if (failed)
		fprintf(stderr, "convolved-bench: %s: %s\n", path, vips_error_buffer());
	if (all)
		g_object_unref(all);
	if (bare)
		g_object_unref(bare);
	return failed ? ERR_IO : ERR_OK;
}
