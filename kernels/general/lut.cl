/* lut.cl: each sample by a table.
 *
 * For integers a table has a pixel for each value. For floats it has entries at equal distances,
 * from 0 to full scale: a sample lies at in * places, and a sample beyond either end counts as the
 * end; NaN stays NaN. Bands have a table each; those beyond the last table share it. A work-item
 * makes one row of a block, band after band. */

#ifdef PIXEL_MAX
#define LUT_AT(table, entries, places, v) (table)[v]
#else
#define LUT_AT(table, entries, places, v) lut_interpolate(table, entries, places, v)

/* The product's error, which fma() does not have, would be that of a whole place in a steep table. */
FORCE_INLINE float lut_interpolate(const global float *table, uint entries, float places, float v)
{
	const float end = 1.0f / places * (float)(entries - 1);
	const float in = fmin(fmax(v, 0.0f), end);
	const uint i = min((uint)(in * places), entries - 2);
	const float part = clamp(fma(in, places, -(float)i), 0.0f, 1.0f);

	return isnan(v) ? v : fma(part, table[i + 1] - table[i], table[i]);
}
#endif

kernel void lut(REGION_ARGUMENTS, const global PIXEL *tables, uint count, uint entries, float places,
                uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const source_row in = SOURCE_ROW(get_global_id(1));
	const target_row out = TARGET_ROW(get_global_id(1));

	if (get_global_id(0) >= blocks)
		return;
	for (uint b = 0; b < bands; b++) {
		const global PIXEL *table = tables + min(b, count - 1) * entries;
		const uint first = span.x + (b + bands - span.x % bands) % bands;

		for (uint x = first; x < span.y; x += bands)
			out[x] = keep >> b & 1 ? in[x] : LUT_AT(table, entries, places, in[x]);
	}
}
