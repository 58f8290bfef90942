/* Pixels and images: the tables behind image.h. */
#include "image/image.h"

#include <stdio.h>
#include <string.h>

const struct pixel_type_row pixel_type_rows[PIXEL_TYPES] = {
    [PIXEL_U8] = {"u8", 1, 255, 128},
    [PIXEL_U16] = {"u16", 2, 65535, 32768},
    [PIXEL_F32] = {"f32", 4, 1, 0},
};

size_t image_pixel_size(const struct image *image)
{
	return image->bands * pixel_type_rows[image->type].size;
}

size_t image_row_size(const struct image *image)
{
	return image->width * image_pixel_size(image);
}

uint64_t image_pixels(const struct image *image)
{
	return (uint64_t)image->width * image->height;
}

uint64_t image_size(const struct image *image)
{
	return (uint64_t)image_row_size(image) * image->height;
}

/* Checks a direction of a draft. */
static bool covers(uint32_t original, int32_t before, int32_t after, uint32_t side)
{
	const int64_t covered = (int64_t)original + before + after;

	return original >= 1 && original <= IMAGE_SIDE_MAX && before > -DRAFT_MAX &&
	       before < DRAFT_MAX && after > -DRAFT_MAX && after < DRAFT_MAX && covered >= side &&
	       covered <= (int64_t)side * DRAFT_MAX;
}

static bool draft_valid(const struct image *image)
{
	static const struct draft none;
	const struct draft *d = &image->draft;

	return !memcmp(d, &none, sizeof none) ||
	       (covers(d->width, d->before[0], d->after[0], image->width) &&
	        covers(d->height, d->before[1], d->after[1], image->height));
}

bool image_valid(const struct image *image)
{
	return image->width >= 1 && image->width <= IMAGE_SIDE_MAX && image->height >= 1 &&
	       image->height <= IMAGE_SIDE_MAX && image->bands >= 1 &&
	       image->bands <= IMAGE_BANDS_MAX && image->type < PIXEL_TYPES && draft_valid(image) &&
	       (!image->alpha ||
	        (image->alpha == 1 && image->bands % 2 == 0 && image->bands <= BANDS_MAX));
}

void image_shrink(struct image *image, uint32_t width, uint32_t height, uint32_t by)
{
	image->draft = (struct draft){.width = image->width, .height = image->height};
	if (by) {
		image->draft.after[0] = (int32_t)(width * by - image->width);
		image->draft.after[1] = (int32_t)(height * by - image->height);
	}
	image->width = width;
	image->height = height;
}

uint32_t image_planes(const struct image *image)
{
	return image->bands > BANDS_MAX ? image->bands : 1;
}

struct image image_plane(const struct image *image)
{
	struct image plane = *image;

	if (image_planes(image) > 1)
		plane.bands = 1;
	return plane;
}

bool image_parse(const char *text, struct image *image)
{
	unsigned width, height, bands;
	char type[4], rest;

	if (strspn(text, "0123456789") == 0 ||
	    sscanf(text, "%7ux%7ux%2u:%3s%c", &width, &height, &bands, type, &rest) != 4)
		return false;
	*image = (struct image){.width = width, .height = height, .bands = bands};
	while (image->type < PIXEL_TYPES && strcmp(type, pixel_type_rows[image->type].name))
		image->type++;
	return image_valid(image);
}

double image_get_sample(const void *pixels, size_t i, enum pixel_type type)
{
	return type == PIXEL_U8    ? ((const uint8_t *)pixels)[i]
	       : type == PIXEL_U16 ? ((const uint16_t *)pixels)[i]
	                           : ((const float *)pixels)[i];
}

void image_put_sample(void *pixels, size_t i, enum pixel_type type, double value)
{
	if (type == PIXEL_U8)
		((uint8_t *)pixels)[i] = (uint8_t)value;
	else if (type == PIXEL_U16)
		((uint16_t *)pixels)[i] = (uint16_t)value;
	else
		((float *)pixels)[i] = (float)value;
}

bool area_parse(const char *text, struct area *area)
{
	char rest;

	return strspn(text, "0123456789,") == strlen(text) &&
	       sscanf(text, "%7u,%7u,%7u,%7u%c", &area->x, &area->y, &area->width, &area->height,
	              &rest) == 4 &&
	       area->width >= 1 && area->width <= IMAGE_SIDE_MAX && area->height >= 1 &&
	       area->height <= IMAGE_SIDE_MAX;
}

bool area_inside(const struct area *area, const struct image *image)
{
	return area->width <= image->width && area->height <= image->height &&
	       area->x <= image->width - area->width && area->y <= image->height - area->height;
}
