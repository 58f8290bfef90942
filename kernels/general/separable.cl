/* separable.cl: a column filter and a row filter, one after the other, in one kernel.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry)) + offset
 *
 * A work-item makes a block of SEPARABLE_ROWS rows. First down: each vector of the source is loaded
 * and converted once for all rows of the block; each adds it with its own weight (0 outside the
 * row's window). These sums go to local memory, rx pixels wider than the block on both sides; then
 * across, from there. The group is one work-item, so there is no barrier; the host sizes `scratch`
 * and the blocks so that it stays in the cache.
 *
 * weights: SEPARABLE_ROWS - 1 zeros, the column, SEPARABLE_ROWS - 1 zeros, the row.
 *
 * Sums of many terms are taken in two levels, so that their rounding errors do not grow with the
 * radius: 2 * 601 taps stay within 1e-5. A row's first partial sum begins with its first tap, wherever
 * the row is in its block. */

/* Rows of a block. More rows: fewer conversions, but more products with 0 for small radii. */
#ifndef SEPARABLE_ROWS
#define SEPARABLE_ROWS 8
#endif

/* Terms of a sum that are added directly; above that, partial sums. */
#ifndef SEPARABLE_TERMS
#define SEPARABLE_TERMS 32
#endif

/* Vectors that the pass across works on at once. */
#ifndef SEPARABLE_VECTORS
#define SEPARABLE_VECTORS 4
#endif

/* Adds source row j of those from p on; row r of the block has `taps` of them. */
FORCE_INLINE void separable_add_row(float16 sum[SEPARABLE_ROWS], const global uchar *p, uint pitch,
                                    uint j, constant float *weights, uint taps, uint width)
{
	const float16 v = pixel_load((source_row)(p + (ulong)j * pitch), width);

#pragma unroll
	for (int r = 0; r < SEPARABLE_ROWS; r++)
		if (WINDOW_HAS((int)j - r, taps))
			sum[r] = fma(v, (float16)(weights[(int)j - r]), sum[r]);
}

FLOAT_ACCESS(scratch_load, scratch_store, local)

/* Sums one vector of columns for all rows of the block. p: its first source row. */
FORCE_INLINE void separable_down(const global uchar *p, uint pitch, uint count,
                                 constant float *weights, uint taps, uint width,
                                 local float *scratch, uint stride)
{
	float16 total[SEPARABLE_ROWS], sum[SEPARABLE_ROWS];

#pragma unroll
	for (int r = 0; r < SEPARABLE_ROWS; r++)
		total[r] = sum[r] = 0.0f;
	for (uint first = 0; first < count; first += SEPARABLE_TERMS) {
		const uint end = min(count, first + SEPARABLE_TERMS);

		/* Row r begins its next partial sum with the r-th of these. */
#pragma unroll
		for (int r = 0; r < SEPARABLE_ROWS; r++) {
			total[r] += sum[r];
			sum[r] = 0.0f;
			if (first + r < end)
				separable_add_row(sum, p, pitch, first + r, weights, taps, width);
		}
		for (uint j = first + SEPARABLE_ROWS; j < end; j++)
			separable_add_row(sum, p, pitch, j, weights, taps, width);
	}
#pragma unroll
	for (int r = 0; r < SEPARABLE_ROWS; r++)
		scratch_store(total[r] + sum[r], scratch + r * stride, width);
}

/* Sums `vectors` vectors across, side by side; p is the first one's first tap. */
FORCE_INLINE void separable_across(float16 *total, const local float *p, uint bands, uint taps,
                                   constant float *weights, const int vectors, uint width)
{
#pragma unroll
	for (int v = 0; v < vectors; v++)
		total[v] = 0.0f;
	for (uint first = 0; first < taps; first += SEPARABLE_TERMS) {
		const uint end = min(taps, first + SEPARABLE_TERMS);
		float16 sum[SEPARABLE_VECTORS];

#pragma unroll
		for (int v = 0; v < vectors; v++)
			sum[v] = 0.0f;
		for (uint i = first; i < end; i++) {
			const float16 weight = weights[i];

#pragma unroll
			for (int v = 0; v < vectors; v++)
				sum[v] = fma(scratch_load(p + i * bands + v * VECTOR, width), weight,
				             sum[v]);
		}
#pragma unroll
		for (int v = 0; v < vectors; v++)
			total[v] += sum[v];
	}
}

FORCE_INLINE void separable_finish(float16 total, float offset, source_row in, target_row out, uint x,
                                   uint bands, uint keep, uint width)
{
	float16 result = total + offset;

	if (keep)
		result = select(result, pixel_load(in + x, width), band_lanes(x, bands, keep));
	pixel_store(result, out + x, width);
}

/* Makes one row of the block, samples [start, end); p: the first tap of sample `start`. */
FORCE_INLINE void separable_row(const local float *p, uint start, uint end, source_row in,
                                target_row out, uint bands, uint taps, constant float *weights,
                                float offset, uint keep, uint width)
{
	float16 total[SEPARABLE_VECTORS];
	uint x = start;

	for (; x + SEPARABLE_VECTORS * VECTOR <= end; x += SEPARABLE_VECTORS * VECTOR) {
		separable_across(total, p + (x - start), bands, taps, weights, SEPARABLE_VECTORS,
		                 VECTOR);
#pragma unroll
		for (int v = 0; v < SEPARABLE_VECTORS; v++)
			separable_finish(total[v], offset, in, out, x + v * VECTOR, bands,
			                 keep, VECTOR);
	}
	for (; x < end; x += VECTOR) {
		const uint at = min(x, end - width);

		separable_across(total, p + (at - start), bands, taps, weights, 1, width);
		separable_finish(total[0], offset, in, out, at, bands, keep, width);
	}
}

kernel void separable(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                      uint keep, local float *scratch)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1) * SEPARABLE_ROWS;
	const uint here = min(rows - y, (uint)SEPARABLE_ROWS);
	const uint columns = span.y - span.x + 2 * rx * bands;
	const uint stride = (columns + VECTOR - 1) & ~15u;
	const global uchar *top = (const global uchar *)(SOURCE_ROW((long)y - ry) + span.x) -
	                          (ulong)rx * bands * sizeof(PIXEL);
	constant float *column = weights + SEPARABLE_ROWS - 1;
	constant float *row = weights + 2 * (SEPARABLE_ROWS - 1) + 2 * ry + 1;

	if (columns >= VECTOR)
		for (uint x = 0; x < columns; x += VECTOR) {
			const uint at = min(x, columns - VECTOR);

			separable_down(top + at * sizeof(PIXEL), src_pitch, here + 2 * ry, column,
			               2 * ry + 1, VECTOR, scratch + at, stride);
		}
	else
		separable_down(top, src_pitch, here + 2 * ry, column, 2 * ry + 1, columns, scratch,
		               stride);
	for (uint r = 0; r < here; r++) {
		const local float *p = scratch + r * stride;

		if (samples >= VECTOR)
			separable_row(p, span.x, span.y, SOURCE_ROW(y + r), TARGET_ROW(y + r), bands,
			              2 * rx + 1, row, offset, keep, VECTOR);
		else
			separable_row(p, span.x, span.y, SOURCE_ROW(y + r), TARGET_ROW(y + r), bands,
			              2 * rx + 1, row, offset, keep, samples);
	}
}
