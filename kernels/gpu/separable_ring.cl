/* gpu/separable_ring.cl: a column filter and a row filter in one kernel, in floats, from registers.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry)) + offset
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It keeps the last 2 ry + 1 rows of its window, as
 * floats, in registers; the loop over rows is unrolled, so that the ring's places are known to the
 * compiler, and its loads may be issued early. For each row it makes, it first filters down, the
 * window wide, then across. Any type, any weights, for small radii. */

FORCE_INLINE void separable_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                       uint dst_pitch, uint x, uint width, uint height,
                                       const float *row, const float *column, float offset,
                                       const bool free)
{
	float ring[TAPS_Y][WINDOW * PER_WORD];
	uint centre[RADIUS_Y + 1][WINDOW];

#pragma unroll
	for (int r = -2 * RADIUS_Y; r < BLOCK_Y; r++) {
		const int at = (r + 2 * RADIUS_Y) % TAPS_Y;
		float down[WINDOW * PER_WORD], across[BLOCK_X];
		uint result[MIDDLE], words[WINDOW];

		if (!free && r > 0 && (uint)r >= height)
			break;
		window_load(words, in + (long)(r + RADIUS_Y) * (long)src_pitch, width, free);
#pragma unroll
		for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++)
			ring[at][i] = window_float(words, i);
#pragma unroll
		for (int i = 0; i < WINDOW; i++)
			centre[(r + 2 * RADIUS_Y) % (RADIUS_Y + 1)][i] = words[i];
		if (r < 0)
			continue;
#pragma unroll
		for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++) {
			down[i] = ring[r % TAPS_Y][i] * column[0];
#pragma unroll
			for (int k = 1; k < TAPS_Y; k++)
				down[i] = fma(ring[(r + TAP(k, TAPS_Y)) % TAPS_Y][i],
				              column[TAP(k, TAPS_Y)], down[i]);
		}
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			const int first = FIRST + i - REACH;

			across[i] = offset;
#pragma unroll
			for (int k = 0; k < TAPS_X; k++)
				across[i] = fma(down[first + TAP(k, TAPS_X) * BANDS],
				                row[TAP(k, TAPS_X)], across[i]);
		}
		window_pack(result, across);
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
