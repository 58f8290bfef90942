/* cpu/clahe_rows.cl: clahe for CPUs: see general/clahe.cl, whose bits it makes.
 *
 * Along a row the four tables change only between tiles. So a work-item, which makes one row of a
 * block, mixes the upper and the lower ones first, if they have 256 entries; a sample then takes two
 * of these, or four between entries. In narrow tiles, whose samples are few, and of long tables it
 * mixes only what they take. */

enum { VALUES = 256, CLAHE_FEW = 128 };

/* The tables of a band around a pixel: on the left and the right, the upper and the lower one; and
 * the mixture of these: entries on the left, and the differences to those on the right. */
struct clahe_band {
	const global ushort *upper[2], *lower[2];
	float left[VALUES], more[VALUES];
};

/* Parameters of a part of a row. */
struct clahe_row {
	float below, step, places;
	uint entries;
};

FORCE_INLINE float clahe_mix(const struct clahe_band *t, int side, uint i, float below)
{
	const float a = t->upper[side][i];

	return fma(below, (float)t->lower[side][i] - a, a);
}

FORCE_INLINE float clahe_entry(const struct clahe_band *t, const struct clahe_row *row,
                               const bool mixed, uint i, float right)
{
	const float left = mixed ? t->left[i] : clahe_mix(t, 0, i, row->below);
	const float more = mixed ? t->more[i] : clahe_mix(t, 1, i, row->below) - left;

	return fma(right, more, left);
}

FORCE_INLINE PIXEL clahe_sample(const struct clahe_band *t, const struct clahe_row *row,
                                const bool mixed, PIXEL v, float right)
{
#ifdef PIXEL_MAX
	const uint i = sizeof(PIXEL) == 1 ? v : min((uint)v, row->entries - 1);

	return PIXEL_ROUND_1(clahe_entry(t, row, mixed, i, right));
#else
	const float in = clamp(v, 0.0f, 1.0f / row->places * (float)(row->entries - 1));
	const uint i = min((uint)(in * row->places), row->entries - 2);
	const float part = clamp(fma(in, row->places, -(float)i), 0.0f, 1.0f);
	const float low = clahe_entry(t, row, mixed, i, right);
	const float high = clahe_entry(t, row, mixed, i + 1, right);

	return isnan(v) ? v : fma(part, high - low, low) / row->places;
#endif
}

/* Makes `count` pixels whose tables are the same. part: the place of the first between them. */
FORCE_INLINE void clahe_part(const struct clahe_band *bands, const struct clahe_row *row,
                             const bool mixed, source_row in, target_row out, uint count, int part)
{
	for (uint i = 0; i < count; i++) {
		const float right = (float)(part + 2 * (int)i) * row->step;

#pragma unroll
		for (uint b = 0; b < BANDS; b++) {
			const PIXEL v = in[i * BANDS + b];

			out[i * BANDS + b] =
			    KEEP >> b & 1 ? v : clahe_sample(&bands[b], row, mixed, v, right);
		}
	}
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void
clahe_rows(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global ushort *tables, uint tiles,
           int plane_width, int plane_height, int plane_x, int plane_y, uint count, uint entries,
           float places, uint keep)
{
	const uint2 span = block_span(samples / BANDS, blocks, get_global_id(0));
	const int n = (int)tiles, y = get_global_id(1);
	const int width = grid_tile(n, plane_width, plane_height);
	const int height = grid_tile(n, plane_height, plane_width);

	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;

	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	const struct grid_place down = grid_place(
	    n, height, border_map(place_y0(y0s, more_y0s) + y - plane_y, plane_height, 3));
	const struct clahe_row row = {.below = (float)down.part * (0.5f / (float)height),
	                              .step = 0.5f / (float)width,
	                              .places = places,
	                              .entries = entries};
	struct clahe_band of_band[BANDS];

	for (uint p = span.x; p < span.y;) {
		const int x = border_map(x0 + (int)p - plane_x, plane_width, 3);
		const struct grid_place across = grid_place(n, width, x);
		const int alike = min((2 * width - across.part + 1) / 2, plane_width - x);
		const uint end = min(p + (uint)alike, span.y);
		const bool mixed = entries == VALUES && end - p >= CLAHE_FEW;

		for (uint b = 0; b < BANDS; b++) {
			struct clahe_band *t = &of_band[b];
			const global ushort *own =
			    tables + (ulong)min(b, count - 1) * tiles * tiles * entries;

			for (int i = 0; i < 2; i++) {
				const int column = i ? across.second : across.first;

				t->upper[i] = own + (ulong)(down.first * n + column) * entries;
				t->lower[i] = own + (ulong)(down.second * n + column) * entries;
			}
			for (uint v = 0; v < VALUES && mixed && !(KEEP >> b & 1); v++) {
				t->left[v] = clahe_mix(t, 0, v, row.below);
				t->more[v] = clahe_mix(t, 1, v, row.below) - t->left[v];
			}
		}
		if (mixed)
			clahe_part(of_band, &row, true, in + p * BANDS, out + p * BANDS, end - p,
			           across.part);
		else
			clahe_part(of_band, &row, false, in + p * BANDS, out + p * BANDS, end - p,
			           across.part);
		p = end;
	}
}
