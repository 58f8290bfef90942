/* cpu/clahe_rows.cl: clahe for CPUs: see general/clahe.cl, whose bits it makes.
 *
 * Along a row the four tables change only between tiles, so a work-item mixes the upper and the lower
 * ones of bytes first; a sample then takes two of these. In narrow tiles, whose samples are few, and
 * of long tables it collects what some samples take of the four, and mixes that in vectors.
 *
 * A work-item makes a block of BLOCK_Y rows, down from one tile to the next, so that long tables stay
 * in the cache. */

enum { VALUES = 256, CLAHE_FEW = 128, CLAHE_ONCE = 64 };

/* A sample takes one entry of a table, or two between which it lies. */
#ifdef PIXEL_MAX
enum { ENTRIES = 1 };
#else
enum { ENTRIES = 2 };
#endif

/* The tables of a band around a pixel: the upper ones on the left and the right, and the lower
 * ones; and the mixture of these: entries on the left, and the differences to those on the right. */
struct clahe_band {
	const global ushort *at[4];
	float left[VALUES], more[VALUES];
};

/* Parameters of a part of a row. */
struct clahe_row {
	float below, step, places;
	uint entries;
};

FORCE_INLINE float clahe_mix(float upper, float lower, float below)
{
	return fma(below, lower - upper, upper);
}

/* Returns an entry's place in a table. */
FORCE_INLINE uint clahe_place(const struct clahe_row *row, PIXEL v)
{
#ifdef PIXEL_MAX
	return min((uint)v, row->entries - 1);
#else
	const float in = clamp(v, 0.0f, 1.0f / row->places * (float)(row->entries - 1));

	return min((uint)(in * row->places), row->entries - 2);
#endif
}

/* Makes as many of these pixels as are mixed at once. */
FORCE_INLINE void clahe_some(const struct clahe_band *bands, const struct clahe_row *row,
                             source_row in, target_row out, uint count, int part)
{
	ushort entry[ENTRIES][4][CLAHE_ONCE * BANDS];

	for (uint i = 0; i < count; i++) {
#pragma unroll
		for (uint b = 0; b < BANDS; b++) {
			const uint at = clahe_place(row, in[i * BANDS + b]);

#pragma unroll
			for (uint e = 0; e < ENTRIES * 4; e++)
				entry[e / 4][e % 4][i * BANDS + b] = bands[b].at[e % 4][at + e / 4];
		}
	}
	for (uint i = 0; i < count * BANDS; i++) {
		const float right = (float)(part + 2 * (int)(i / BANDS)) * row->step;
		float made[ENTRIES];

#pragma unroll
		for (uint e = 0; e < ENTRIES; e++) {
			const float left = clahe_mix(entry[e][0][i], entry[e][2][i], row->below);
			const float more = clahe_mix(entry[e][1][i], entry[e][3][i], row->below) - left;

			made[e] = fma(right, more, left);
		}
#ifndef PIXEL_MAX
		const float v = clamp(in[i], 0.0f, 1.0f / row->places * (float)(row->entries - 1));
		const float beyond = fma(v, row->places, -(float)clahe_place(row, in[i]));
		const float mixed = fma(clamp(beyond, 0.0f, 1.0f), made[1] - made[0], made[0]);

		made[0] = isnan(in[i]) ? in[i] : mixed / row->places;
#endif
		out[i] = KEEP >> i % BANDS & 1 ? in[i] : PIXEL_ROUND_1(made[0]);
	}
}

/* Makes pixels whose tables are the same, `part` being the place of the first between them. */
FORCE_INLINE void clahe_part(struct clahe_band *bands, const struct clahe_row *row, source_row in,
                             target_row out, uint count, int part)
{
	const bool whole = sizeof(PIXEL) == 1 && count >= CLAHE_FEW;

	for (uint i = 0; i < count && !whole; i += CLAHE_ONCE)
		clahe_some(bands, row, in + i * BANDS, out + i * BANDS,
		           min(count - i, (uint)CLAHE_ONCE), part + 2 * (int)i);
	for (uint b = 0; b < BANDS && whole; b++) {
		struct clahe_band *t = &bands[b];

		for (uint v = 0; v < VALUES && !(KEEP >> b & 1); v++) {
			t->left[v] = clahe_mix(t->at[0][v], t->at[2][v], row->below);
			t->more[v] = clahe_mix(t->at[1][v], t->at[3][v], row->below) - t->left[v];
		}
	}
	for (uint i = 0; i < count && whole; i++) {
		const float right = (float)(part + 2 * (int)i) * row->step;

#pragma unroll
		for (uint b = 0; b < BANDS; b++) {
			const PIXEL v = in[i * BANDS + b];
			const uint at = (uchar)v;
			const float mixed = fma(right, bands[b].more[at], bands[b].left[at]);

			out[i * BANDS + b] = KEEP >> b & 1 ? v : PIXEL_ROUND_1(mixed);
		}
	}
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void
clahe_rows(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global ushort *tables, uint tiles,
           int plane_width, int plane_height, int plane_x, int plane_y, uint count, uint entries,
           float places, uint keep)
{
	const uint2 span = block_span(samples / BANDS, blocks, get_global_id(0));
	const uint start = get_global_id(1) * BLOCK_Y, stop = min(start + BLOCK_Y, rows);
	const int n = (int)tiles, y0 = place_y0(y0s, more_y0s) - plane_y;
	const int width = grid_tile(n, plane_width, plane_height);
	const int height = grid_tile(n, plane_height, plane_width);
	struct clahe_row row = {.step = 0.5f / (float)width, .places = places, .entries = entries};
	struct clahe_band of_band[BANDS];

	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;
	for (uint p = span.x, end; p < span.y; p = end) {
		const int x = border_map(x0 + (int)p - plane_x, plane_width, 3);
		const struct grid_place across = grid_place(n, width, x);
		const int alike = min((2 * width - across.part + 1) / 2, plane_width - x);

		end = min(p + (uint)alike, span.y);
		for (uint y = start; y < stop; y++) {
			const struct grid_place down =
			    grid_place(n, height, border_map(y0 + (int)y, plane_height, 3));

			row.below = (float)down.part * (0.5f / (float)height);
			for (uint b = 0; b < BANDS; b++) {
				const ulong own = (ulong)min(b, count - 1) * tiles * tiles;

				for (int i = 0; i < 4; i++)
					of_band[b].at[i] =
					    tables + (own + (ulong)((i / 2 ? down.second : down.first) * n +
					                            (i % 2 ? across.second : across.first))) *
					                 entries;
			}
			clahe_part(of_band, &row, SOURCE_ROW(y) + p * BANDS, TARGET_ROW(y) + p * BANDS,
			           end - p, across.part);
		}
	}
}
