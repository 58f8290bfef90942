/* Any bytes as a BMP: of an accepted one every sample is written, in rows and in parts of them, and
 * nothing beside them. */
#include <stdlib.h>
#include <string.h>

#include "codec/bmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIXELS_MAX = 1 << 16, GUARD = 16 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* All rows at once. The caller frees. */
static uint8_t *read_all(struct bmp *bmp, const struct image *image, uint8_t poison)
{
	size_t size = image_size(image);
	uint8_t *pixels = malloc(size + GUARD);

	memset(pixels, poison, size + GUARD);
	bmp_rows(bmp, 0, image->height, 0, image->width, pixels, image_row_size(image));
	for (size_t i = 0; i < GUARD; i++)
		must(pixels[size + i] == poison);
	return pixels;
}

static void read_part(struct bmp *bmp, const struct image *image, const uint8_t *all)
{
	const uint32_t x = image->width / 3, y = image->height / 2,
	               width = (image->width - x + 1) / 2;
	const size_t pixel = image_pixel_size(image), size = width * pixel;
	uint8_t *part = malloc(size);

	bmp_rows(bmp, y, 1, x, width, part, size);
	must(!memcmp(part, all + y * image_row_size(image) + x * pixel, size));
	free(part);
}

static void read_metadata(const struct bmp *bmp)
{
	const struct file_metadata m = bmp_metadata(bmp);
	unsigned sum = 0;

	for (size_t i = 0; i < m.profile[0].size; i++)
		sum += m.profile[0].at[i];
	must(m.resolution.x > 0 && m.resolution.y > 0 && sum < UINT32_MAX);
}

static void read_bmp(struct bmp *bmp)
{
	struct image image = bmp_image(bmp);
	struct problem problem = {0};
	uint8_t *first, *second;

	read_metadata(bmp);
	must(image.width && image.height && image.bands >= 1 && image.bands <= 4);
	if ((uint64_t)image.width * image.height > PIXELS_MAX)
		return;
	if (bmp_begin(bmp, &problem)) {
		must(problem.detail[0]);
		return;
	}
	first = read_all(bmp, &image, 0);
	second = read_all(bmp, &image, 0xff);
	must(!memcmp(first, second, image_size(&image)));
	read_part(bmp, &image, first);
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
	struct bmp *bmp;
	enum error e;
	uint8_t *file = malloc(size ? size : 1); /* so that the sanitizer knows its end */

	if (size)
		memcpy(file, data, size);
	e = bmp_open(&bmp, file, size, &problem);
	must(!e == !!bmp && !e == !problem.detail[0]);
	if (!e)
		read_bmp(bmp);
	bmp_close(&bmp);
	free(file);
	return 0;
}
