/* Any bytes as a PNG, through the worker's way without libvips: an image that is read is written
 * again, with its metadata, and must be read again, with the same pixels; and each frame of an
 * animation lies in the image and is a PNG of its size. The first byte says whether the rest is a
 * file, chunks of one, or its rows with the numbers of their filters. Checksums are right. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdeflate.h>

#include "base/file.h"
#include "codec/formats/apng.h"
#include "codec/formats/bounds.h"
#include "codec/formats/png_metadata.h"
#include "reader.h"

enum { FILE_MAX = 1 << 16, HEAD = 3 };

struct bytes {
	uint8_t at[2 * FILE_MAX];
	size_t size;
};

static void add_chunk(struct bytes *file, const char *name, const uint8_t *data, size_t size)
{
	uint8_t *at = file->at + file->size;

	memcpy(at + 4, name, 4);
	if (size)
		memcpy(at + PNG_CHUNK_HEAD, data, size);
	png_chunk_seal(at, (uint32_t)size);
	file->size += PNG_CHUNK_FRAME + size;
}

static void seal_all(struct bytes *file)
{
	for (size_t at = PNG_SIGNATURE; at + PNG_CHUNK_FRAME <= file->size;) {
		uint64_t size = bytes_number(file->at + at, 4, true);

		if (size > file->size - at - PNG_CHUNK_FRAME)
			return;
		png_chunk_seal(file->at + at, (uint32_t)size);
		at += PNG_CHUNK_FRAME + size;
	}
}

/* Rows of the data, or of zeros, deflated. */
static void add_rows(struct bytes *file, size_t all, const uint8_t *data, size_t size)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
	uint8_t *rows = calloc(1, all), *stream = malloc(all + 1000);

	memcpy(rows, data, size < all ? size : all);
	add_chunk(file, "IDAT", stream, libdeflate_zlib_compress(c, rows, all, stream, all + 1000));
	libdeflate_free_compressor(c);
	free(rows);
	free(stream);
}

/* The kind describes the image; a chunk's first bytes, which chunk it is. */
static void make_file(struct bytes *file, const uint8_t kind[HEAD], const uint8_t *data,
                      size_t size)
{
	static const char names[][5] = {"gAMA", "cHRM", "sRGB", "iCCP", "pHYs", "eXIf",
	                                "sBIT", "bKGD", "tIME", "tEXt", "zTXt", "iTXt",
	                                "tRNS", "acTL", "cICP", "mDCV", "cLLI"};
	static const uint8_t colours[] = {0, 2, 4, 6}, bands[] = {1, 3, 2, 4};
	uint8_t header[13] = {0, 0, 0, kind[1] % 40, 0, 0, 0, kind[2] % 40};
	size_t row = header[3] * (size_t)bands[kind[0] >> 2 & 3] * (kind[0] & 16 ? 2 : 1);

	memcpy(file->at, "\x89PNG\r\n\x1a\n", PNG_SIGNATURE);
	file->size = PNG_SIGNATURE;
	header[8] = kind[0] & 16 ? 16 : 8;
	header[9] = colours[kind[0] >> 2 & 3];
	add_chunk(file, "IHDR", header, sizeof header);
	if (kind[0] & 1 && size)
		add_chunk(file, names[*data % (sizeof names / sizeof *names)], data + 1, size - 1);
	add_rows(file, header[7] * (row + 1), data, kind[0] & 1 ? 0 : size);
	add_chunk(file, "IEND", NULL, 0);
}

/* Returns the pixels, which the caller frees; NULL: they are not for the reader. */
static uint8_t *read_pixels(void *state, const struct decoded *decoded)
{
	struct problem problem = {0};

	if (!decoded->plain || png_reader.find(state, &problem))
		return NULL;
	return read_all(&png_reader, state, &decoded->whole, 0);
}

