/* Writes PNM and raw pixels without libvips, which puts the date into PNM and writes PFM's rows in
 * the wrong order. Runs in the job's encoding thread.
 *
 * PFM's rows run from bottom to top. The size of the file is known, so each row is written at its
 * final position when it arrives. */
#include "codec/pnm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"

struct plain {
	const struct output_format *output;
	answer_row *row;
	void *context;
	int file;
	uint64_t header; /* bytes */
	size_t row_size;
	uint8_t *rows; /* rows not written yet */
	uint32_t rows_max, first, count;
};

static bool bottom_up(const struct plain *p)
{
	return p->output->format == FORMAT_PNM && p->output->image.type == PIXEL_F32;
}

static enum error write_header(struct plain *p)
{
	const struct image *image = &p->output->image;
	bool colour = image->bands == 3;
	char text[64];
	int size;

	if (p->output->format == FORMAT_RAW)
		return ERR_OK;
	/* A negative scale means little-endian floats. */
	if (image->type == PIXEL_F32)
		size = snprintf(text, sizeof text, "%s\n%u %u\n-1.0\n", colour ? "PF" : "Pf",
		                image->width, image->height);
	else
		size =
		    snprintf(text, sizeof text, "%s\n%u %u\n%u\n", colour ? "P6" : "P5",
		             image->width, image->height, image->type == PIXEL_U8 ? 255u : 65535u);
	p->header = (uint64_t)size;
	return file_write(p->file, text, p->header, 0) ? ERR_OK : ERR_IO;
}

/* PGM and PPM store the more significant byte first. */
static void copy_row(const struct plain *p, uint8_t *to, const uint8_t *from)
{
	if (p->output->format == FORMAT_RAW || p->output->image.type != PIXEL_U16) {
		memcpy(to, from, p->row_size);
		return;
	}
	for (size_t i = 0; i < p->row_size; i += 2) {
		to[i] = from[i + 1];
		to[i + 1] = from[i];
	}
}

static enum error flush(struct plain *p)
{
	uint32_t place = p->first;

	if (bottom_up(p))
		place = p->output->image.height - p->first - p->count;
	p->first += p->count;
	return file_write(p->file, p->rows, p->count * p->row_size,
	                  p->header + (uint64_t)place * p->row_size)
	           ? ERR_OK
	           : ERR_IO;
}

/* Takes as many of the next rows as fit; false if they end. */
static bool take_rows(struct plain *p)
{
	uint32_t left = p->output->image.height - p->first;

	p->count = left < p->rows_max ? left : p->rows_max;
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t place = bottom_up(p) ? p->count - 1 - i : i;
		const uint8_t *row = p->row(p->context, p->first + i);

		if (!row)
			return false;
		copy_row(p, p->rows + place * p->row_size, row);
	}
	return true;
}

static enum error write_rows(struct plain *p)
{
	enum error e = write_header(p);

	while (!e && p->first < p->output->image.height && take_rows(p))
		e = flush(p);
	return e;
}

enum error pnm_write(const struct output_format *output, answer_row *row, void *context, int file,
                     struct problem *problem)
{
	struct plain p = {.output = output,
	                  .row = row,
	                  .context = context,
	                  .file = file,
	                  .row_size = image_row_size(&output->image)};
	enum error e;

	p.rows_max = (uint32_t)((256 << 10) / p.row_size) + 1;
	p.rows = malloc(p.rows_max * p.row_size);
	if (!p.rows)
		return problem_set(problem, ERR_MEMORY, "no memory to write the answer");
	e = write_rows(&p);
	free(p.rows);
	return e ? problem_set(problem, e, "cannot write the answer") : ERR_OK;
}
