/* Writes PNM, bare pixels and bitmaps, whose rows have places that are known beforehand: in large
 * pieces, each at its final place when it arrives, also from bottom to top. Runs in the job's
 * encoding thread. */
#include "codec/row_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "codec/icc_profile.h"
#include "codec/samples.h"

/* The rows of a file. */
struct layout {
	const struct output_format *output;
	uint64_t start;  /* bytes before the rows */
	size_t row_size; /* bytes */
	bool bottom_up;  /* the last row comes first */
	/* Makes a row of the file from one of the answer; the file's was zero, or another row. */
	void (*put)(const struct output_format *output, uint8_t *to, const uint8_t *row);
};

static enum error write_failed(struct problem *problem)
{
	return problem_set(problem, ERR_IO, "cannot write the answer");
}

/* Writes the head of a file and its rows. Rows that end too early are no error here. */
static enum error write_rows(const struct layout *l, const void *head, answer_row *next,
                             void *context, int file, struct problem *problem)
{
	const uint32_t height = output_rows(l->output);
	const uint32_t rows_max = (uint32_t)((256 << 10) / l->row_size) + 1;
	uint8_t *rows = calloc(rows_max, l->row_size);
	bool written = file_write(file, head, l->start, 0), ended = false;

	if (!rows)
		return problem_set(problem, ERR_MEMORY, "no memory to write the answer");
	for (uint32_t first = 0, count; written && !ended && first < height; first += count) {
		uint64_t place = first;

		count = height - first < rows_max ? height - first : rows_max;
		for (uint32_t i = 0; !ended && i < count; i++) {
			const uint8_t *row = next(context, first + i);
			uint32_t at = l->bottom_up ? count - 1 - i : i;

			ended = !row;
			if (row)
				l->put(l->output, rows + at * l->row_size, row);
		}
		if (l->bottom_up)
			place = height - first - count;
		if (!ended)
			written = file_write(file, rows, count * l->row_size,
			                     l->start + place * l->row_size);
	}
	free(rows);
	return written ? ERR_OK : write_failed(problem);
}

/* PNM and bare pixels ---------------------------------------------------------------------------
 */

static void copy_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	memcpy(to, row, image_row_size(&output->image));
}

/* PGM and PPM store the more significant byte first. */
static void copy_swapped_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	size_t size = image_row_size(&output->image);

	for (size_t i = 0; i < size; i += 2) {
		to[i] = row[i + 1];
		to[i + 1] = row[i];
	}
}

/* libvips puts the date into PNM and writes PFM's rows in the wrong order: they run from bottom to
 * top. */
enum error pnm_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem)
{
	const struct image *image = &output->image;
	const bool colour = image->bands == 3, floats = image->type == PIXEL_F32;
	struct layout layout = {
	    .output = output, .row_size = image_row_size(image), .put = copy_row};
	char head[64] = "";

	(void)metadata;
	if (output->format == FORMAT_PNM) {
		/* A negative scale means little-endian floats. */
		layout.start =
		    (uint64_t)snprintf(head, sizeof head, "%s\n%u %u\n%s\n",
		                       floats ? (colour ? "PF" : "Pf") : (colour ? "P6" : "P5"),
		                       image->width, image->height,
		                       floats                    ? "-1.0"
		                       : image->type == PIXEL_U8 ? "255"
		                                                 : "65535");
		layout.bottom_up = floats;
		if (image->type == PIXEL_U16)
			layout.put = copy_swapped_row;
	}
	return write_rows(&layout, head, row, context, file, problem);
}

/* Bitmaps ----------------------------------------------------------------------------------------
 *
 * 8 bits with a palette of greys, 24 bits, or 32 bits with masks, of which the last is alpha's. The
 * header is the shortest that can say so, as most readers know it. Layout: Microsoft,
 * BITMAPINFOHEADER, BITMAPV4HEADER and BITMAPV5HEADER. */

enum { FILE_HEAD = 14, INFO_HEAD = 40, V4_HEAD = 108, V5_HEAD = 124 };
enum { GREYS = 256, GREYS_SIZE = 4 * GREYS };
enum { WITH_MASKS = 3, FOR_IMAGES = 4 };

