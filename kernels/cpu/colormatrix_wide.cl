/* colormatrix_wide.cl: each pixel's colours by a matrix, in wide vectors of floats, for CPUs.
 *
 * out[b] = sum over j of row[b][j] * in[j] + shift[b], as general/color.cl has it.
 *
 * Bands stay interleaved: for each band j a shuffle gives all samples of a pixel that band, and a
 * vector of weights, which repeats band after band, scales it for each. Pixels of three bands are
 * whole again after three vectors, all others after one.
 *
 * A work-item makes a block of BLOCK_Y rows, one after another. At least 16 pixels a row. */

#ifndef ALPHA
#define ALPHA 0
#endif

enum {
	MIX_COLOURS = BANDS - ALPHA,
	MIX_VECTORS = BANDS == 3 ? 3 : 1,
	MIX_PIXELS = MIX_VECTORS * VECTOR / BANDS,
};

/* Weights of each band of the source, and the offset. */
struct mix {
	float16 weight[BANDS][MIX_VECTORS], shift[MIX_VECTORS];
};

/* Returns the weight of band j of the source in a row of the matrix: a single colour counts as
 * three. */
FORCE_INLINE float mix_weight(float4 row, const int j)
{
	if (j >= MIX_COLOURS || j == 3)
		return row.s3;
	if (MIX_COLOURS == 1)
		return row.s0 + row.s1 + row.s2;
	return j == 0 ? row.s0 : j == 1 ? row.s1 : row.s2;
}

/* rows: of the matrix, by bands of the target. The fourth band is full scale where it is missing. */
FORCE_INLINE struct mix mix_make(const float4 rows[4], float4 shift, float full)
{
	const float opaque = BANDS == 4 ? 0.0f : ALPHA ? 0.0f : full;
	struct mix mix;

	shift += opaque * (float4)(rows[0].s3, rows[1].s3, rows[2].s3, rows[3].s3);
#pragma unroll
	for (int k = 0; k < MIX_VECTORS; k++) {
		mix.shift[k] = band_values(shift, k * VECTOR, BANDS);
#pragma unroll
		for (int j = 0; j < BANDS; j++)
			mix.weight[j][k] = band_values(
			    (float4)(mix_weight(rows[0], j), mix_weight(rows[1], j),
			             mix_weight(rows[2], j), mix_weight(rows[3], j)),
			    k * VECTOR, BANDS);
	}
	return mix;
}

/* Takes the samples first, four times second, and so on from two vectors: the samples of one of
 * three bands that 16 samples need. The first of them is the last of its pixel, the second, or the
 * first. */
#define MIX_THIRD_0(a, b, i)                                                                       \
	__builtin_shufflevector(a, b, i, i, i, 3 + i, 3 + i, 3 + i, 6 + i, 6 + i, 6 + i, 9 + i,    \
	                        9 + i, 9 + i, 12 + i, 12 + i, 12 + i, 15 + i)
#define MIX_THIRD_1(a, b, i)                                                                       \
	__builtin_shufflevector(a, b, i, i, 3 + i, 3 + i, 3 + i, 6 + i, 6 + i, 6 + i, 9 + i,       \
	                        9 + i, 9 + i, 12 + i, 12 + i, 12 + i, 15 + i, 15 + i)
#define MIX_THIRD_2(a, b, i)                                                                       \
	__builtin_shufflevector(a, b, i, 3 + i, 3 + i, 3 + i, 6 + i, 6 + i, 6 + i, 9 + i, 9 + i,   \
	                        9 + i, 12 + i, 12 + i, 12 + i, 15 + i, 15 + i, 15 + i)

/* Returns, for each sample of vector k, band j of its pixel. */
FORCE_INLINE float16 mix_spread(const float16 *v, const int k, const int j)
{
	if (BANDS == 1)
		return v[k];
	if (BANDS == 2)
		return j == 0 ? v[k].s0022446688aaccee : v[k].s1133557799bbddff;
	if (BANDS == 4)
		return j == 0   ? v[k].s000044448888cccc
		       : j == 1 ? v[k].s111155559999dddd
		       : j == 2 ? v[k].s22226666aaaaeeee
		                : v[k].s33337777bbbbffff;
	if (k == 0)
		return j == 0   ? MIX_THIRD_0(v[0], v[1], 0)
		       : j == 1 ? MIX_THIRD_0(v[0], v[1], 1)
		                : MIX_THIRD_0(v[0], v[1], 2);
	if (k == 1)
		return j == 0   ? MIX_THIRD_1(v[0], v[1], 15)
		       : j == 1 ? MIX_THIRD_1(v[0], v[1], 16)
		                : MIX_THIRD_1(v[1], v[2], 1);
	return j == 0   ? MIX_THIRD_2(v[1], v[2], 14)
	       : j == 1 ? MIX_THIRD_2(v[1], v[2], 15)
	                : MIX_THIRD_2(v[1], v[2], 16);
}

/* Makes MIX_PIXELS whole pixels. */
FORCE_INLINE void mix_pixels(const struct mix *mix, source_row in, target_row out,
                             ulong2 lines)
{
	float16 v[3];

#pragma unroll
	for (int k = 0; k < MIX_VECTORS; k++)
		v[k] = pixel_load(in + k * VECTOR, VECTOR);
#pragma unroll
	for (int k = 0; k < MIX_VECTORS; k++) {
		float16 t = mix->shift[k];

#pragma unroll
		for (int j = BANDS - 1; j >= 0; j--)
			t = fma(mix_spread(v, k, j), mix->weight[j][k], t);
		wide_store(t, in + k * VECTOR, out + k * VECTOR, k * VECTOR, lines);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
colormatrix_wide(REGION_ARGUMENTS, float4 red, float4 green, float4 blue, float4 fourth,
                 float4 shift, float full, uint alpha, uint keep)
{
	const uint2 span = block_span(samples / BANDS, blocks, get_global_id(0));
	const uint y = get_global_id(1) * BLOCK_Y, end = min(y + BLOCK_Y, rows);
	const float4 by_band[4] = {red, MIX_COLOURS > 1 ? green : fourth,
	                           MIX_COLOURS > 2 ? blue : fourth, fourth};
	const float4 added = (float4)(shift.s0, MIX_COLOURS > 1 ? shift.s1 : shift.s3,
	                              MIX_COLOURS > 2 ? shift.s2 : shift.s3, shift.s3);
	const struct mix mix = mix_make(by_band, added, full);

	for (uint r = y; r < end; r++) {
		const source_row in = SOURCE_ROW(r);
		const target_row out = TARGET_ROW(r);
		const ulong2 lines = stream_lines(out + span.x * BANDS, out + span.y * BANDS,
		                                  MIX_PIXELS * BANDS * sizeof(PIXEL));

		for (uint x = span.x; x < span.y; x += MIX_PIXELS) {
			const uint at = min(x, span.y - MIX_PIXELS) * BANDS;

			mix_pixels(&mix, in + at, out + at, lines);
		}
	}
}
