/* Any bytes as a still WebP file, through the worker's way without libvips. All samples are
 * written, or there is an error. The first byte says whether the rest is a file or what to change
 * in one. */
#include <webp/encode.h>

#include "codec/formats/bounds.h"
#include "reader.h"

enum { SIDE = 40, PIXELS_MAX = 1 << 18, BASES = 4, HEAD = 1 };

static struct {
	uint8_t *at;
	size_t size;
} bases[BASES];

/* Lossy or lossless, with or without alpha. */
static void make_base(int kind)
{
	static uint8_t pixels[SIDE * SIDE * 4];
	const int stride = SIDE * 4;

	for (size_t i = 0; i < sizeof pixels; i++)
		pixels[i] =
		    !(kind & 1) && i % 4 == 3 ? 255 : (uint8_t)(i * 7 + i / 160 * (i / 160));
	bases[kind].size = kind & 2
	                       ? WebPEncodeLosslessRGBA(pixels, SIDE, SIDE, stride, &bases[kind].at)
	                       : WebPEncodeRGBA(pixels, SIDE, SIDE, stride, 75, &bases[kind].at);
}

/* Reads every sample, for the sanitizer. */
static void decode(void *state, const struct image *image)
{
	const struct area all = {0, 0, image->width, image->height};
	uint8_t *pixels = malloc(image_size(image));
	struct problem problem = {0};
	unsigned sum = 0;

	if (webp_reader.rows(state, &all, pixels, image_row_size(image), &problem))
		must(problem.detail[0]);
	else
		for (size_t i = 0; i < image_size(image); i++)
			sum += pixels[i];
	must(sum < UINT32_MAX);
	free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
	struct decoded decoded = {0};
	struct body body = {0};
	void *state = NULL;
	uint8_t *file;

	for (int i = 0; i < BASES && !bases[i].size; i++)
		make_base(i);
	if (size < HEAD + 1)
		return 0;
	if (data[0] & 1) {
		size_t base = data[0] >> 1 & 3, length = bases[base].size;

		file = copy_of(bases[base].at, length);
		change(file, length, data + HEAD, size - HEAD);
		size = length;
	} else {
		size -= HEAD;
		file = copy_of(data + HEAD, size);
	}
	body = (struct body){file, size, false};
	if (!bounds_check(FORMAT_WEBP, file, size, &problem) &&
	    !reader_open(&webp_reader, &state, &decoded, &body, &problem) && decoded.plain &&
	    (uint64_t)decoded.whole.width * decoded.whole.height <= PIXELS_MAX)
		decode(state, &decoded.whole);
	reader_close(&webp_reader, &state);
	free(file);
	return 0;
}
