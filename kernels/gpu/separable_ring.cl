/* gpu/separable_ring.cl: a column filter and a row filter in one kernel, in floats, from registers.
 *
 * out(x, y) = sum over j of column[j] * (sum over i of row[i] * in(x + i - rx, y + j - ry)) +
 * offset
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It filters each row of its window across, and
 * keeps the last 2 ry + 1 results in registers, from which it filters down; the loop over rows is
 * unrolled, so that the ring's places are known to the compiler. Any type, any weights, for small
 * radii. */

FORCE_INLINE void separable_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                       uint dst_pitch, uint x, uint width, uint height,
                                       const float *row, const float *column, float offset,
                                       const bool free)
{
	const int count = free ? ROWS_IN : min((int)height + 2 * RADIUS_Y, (int)ROWS_IN);
	const global uchar *top = in - (long)RADIUS_Y * (long)src_pitch;
	float ring[TAPS_Y][BLOCK_X];
	uint centre[RADIUS_Y + 1][WINDOW];
	struct rows rows;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&rows, s, count, top, src_pitch, width, free);
#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int r = s - 2 * RADIUS_Y;
		float sample[WINDOW * PER_WORD], down[BLOCK_X];
		uint result[MIDDLE];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
#pragma unroll
		for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++)
			sample[i] = window_float(rows.words[s % (AHEAD + 1)], i);
#pragma unroll
		for (int i = 0; i < WINDOW; i++)
			centre[s % (RADIUS_Y + 1)][i] = rows.words[s % (AHEAD + 1)][i];
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			const int first = FIRST + i - REACH;
			float across = sample[first] * row[0];

#pragma unroll
			for (int k = 1; k < TAPS_X; k++)
				across = fma(sample[first + TAP(k, TAPS_X) * BANDS],
				             row[TAP(k, TAPS_X)], across);
			ring[s % TAPS_Y][i] = across;
		}
		if (r < 0)
			continue;
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			down[i] = offset;
#pragma unroll
			for (int k = 0; k < TAPS_Y; k++)
				down[i] = fma(ring[(r + TAP(k, TAPS_Y)) % TAPS_Y][i],
				              column[TAP(k, TAPS_Y)], down[i]);
		}
		window_pack(result, down);
		window_keep(result, centre[(r + RADIUS_Y) % (RADIUS_Y + 1)], x);
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL separable_ring(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                          uint keep)
{
	float row[TAPS_X], column[TAPS_Y];

	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
#pragma unroll
	for (int i = 0; i < TAPS_X; i++)
		row[i] = weights[i];
#pragma unroll
	for (int i = 0; i < TAPS_Y; i++)
		column[i] = weights[TAPS_X + i];
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		separable_ring_block(in, src_pitch, out, dst_pitch, x, width, height, row, column,
		                     offset, true);
	else
		separable_ring_block(in, src_pitch, out, dst_pitch, x, width, height, row, column,
		                     offset, false);
}