/* Writes the answer, and reads it again. */
static void encode(void *state, const struct image *image, uint8_t *pixels, bool strip)
{
	static int file = -1;
	static struct bytes answer;
	const struct output_format output = {
	    .format = FORMAT_PNG, .result = *image, .image = *image, .pages = 1, .strip = strip};
	struct rows rows = {pixels, image_row_size(image)};
	struct file_metadata metadata;
	struct answer written = {
	    .output = &output, .metadata = &metadata, .row = give_row, .context = &rows};
	struct problem problem = {0};
	struct decoded decoded = {0};
	struct body body = {.at = answer.at};
	struct stat status;
	uint8_t *again;
	void *back = NULL;

	if (file < 0)
		file = memfd_create("answer", MFD_CLOEXEC);
	must(!ftruncate(file, 0));
	must(file_metadata_answer(&metadata, reader_metadata(&png_reader, state), output.format,
	                          image, strip));
	written.file = file;
	must(!png_writer.write(&written, &problem));
	file_metadata_free(&metadata);
	must(!fstat(file, &status));
	if ((size_t)status.st_size > sizeof answer.at)
		return;
	body.size = (size_t)status.st_size;
	must(file_read(file, answer.at, body.size, 0));
	must(!reader_open(&png_reader, &back, &decoded, &body, &problem) && !decoded.lost);
	must(!memcmp(&decoded.whole, image, sizeof *image));
	again = read_pixels(back, &decoded);
	must(again && !memcmp(again, pixels, image_size(image)));
	free(again);
	reader_close(&png_reader, &back);
}

/* Puts a frame's row, all of one value, on a canvas that ends where the image does. */
static void blend(const struct apng *apng, const struct apng_frame *f)
{
	const struct image image = {f->width, 1, 4, f->x & 1 ? PIXEL_U8 : PIXEL_U16, 1, {0}};
	uint8_t *row, *above;

	if (f->width > 1000 || f->x + f->width != apng->width)
		return;
	row = calloc(1, image_size(&image));
	above = malloc(image_size(&image));
	memset(above, (int)f->y, image_size(&image));
	apng_blend_row(row, above, f->width, &image, f->blend);
	must(!memcmp(row, above, image_size(&image)) || !(f->y & 255)); /* over nothing */
	free(row);
	free(above);
}

static void look_at_frames(const uint8_t *file, size_t file_size, uint32_t count)
{
	struct problem problem = {0};
	struct apng apng;
	size_t size;

	if (apng_open(&apng, file, file_size, count, &problem)) {
		must(!apng.frames && *problem.detail);
		return;
	}
	must(apng.count == count);
	for (uint32_t i = 0; i < count; i++) {
		const struct apng_frame *f = apng.frames + i;
		uint8_t *still = apng_frame_file(&apng, i, &size);
		const uint8_t *at = still + PNG_SIGNATURE, *end = still + size;
		struct png_chunk c;

		must(f->width && f->height && f->x + (uint64_t)f->width <= apng.width &&
		     f->y + (uint64_t)f->height <= apng.height);
		must(png_chunk_next(&at, end, &c) && png_chunk_is(&c, "IHDR") &&
		     bytes_number(c.data, 4, true) == f->width &&
		     bytes_number(c.data + 4, 4, true) == f->height);
		while (at < end)
			must(png_chunk_next(&at, end, &c) && png_chunk_is_sound(&c));
		must(png_chunk_is(&c, "IEND"));
		free(still);
		blend(&apng, f);
	}
	apng_close(&apng);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bytes file;
	struct problem problem = {0};
	struct decoded decoded = {0};
	struct body body = {0};
	void *state = NULL;
	uint8_t *pixels;

	if (size <= HEAD || size > FILE_MAX)
		return 0;
	if (data[0] & 2) {
		file.size = size - HEAD;
		memcpy(file.at, data + HEAD, file.size);
		seal_all(&file);
	} else {
		make_file(&file, data, data + HEAD, size - HEAD);
	}
	if (file.size < PNG_SIGNATURE || bounds_check(FORMAT_PNG, file.at, file.size, &problem))
		return 0;
	body = (struct body){copy_of(file.at, file.size), file.size, false};
	look_at_frames(body.at, file.size, 1 + data[1] % 4);
	must(!reader_open(&png_reader, &state, &decoded, &body, &problem));
	pixels = read_pixels(state, &decoded);
	if (pixels)
		encode(state, &decoded.whole, pixels, data[0] & 32);
	free(pixels);
	reader_close(&png_reader, &state);
	free(body.at);
	return 0;
}
