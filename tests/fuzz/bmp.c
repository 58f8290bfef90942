/* Any bytes as a BMP: every sample of an accepted one is written, in rows and in parts of them, and
 * nothing beside them. */
#include <stdlib.h>
#include <string.h>

#include "codec/metadata/file_metadata.h"
#include "codec/formats/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIXELS_MAX = 1 << 16, GUARD = 16 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Reads all rows at once. The caller frees. */
static uint8_t *read_all(void *state, const struct image *image, uint8_t poison)
{
	const struct area all = {0, 0, image->width, image->height};
	struct problem problem;
	size_t size = image_size(image);
	uint8_t *pixels = malloc(size + GUARD);

	memset(pixels, poison, size + GUARD);
	must(!bmp_reader.rows(state, &all, pixels, image_row_size(image), &problem));
	for (size_t i = 0; i < GUARD; i++)
		must(pixels[size + i] == poison);
	return pixels;
}

static void read_part(void *state, const struct image *image, const uint8_t *all)
{
	const uint32_t x = image->width / 3;
	const struct area area = {x, image->height / 2, (image->width - x + 1) / 2, 1};
	const size_t pixel = image_pixel_size(image), size = area.width * pixel;
	uint8_t *part = malloc(size);
	struct problem problem;

	must(!bmp_reader.rows(state, &area, part, size, &problem));
	must(!memcmp(part, all + area.y * image_row_size(image) + x * pixel, size));
	free(part);
}

static void read_metadata(void *state)
{
	const struct file_metadata *m = bmp_reader.metadata(state);
	unsigned sum = 0;

	for (size_t i = 0; i < m->profile.size; i++)
		sum += m->profile.at[i];
	must(m->resolution.x > 0 && m->resolution.y > 0 && sum < UINT32_MAX);
}

static void read_bmp(void *state, const struct image *image)
{
	struct problem problem = {0};
	uint8_t *first, *second;

	read_metadata(state);
	must(image->width && image->height && image->bands >= 1 && image->bands <= 4);
	if ((uint64_t)image->width * image->height > PIXELS_MAX)
		return;
	if (bmp_reader.find(state, &problem)) {
		must(problem.detail[0]);
		return;
	}
	first = read_all(state, image, 0);
	second = read_all(state, image, 0xff);
	must(!memcmp(first, second, image_size(image)));
	read_part(state, image, first);
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy, so that the sanitizer knows its end. */
	struct body body = {malloc(size ? size : 1), size, false};
	struct problem problem = {0};
	struct decoded decoded = {0};
	void *state = NULL;
	enum error e;

	if (size)
		memcpy(body.at, data, size);
	e = reader_open(&bmp_reader, &state, &decoded, &body, &problem);
	must(!e == !!state && !e == !problem.detail[0] && !e == decoded.plain);
	if (!e)
		read_bmp(state, &decoded.whole);
	reader_close(&bmp_reader, &state);
	free(body.at);
	return 0;
}
