/* Any bytes as a still WebP file of any size, through the worker's way without libvips. All samples
 * are written, or none are returned. The first bytes say which size is asked for, and whether the
 * rest is a file or what to change in one. */
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

#include "codec/bounds.h"
#include "codec/webp_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIDE = 40, PIXELS_MAX = 1 << 18, BASES = 4, HEAD = 2 };

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

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Changes bytes: of each three of the data two are the place, and one the value. */
static void change(uint8_t *file, size_t file_size, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		file[((unsigned)data[0] << 8 | data[1]) % file_size] = data[2];
}

/* Reads every sample, for the sanitizer. */
static void decode(const uint8_t *file, size_t size, uint32_t width, uint32_t height,
                   uint32_t bands)
{
	uint8_t *pixels = webp_decode(file, size, width, height, bands);
	unsigned sum = 0;

	for (size_t i = 0; pixels && i < (size_t)width * height * bands; i++)
		sum += pixels[i];
	must(pixels || !sum);
	free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	WebPBitstreamFeatures features;
	struct problem problem = {0};
	uint32_t bands;
	uint8_t *file;

	for (int i = 0; i < BASES && !bases[i].size; i++)
		make_base(i);
	if (size < HEAD + 1)
		return 0;
	if (data[0] & 1) {
		size_t base = data[0] >> 1 & 3, length = bases[base].size;

		file = malloc(length);
		memcpy(file, bases[base].at, length);
		change(file, length, data + HEAD, size - HEAD);
		size = length;
	} else {
		size -= HEAD;
		file = malloc(size);
		memcpy(file, data + HEAD, size);
	}
	bands = 3 + (data[0] >> 3 & 1);
	must(!webp_decode(file, size, 0, 0, bands));
	decode(file, size, SIDE, data[1], bands);
	if (!bounds_check(FORMAT_WEBP, file, size, &problem) &&
	    WebPGetFeatures(file, size, &features) == VP8_STATUS_OK &&
	    (uint64_t)features.width * (uint64_t)features.height <= PIXELS_MAX)
		decode(file, size, (uint32_t)features.width, (uint32_t)features.height, bands);
	free(file);
	return 0;
}
