/* Tables: a lookup table's, and those of the tiles of CLAHE, of which four are mixed at each pixel.
 */
#include "reference/apply.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <sys/param.h>

#include "border.h"
#include "grid.h"

/* A table of results in shares of full scale, or a mixture of four tables of whole numbers. */
struct table {
	uint32_t entries;
	const double *own;
	const uint16_t *mixed[4];
	double weight[4]; /* the result of an entry of 1 */
};

static double entry_of(const struct table *t, size_t i)
{
	double sum = 0;

	if (t->own)
		return t->own[i];
	for (int k = 0; k < 4; k++)
		sum += t->weight[k] * t->mixed[k][i];
	return sum;
}

/* Returns a table's result at a place, which may be beyond its ends. */
static double table_at(const struct table *t, double place)
{
	const double last = t->entries - 1, at = fmin(fmax(place, 0), last);
	const size_t i = at < last ? (size_t)at : t->entries - 2;

	return entry_of(t, i) * ((double)i + 1 - at) + entry_of(t, i + 1) * (at - (double)i);
}

/* For floats the place in the table is known to a few roundings. The slack is the largest
 * difference from the results at both ends of the possible places, and from the entries between. */
static struct sample look_up(const struct table *table, const struct scale *scale,
                             const struct sample *in)
{
	const uint32_t entries = table->entries;
	const double places = (entries - 1) / scale->full, place = in->value * places;
	const double value = table_at(table, place);
	double off = in->slack * places, end, slack;

	if (isnan(place))
		return (struct sample){NAN, SLACK_UNLIMITED};
	if (!scale->whole)
		off += 4 * FLT_EPSILON * fmin(fabs(place), entries);
	off = fmin(off, entries);
	end = fmin(place + off, entries - 1.0);
	slack = fmax(fabs(table_at(table, place - off) - value),
	             fabs(table_at(table, place + off) - value));
	for (double i = fmax(ceil(place - off), 0); i <= end; i++)
		slack = fmax(slack, fabs(entry_of(table, (size_t)i) - value));
	return (struct sample){scale->full * value,
	                       scale->full * (slack + (scale->whole ? 0 : FLOAT_TOLERANCE))};
}

/* The table of a band; those beyond the last one share it. */
static uint32_t table_of(const struct operation *op, uint32_t band)
{
	return MIN(band, op->tables - 1);
}

struct sample lookup_lut(const struct operation *op, const struct scale *scale, uint32_t band,
                         const struct sample *in)
{
	const struct table table = {.entries = op->entries,
	                            .own = op->coefficients +
	                                   (size_t)table_of(op, band) * op->entries};

	return look_up(&table, scale, in);
}

/* Returns a table of a tile, from malloc(); NULL without memory. */
static uint16_t *read_tile(const struct operation *op, size_t number)
{
	uint16_t *table = malloc(op->entries * sizeof *table);

	if (table)
		clahe_table(op->plane + number * clahe_words(op->entries), op->entries, table);
	return table;
}

/* Beyond the image, or its middle, the tiles repeat. */
bool lookup_clahe(const struct operation *op, const struct scale *scale, const struct canvas *in,
                  struct canvas *out)
{
	const int width = (int)op->plane_width, height = (int)op->plane_height, n = (int)op->tiles;
	const int tile_x = grid_tile(n, width, height), tile_y = grid_tile(n, height, width);
	const int left = ((int)scale->image->width - width) / 2;
	const int top = ((int)scale->image->height - height) / 2;
	const size_t of_colour = (size_t)op->tiles * op->tiles, all = op->tables * of_colour;
	uint16_t **tables = calloc(all, sizeof *tables); /* those that are needed */
	/* The image must have been looked at. */
	bool done = tables && op->plane;

	for (size_t i = 0; done && i < canvas_samples(out); i++) {
		const uint32_t band = (uint32_t)(i % out->bands);
		const int x = out->at.x + (int)(i / out->bands % out->at.width);
		const int y = out->at.y + (int)(i / out->bands / out->at.width);
		const size_t from = canvas_index(in, x, y) + band;
		const struct sample is = {in->value[from], in->slack[from]};
		const struct grid_place across =
		    grid_place(n, tile_x, border_map(x - left, width, BORDER_WRAP));
		const struct grid_place down =
		    grid_place(n, tile_y, border_map(y - top, height, BORDER_WRAP));
		const double right = across.part / (2.0 * tile_x),
		             below = down.part / (2.0 * tile_y);
		struct table mixed = {.entries = op->entries};
		struct sample made;

		for (int k = 0; k < 4; k++) {
			const int column = k % 2 ? across.second : across.first;
			const int row = k / 2 ? down.second : down.first;
			const size_t table =
			    table_of(op, band) * of_colour + (uint32_t)(row * n + column);

			if (!tables[table])
				tables[table] = read_tile(op, table);
			done = done && tables[table];
			mixed.mixed[k] = tables[table];
			mixed.weight[k] = (k % 2 ? right : 1 - right) *
			                  (k / 2 ? below : 1 - below) / (op->entries - 1);
		}
		if (!done)
			break;
		made = look_up(&mixed, scale, &is);
		out->value[i] = made.value;
		out->slack[i] = made.slack;
	}
	for (size_t i = 0; tables && i < all; i++)
		free(tables[i]);
	free(tables);
	return done;
}
