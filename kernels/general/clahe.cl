/* clahe.cl: each sample by a mixture of the tables of the four tiles around it (Zuiderveld,
 * "Contrast Limited Adaptive Histogram Equalization", 1994). Needs grid.h.
 *
 * The tiles cover the whole image or, if its border has been cropped, the rest in its middle:
 * plane_x and plane_y columns and rows are missing on each side. Beyond the image, where only
 * `wrap` needs a result, it is repeated. A table has `entries` entries for samples from 0 to full
 * scale, floats lie between two; those beyond either end count as the end, NaN stays NaN. Bands
 * have tables each, tile after tile; those beyond the last table share it. A work-item makes one
 * row of a block. */

/* The four tables, and the weights of the second across and down. */
struct clahe_tables {
	const global ushort *at[4];
	float right, below;
};

FORCE_INLINE float clahe_entry(const struct clahe_tables *t, uint i)
{
	const float a = t->at[0][i], b = t->at[1][i];
	const float left = fma(t->below, (float)t->at[2][i] - a, a);
	const float right = fma(t->below, (float)t->at[3][i] - b, b);

	return fma(t->right, right - left, left);
}

FORCE_INLINE PIXEL clahe_sample(const struct clahe_tables *t, PIXEL v, uint entries, float places)
{
#ifdef PIXEL_MAX
	return PIXEL_ROUND_1(clahe_entry(t, min((uint)v, entries - 1)));
#else
	const float in = clamp(v, 0.0f, 1.0f / places * (float)(entries - 1));
	const uint i = min((uint)(in * places), entries - 2);
	const float part = clamp(fma(in, places, -(float)i), 0.0f, 1.0f);
	const float low = clahe_entry(t, i), high = clahe_entry(t, i + 1);

	return isnan(v) ? v : fma(part, high - low, low) / places;
#endif
}

kernel void clahe(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global ushort *tables, uint tiles,
                  int plane_width, int plane_height, int plane_x, int plane_y, uint count,
                  uint entries, float places, uint keep)
{
	const uint2 span =
	    block_span(samples / bands, blocks, min((uint)get_global_id(0), blocks - 1));
	const int n = (int)tiles, y = get_global_id(1);
	const int width = grid_tile(n, plane_width, plane_height);
	const int height = grid_tile(n, plane_height, plane_width);

	if (get_global_id(0) >= blocks || (uint)y >= rows)
		return;
	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;

	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	const struct grid_place down = grid_place(
	    n, height, border_map(place_y0(y0s, more_y0s) + y - plane_y, plane_height, 3));
	const float step = 0.5f / (float)width;
	struct clahe_tables t = {.below = (float)down.part * (0.5f / (float)height)};

	for (uint p = span.x; p < span.y;) {
		const int x = border_map(x0 + (int)p - plane_x, plane_width, 3);
		const struct grid_place across = grid_place(n, width, x);
		/* The pixels up to the next tables, or the end of the image. */
		const int alike = min((2 * width - across.part + 1) / 2, plane_width - x);
		const uint end = min(p + (uint)alike, span.y);

		for (uint b = 0; b < bands; b++) {
			const global ushort *own =
			    tables + (ulong)min(b, count - 1) * tiles * tiles * entries;
			int part = across.part;

			t.at[0] = own + (ulong)(down.first * n + across.first) * entries;
			t.at[1] = own + (ulong)(down.first * n + across.second) * entries;
			t.at[2] = own + (ulong)(down.second * n + across.first) * entries;
			t.at[3] = own + (ulong)(down.second * n + across.second) * entries;
			for (uint i = p * bands + b; i < end * bands; i += bands, part += 2) {
				t.right = (float)part * step;
				out[i] = keep >> b & 1 ? in[i] : clahe_sample(&t, in[i], entries, places);
			}
		}
		p = end;
	}
}
