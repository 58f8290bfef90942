/* Test images by way of libvips; raw copies of pixels on our side. */
#include "pictures.h"

#include <stdlib.h>
#include <string.h>

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, vips_error_buffer());
	exit(1);
}

static uint32_t noise(void)
{
	static uint32_t state = 12345;

	state = state * 1664525 + 1013904223;
	return state >> 16;
}

void picture_make(struct picture *p, uint32_t width, uint32_t height, uint32_t bands,
                  enum pixel_type type, bool alpha)
{
	size_t samples = (size_t)width * height * bands;

	p->image = (struct image){width, height, bands, type, alpha, {0}};
	p->pixels = malloc(image_size(&p->image));
	for (size_t i = 0; i < samples; i++) {
		uint32_t smooth = (uint32_t)(i / bands % width + i / bands / width) * 331;
		uint16_t value = (uint16_t)(smooth + noise() % 4096);

		image_put_sample(p->pixels, i, type,
		                 type == PIXEL_U8    ? value >> 8
		                 : type == PIXEL_U16 ? value
		                                     : value / 65535.0);
	}
}

void picture_fini(struct picture *p)
{
	free(p->pixels);
	p->pixels = NULL;
}

static VipsInterpretation interpretation(const struct image *image)
{
	if (image->bands - image->alpha == 1)
		return image->type == PIXEL_U16 ? VIPS_INTERPRETATION_GREY16
		                                : VIPS_INTERPRETATION_B_W;
	if (image->bands - image->alpha == 3)
		return image->type == PIXEL_U16   ? VIPS_INTERPRETATION_RGB16
		       : image->type == PIXEL_F32 ? VIPS_INTERPRETATION_scRGB
		                                  : VIPS_INTERPRETATION_sRGB;
	return image->bands == 4 ? VIPS_INTERPRETATION_CMYK : VIPS_INTERPRETATION_MULTIBAND;
}

VipsImage *picture_to_vips(const struct picture *p)
{
	static const VipsBandFormat formats[] = {VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT,
	                                         VIPS_FORMAT_FLOAT};
	VipsImage *vips = vips_image_new_from_memory_copy(
	    p->pixels, image_size(&p->image), (int)p->image.width, (int)p->image.height,
	    (int)p->image.bands, formats[p->image.type]);

	check(vips != NULL, "picture");
	vips->Type = interpretation(&p->image);
	return vips;
}

struct file file_save(VipsImage *image, const char *suffix)
{
	struct file file;

	check(!vips_image_write_to_buffer(image, suffix, &file.bytes, &file.size, NULL), suffix);
	return file;
}

struct file file_of_picture(const struct picture *p, const char *suffix)
{
	VipsImage *vips = picture_to_vips(p);
	struct file file = file_save(vips, suffix);

	g_object_unref(vips);
	return file;
}

struct file file_make(uint32_t width, uint32_t height, uint32_t bands, const char *suffix)
{
	struct picture p;
	struct file file;

	picture_make(&p, width, height, bands, PIXEL_U8, false);
	file = file_of_picture(&p, suffix);
	picture_fini(&p);
	return file;
}

struct file file_of_profile(const char *name)
{
	struct file file;
	VipsBlob *blob;
	const void *profile;

	check(!vips_profile_load(name, &blob, NULL), name);
	profile = vips_blob_get(blob, &file.size);
	file.bytes = g_memdup2(profile, file.size);
	vips_area_unref(VIPS_AREA(blob));
	return file;
}

void file_fini(struct file *file)
{
	g_free(file->bytes);
}

static void copy_pixels(struct picture *p, VipsImage *vips)
{
	size_t size;

	p->image = (struct image){
	    .width = (uint32_t)vips->Xsize,
	    .height = (uint32_t)vips->Ysize,
	    .bands = (uint32_t)vips->Bands,
	    .type = vips->BandFmt == VIPS_FORMAT_UCHAR    ? PIXEL_U8
	            : vips->BandFmt == VIPS_FORMAT_USHORT ? PIXEL_U16
	                                                  : PIXEL_F32,
	    .alpha = vips->Bands <= BANDS_MAX && vips_image_hasalpha(vips) ? 1 : 0,
	};
	p->pixels = vips_image_write_to_memory(vips, &size);
	check(p->pixels && size == image_size(&p->image), "pixels");
}

void picture_load(struct picture *p, const void *bytes, size_t size)
{
	/* Not from a buffer: libvips would hand PNM to ImageMagick. */
	VipsSource *source = vips_source_new_from_memory(bytes, size);
	VipsImage *vips = vips_image_new_from_source(source, "", NULL), *upright;

	check(vips != NULL, "load");
	check(!vips_autorot(vips, &upright, NULL), "autorot");
	copy_pixels(p, upright);
	g_object_unref(upright);
	g_object_unref(vips);
	g_object_unref(source);
}
