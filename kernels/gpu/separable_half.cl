/* gpu/separable_half.cl: a column filter and a row filter in one kernel, bytes in pairs of half
 * floats.
 *
 * out(x, y) = sum over j of column[j] * (sum over i of row[i] * in(x + i - rx, y + j - ry))
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It filters each row of its window across, and
 * keeps the last 2 ry + 1 results in registers, from which it filters down; the loop over rows is
 * unrolled, so that the ring's places are known to the compiler.
 *
 * For weights >= 0 of sum 1, offset 0; each weight as a half float, twice in a word (HALF2). Sums
 * are taken from the outer taps to the centre. The error before the rounding to bytes is at most,
 * for each of the two passes, the sum of
 *
 *   - 255 * the larger of the sums of the weights' positive and of their negative rounding errors
 *   - over k: half an ulp of 255 * (sum of the first k + 1 weights in the order first, last,
 *     second, last but one ...), where half an ulp of v is 2^(floor(log2(v)) - 11)
 *   - taps * 2^-16
 *
 * If the two passes' sum is less than 1, no result is wrong by more than 1: the rounding adds 1/2,
 * the reference's takes 1/2. */

FORCE_INLINE void separable_half_block(const global uchar *in, uint src_pitch, global uchar *out,
                                       uint dst_pitch, uint x, uint width, uint height,
                                       const uint *row, const uint *column, const bool free)
{
	const int count = free ? ROWS_IN : min((int)height + 2 * RADIUS_Y, (int)ROWS_IN);
	const global uchar *top = in - (long)RADIUS_Y * (long)src_pitch;
	uint ring[TAPS_Y][PAIRS], centre[RADIUS_Y + 1][WINDOW];
	struct rows rows;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&rows, s, count, top, src_pitch, width, free);
#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int r = s - 2 * RADIUS_Y;
		uint pair[2 * WINDOW], down[PAIRS], result[MIDDLE];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
		window_pairs(pair, rows.words[s % (AHEAD + 1)]);
#pragma unroll
		for (int i = 0; i < WINDOW; i++)
			centre[s % (RADIUS_Y + 1)][i] = rows.words[s % (AHEAD + 1)][i];
#pragma unroll
		for (int i = 0; i < PAIRS; i++) {
			const int first = FIRST + 2 * i - REACH;
			uint across = half2_mul(window_pair(pair, first), row[0]);

#pragma unroll
			for (int k = 1; k < TAPS_X; k++)
				across =
				    half2_fma(window_pair(pair, first + TAP(k, TAPS_X) * BANDS),
				              row[TAP(k, TAPS_X)], across);
			ring[s % TAPS_Y][i] = across;
		}
		if (r < 0)
			continue;
#pragma unroll
		for (int i = 0; i < PAIRS; i++) {
			down[i] = half2_mul(ring[r % TAPS_Y][i], column[0]);
#pragma unroll
			for (int k = 1; k < TAPS_Y; k++)
				down[i] = half2_fma(ring[(r + TAP(k, TAPS_Y)) % TAPS_Y][i],
				                    column[TAP(k, TAPS_Y)], down[i]);
		}
		window_pack_pairs(result, down);
		window_keep(result, centre[(r + RADIUS_Y) % (RADIUS_Y + 1)], x);
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL separable_half(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                          uint keep)
{
	uint row[TAPS_X], column[TAPS_Y];

	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
		/* Across: from v * 2^-24 to v * 2^-9; down: to v. */
#pragma unroll
	for (int i = 0; i < TAPS_X; i++)
		row[i] = half2_mul(weights[i], HALF2_SCALE(15));
#pragma unroll
	for (int i = 0; i < TAPS_Y; i++)
		column[i] = half2_mul(weights[TAPS_X + i], HALF2_SCALE(9));
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		separable_half_block(in, src_pitch, out, dst_pitch, x, width, height, row, column,
		                     true);
	else
		separable_half_block(in, src_pitch, out, dst_pitch, x, width, height, row, column,
		                     false);
}