/* A bitmap up to its pixels. */
struct head {
	uint8_t bytes[FILE_HEAD + V5_HEAD + GREYS_SIZE];
	size_t bitmap; /* bytes of the bitmap's header */
	size_t size;   /* of all */
};

static void put(uint8_t *to, uint64_t number)
{
	for (size_t i = 0; i < 4; i++)
		to[i] = (uint8_t)(number >> 8 * i);
}

/* Per metre. */
static uint32_t density(double per_mm)
{
	return (uint32_t)fmin(rint(per_mm * 1000), INT32_MAX);
}

static void make_head(struct head *h, const struct output_format *output,
                      const struct file_metadata *m, uint64_t pixels, size_t profile)
{
	static const uint32_t masks[] = {0xff0000, 0xff00, 0xff, 0xff000000};
	const struct image *image = &output->image;
	uint8_t *bitmap = h->bytes + FILE_HEAD;
	bool grey = image->bands == 1;

	*h = (struct head){.bitmap = profile ? V5_HEAD : image->alpha ? V4_HEAD : INFO_HEAD};
	h->size = FILE_HEAD + h->bitmap + (grey ? GREYS_SIZE : 0);
	memcpy(h->bytes, "BM", 2);
	put(h->bytes + 2, h->size + pixels + profile);
	put(h->bytes + 10, h->size);
	put(bitmap, h->bitmap);
	put(bitmap + 4, image->width);
	put(bitmap + 8, image->height);
	put(bitmap + 12, 1 | 8 * image->bands << 16); /* planes and bits, of 16 bits each */
	put(bitmap + 16, image->alpha ? WITH_MASKS : 0);
	put(bitmap + 20, pixels);
	put(bitmap + 24, m ? density(m->resolution.x) : 0);
	put(bitmap + 28, m ? density(m->resolution.y) : 0);
	put(bitmap + 32, grey ? GREYS : 0);
	for (size_t i = 0; image->alpha && i < 4; i++)
		put(bitmap + 40 + 4 * i, masks[i]);
	if (h->bitmap > INFO_HEAD)
		memcpy(bitmap + 56, profile ? "DEBM" : "BGRs", 4); /* embedded, or sRGB */
	if (profile) {
		put(bitmap + 108, FOR_IMAGES);
		put(bitmap + 112, h->size - FILE_HEAD + pixels);
		put(bitmap + 116, profile);
	}
	for (uint32_t i = 0; grey && i < GREYS; i++)
		put(bitmap + h->bitmap + 4 * i, i * 0x10101);
}

static void put_bgr_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	if (output->image.bands > 1)
		samples_to_bgr(to, output->image.bands, output, row);
	else
		samples_convert(to, PIXEL_U8, row, output->result.type, output->image.width);
}

/* The profile, if it is one for the pixels: malloc'd; else NULL, of size 0. */
static enum error read_profile(const struct file_metadata *m, const struct image *image,
                               uint8_t **profile, size_t *size, struct problem *problem)
{
	*size = m ? file_metadata_profile_size(m) : 0;
	*profile = *size ? file_metadata_profile(m, size) : NULL;
	if (*size && !*profile)
		return problem_set(problem, ERR_MEMORY, "no memory for the profile");
	if (!*profile || icc_profile_fits(*profile, *size, image->bands - image->alpha))
		return ERR_OK;
	free(*profile);
	*profile = NULL;
	*size = 0;
	return ERR_OK;
}

enum error bmp_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem)
{
	const struct image *image = &output->image;
	struct layout layout = {.output = output,
	                        .row_size = (image_row_size(image) + 3) / 4 * 4,
	                        .bottom_up = true,
	                        .put = put_bgr_row};
	const uint64_t pixels = layout.row_size * (uint64_t)image->height;
	struct head head;
	uint8_t *profile;
	size_t size;
	enum error e = read_profile(metadata, image, &profile, &size, problem);

	if (e)
		return e;
	make_head(&head, output, metadata, pixels, size);
	layout.start = head.size;
	e = write_rows(&layout, head.bytes, row, context, file, problem);
	if (!e && profile && !file_write(file, profile, size, head.size + pixels))
		e = write_failed(problem);
	free(profile);
	return e;
}
