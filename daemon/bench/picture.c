/* Random pixels, and image files read by libvips. */
#include "bench/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

/* A linear congruential generator (D. E. Knuth's MMIX). */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

void picture_random(const struct image *image, void *pixels)
{
	uint64_t state = 1;
	size_t count = (size_t)image->width * image->height * image->bands;

	for (size_t i = 0; i < count; i++) {
		uint32_t r = next_random(&state);

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

static enum error copy_pixels(VipsImage *from, const char *path, struct image *image, void **pixels)
{
	static const struct {
		VipsBandFormat format;
		enum pixel_type type;
	} types[] = {{VIPS_FORMAT_UCHAR, PIXEL_U8},
	             {VIPS_FORMAT_USHORT, PIXEL_U16},
	             {VIPS_FORMAT_FLOAT, PIXEL_F32}};
	size_t size;

	*image = (struct image){.width = (uint32_t)vips_image_get_width(from),
	                        .height = (uint32_t)vips_image_get_height(from),
	                        .bands = (uint32_t)vips_image_get_bands(from),
	                        .type = PIXEL_TYPES};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].format == vips_image_get_format(from))
			image->type = types[i].type;
	if (image->type == PIXEL_TYPES || !image_valid(image))
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
