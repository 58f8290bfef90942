/* Makes the rows of the answer: those of the result or, with a target, those of the whole image
 * with the result placed on it. If the target moves the result up or down, the answer needs the
 * image's rows at other times than the decoding thread reads them. The encoding thread, in which
 * all of this runs, therefore decodes the image a second time. */
#include "codec/tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "codec/decode.h"
#include "codec/formats/samples.h"

struct composer {
	struct tiles *tiles;
	/* Rows of the result are counted over all pages. */
	uint32_t freed;             /* rows of the result that were freed with their tiles */
	uint32_t filtered;          /* rows of the result that are known to be there */
	uint32_t x, y;              /* position of the result in a page of the answer */
	struct decoder *background; /* NULL: the answer is the result */
	struct image image;         /* a page of the background */
	uint8_t *rows; /* background of the answer's rows `first` to first + count - 1 */
	uint32_t rows_max, first, count;
	uint8_t *woven; /* the last requested row of the result, if there are planes */
};

enum {
	ROWS_SIZE = 256 << 10, /* bytes of background decoded at a time */
	STEP = 16              /* rows between two looks at whether the job was stopped */
};

enum error compose_size(const struct message_job *job, const struct image *whole,
                        const struct tiling *tiling, struct image *answer, struct problem *problem)
{
	const struct area place = {job->target_x, job->target_y, tiling->width, tiling->height};
	char value[32];

	answer->draft = (struct draft){0};
	answer->width = job->has_target ? whole->width : tiling->width;
	answer->height = job->has_target ? whole->height : tiling->height;
	if (!job->has_target || area_inside(&place, whole))
		return ERR_OK;
	snprintf(value, sizeof value, "%u,%u", place.x, place.y);
	if (place.width > whole->width || place.height > whole->height)
		return bad_parameter(
		    problem, "target", value,
		    "the result is %ux%u and the image %ux%u: expected a result no larger",
		    place.width, place.height, whole->width, whole->height);
	return bad_parameter(
	    problem, "target", value,
	    "the result is %ux%u and the image %ux%u: for target x is at most %u and y at most %u",
	    place.width, place.height, whole->width, whole->height, whole->width - place.width,
	    whole->height - place.height);
}

enum error compose_open(struct composer **composer, struct tiles *tiles, int body,
                        struct problem *problem)
{
	struct message_job whole = *tiles->job;
	struct composer *c = calloc(1, sizeof *c);
	struct decoded decoded;
	enum error e;

	*composer = c;
	if (!c)
		return no_memory(problem, "to compose");
	c->tiles = tiles;
	if (!whole.has_target)
		return ERR_OK;
	c->x = whole.target_x;
	c->y = whole.target_y;
	whole.roi = (struct area){0};
	e = decode_open(&c->background, &decoded, &whole, NULL, body, NULL, problem);
	if (!e) {
		c->image = decoded.image;
		c->rows_max = (uint32_t)(ROWS_SIZE / image_row_size(&c->image)) + 1;
		c->rows = malloc(c->rows_max * image_row_size(&c->image));
		if (!c->rows)
			e = no_memory(problem, "for the image");
	}
	if (e)
		compose_close(composer);
	return e;
}

void compose_close(struct composer **composer)
{
	if (!*composer)
		return;
	decode_close(&(*composer)->background);
	free((*composer)->rows);
	free((*composer)->woven);
	free(*composer);
	*composer = NULL;
}

/* Returns a row of the result, interleaved from its planes; waits until it is filtered. Must be
 * called only for every STEPth row of a tile. */
static const uint8_t *result_row(struct composer *c, uint32_t row)
{
	const struct tiling *t = &c->tiles->tiling;
	const size_t size = image_pixel_size(&t->image);
	const uint32_t left = t->rows - tiling_row_in_strip(t, row),
	               below = t->height - row % t->height;
	const uint8_t *first;

	if (row < c->freed)
		return NULL;
	if (row >= c->filtered) {
		if (!verify_await(c->tiles, tiling_strip(t, row)))
			return NULL;
		c->filtered = row + MIN(MIN(left, below), STEP);
	}
	first = tiles_out_row(c->tiles, row);
	if (t->planes == 1)
		return first;
	if (!c->woven)
		c->woven = malloc(t->width * size * t->planes);
	if (c->woven)
		samples_weave(c->woven, first, t->out_plane, t->planes, t->width, size);
	else
		fail_with(tiles_stop, c->tiles, ERR_MEMORY, "no memory for a row of the result");
	return c->woven;
}

static const uint8_t *composed_row(void *context, uint32_t y)
{
	struct composer *c = context;
	const struct tiling *t = &c->tiles->tiling;
	const size_t pixel = image_pixel_size(&c->image);
	const size_t pitch = image_row_size(&c->image);
	const uint8_t *result;
	uint32_t row;
	uint8_t *whole;

	if (!c->background)
		return result_row(c, y);
	row = y % c->image.height;
	if (y < c->first)
		return NULL;
	if (y >= c->first + c->count) {
		struct problem problem = {0};
		enum error e;

		if (tiles_stopped(c->tiles))
			return NULL;
		c->first = y;
		c->count = MIN(c->image.height - row, c->rows_max);
		decode_page(c->background, y / c->image.height);
		e = decode_rows(c->background, row, c->count, c->rows, pitch, &problem);
		decode_leave(c->background); /* closed by another thread */
		if (e) {
			tiles_stop(c->tiles, e, &problem);
			return NULL;
		}
	}
	whole = c->rows + (y - c->first) * pitch;
	if (row < c->y || row - c->y >= t->height)
		return whole;
	result = result_row(c, y / c->image.height * t->height + row - c->y);
	if (!result)
		return NULL;
	memcpy(whole + c->x * pixel, result, t->width * pixel);
	return whole;
}

static void free_above(void *context, uint32_t y)
{
	struct composer *c = context;
	const struct tiling *t = &c->tiles->tiling;
	uint32_t height = c->background ? c->image.height : t->height;
	uint32_t row = y % height > c->y ? y % height - c->y : 0;

	row = y / height * t->height + MIN(row, t->height);
	row -= tiling_row_in_strip(t, row);
	if (row <= c->freed)
		return;
	c->freed = row;
	tiles_free_above(c->tiles, row);
}

struct row_source compose_rows(struct composer *composer)
{
	return (struct row_source){composed_row, free_above, composer};
}
