/* Writes PNM and raw pixels without libvips, which puts the date into PNM and writes PFM's rows in
 * the wrong order: they run from bottom to top. Runs in the job's encoding thread. */
#include "codec/pnm.h"

#include <stdio.h>
#include <string.h>

#include "codec/plain.h"
#include "common/file.h"

enum { HEAD_MAX = 64 };

static int print_head(const struct image *image, char text[HEAD_MAX])
{
	bool colour = image->bands == 3;

	/* A negative scale means little-endian floats. */
	if (image->type == PIXEL_F32)
		return snprintf(text, HEAD_MAX, "%s\n%u %u\n-1.0\n", colour ? "PF" : "Pf",
		                image->width, image->height);
	return snprintf(text, HEAD_MAX, "%s\n%u %u\n%u\n", colour ? "P6" : "P5", image->width,
	                image->height, image->type == PIXEL_U8 ? 255u : 65535u);
}

static void put_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	memcpy(to, row, image_row_size(&output->image));
}

/* PGM and PPM store the more significant byte first. */
static void put_swapped_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	size_t size = image_row_size(&output->image);

	for (size_t i = 0; i < size; i += 2) {
		to[i] = row[i + 1];
		to[i + 1] = row[i];
	}
}

enum error pnm_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem)
{
	const struct image *image = &output->image;
	struct plain_layout layout = {
	    .output = output, .row_size = image_row_size(image), .put = put_row};
	char head[HEAD_MAX];

	(void)metadata;
	if (output->format == FORMAT_PNM) {
		layout.start = (uint64_t)print_head(image, head);
		layout.bottom_up = image->type == PIXEL_F32;
		if (image->type == PIXEL_U16)
			layout.put = put_swapped_row;
	}
	if (!file_write(file, head, layout.start, 0))
		return plain_failed(problem);
	return plain_write(&layout, row, context, file, problem);
}
