/* Any bytes as a still WebP file, through the worker's way without libvips. The first byte says
 * whether the rest is a file or what to change in one. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
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
	if (!bounds_check(FORMAT_WEBP, file, size, &problem))
		read_file(&webp_reader, file, size, PIXELS_MAX);
	free(file);
	return 0;
}
