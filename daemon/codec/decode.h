/* Decoding: an image file, or bare pixels, read row by row into tiles. */
#ifndef CODEC_DECODE_H
#define CODEC_DECODE_H

#include <vips/vips.h>

#include "codec/tiles.h"

/* The input of a job. */
struct input {
	int body;             /* descriptor; the job's */
	enum format format;
	struct image image;   /* after orientation */
	VipsImage *vips;      /* NULL for bare pixels */
	bool whole;           /* must be decoded whole, not row by row */
	bool in_memory;       /* any row can be read at any time */
};

/* Reads the header, and refuses what is not an image, has too many pixels or pixels of a kind that
 * cannot be filtered. Nothing is decoded yet. input_close() in every case. */
enum error input_open(struct input *input, const struct message_job *job, int body,
                      struct problem *problem) MUST_CHECK;
void input_close(struct input *input);

/* Decodes the whole input into tiles, in order; ends early if the job fails. Returns the time that
 * it was busy, in ns. */
uint64_t input_decode(struct input *input, struct tiles *tiles);

/* The last message of libvips as one line of at most size bytes, and forgets it. */
void vips_problem(char *line, size_t size);

/* Where a region holds a pixel of so many bytes (VIPS_REGION_ADDR without its mixture of signs). */
static inline void *region_row(const VipsRegion *region, size_t pixel, int x, int y)
{
	return region->data + (ptrdiff_t)(y - region->valid.top) * region->bpl +
	       (x - region->valid.left) * (ptrdiff_t)pixel;
}

#endif
