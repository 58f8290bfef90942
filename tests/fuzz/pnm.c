/* Any bytes as a PNM: of an accepted one every sample is written, in rows and in parts of them, and
 * nothing beside them. */
#include <stdlib.h>
#include <string.h>

#include "codec/pnm_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIXELS_MAX = 1 << 14, GUARD = 16 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* All rows at once. The caller frees. */
static uint8_t *read_all(const struct pnm *pnm, const struct image *image, uint8_t poison)
{
	size_t size = image_size(image);
	uint8_t *pixels = malloc(size + GUARD);

	memset(pixels, poison, size + GUARD);
	pnm_rows(pnm, 0, image->height, 0, image->width, pixels, image_row_size(image));
	for (size_t i = 0; i < GUARD; i++)
		must(pixels[size + i] == poison);
	return pixels;
}

static void read_part(const struct pnm *pnm, const struct image *image, const uint8_t *all)
{
	const uint32_t x = image->width / 3, y = image->height / 2,
	               width = (image->width - x + 1) / 2;
	const size_t pixel = image_pixel_size(image), size = width * pixel;
	uint8_t *part = malloc(size);

	pnm_rows(pnm, y, 1, x, width, part, size);
	must(!memcmp(part, all + y * image_row_size(image) + x * pixel, size));
	free(part);
}

static void read_pnm(struct pnm *pnm, const struct image *image, size_t size)
{
	struct problem problem = {0};
	uint8_t *first, *second;

	must(image->width && image->height && image->bands && image->bands <= IMAGE_BANDS_MAX);
	if ((uint64_t)image->width * image->height > PIXELS_MAX)
		return;
	if (pnm_begin(pnm, &problem)) {
		must(problem.detail[0]);
		return;
	}
	must(pnm_count(pnm) && pnm_count(pnm) <= size);
	first = read_all(pnm, image, 0);
	second = read_all(pnm, image, 0xff);
	must(!memcmp(first, second, image_size(image)));
	read_part(pnm, image, first);
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(size ? size : 1); /* so that the sanitizer knows its end */
	struct problem problem = {0};
	struct image image;
	struct pnm *pnm;
	bool cmyk;
	enum error e;

	if (size)
		memcpy(file, data, size);
	e = pnm_open(&pnm, &image, &cmyk, file, size, &problem);
	must(!e == !!pnm && !e == !problem.detail[0]);
	if (!e)
		read_pnm(pnm, &image, size);
	pnm_close(&pnm);
	free(file);
	return 0;
}
