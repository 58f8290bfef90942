/* gpu/extreme_ring.cl: the smallest or the largest value in a small rectangle, in registers.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It makes the extremes across of each source
 * row, and keeps those of as many rows as the rectangle is high. Samples are cells, of bytes two
 * that lie half a block apart: see gpu/cells.cl.
 *
 * OUTPUT: 1 for the largest. */

FORCE_INLINE cell extreme_of(cell a, cell b)
{
	return OUTPUT ? cell_max(a, b) : cell_min(a, b);
}

/* Makes the extremes across of a row. */
FORCE_INLINE void across(cell *made, const uint *words)
{
	cell v[CELLS + 2 * REACH];

#pragma unroll
	for (int i = 0; i < CELLS + 2 * REACH; i++)
		v[i] = cell_of_two(words, words + CELLS / 4, FIRST - REACH + i);
#pragma unroll
	for (int c = 0; c < CELLS; c++) {
		made[c] = v[c];
#pragma unroll
		for (int k = 1; k < TAPS_X; k++)
			made[c] = extreme_of(made[c], v[c + k * BANDS]);
	}
}

FORCE_INLINE void extreme_block(const global uchar *in, uint src_pitch, global uchar *out,
                                uint dst_pitch, uint x, uint width, uint height, const bool free)
{
	const int count = free ? ROWS_IN : (int)min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const global uchar *const top = in - (long)RADIUS_Y * (long)src_pitch;
	cell made[TAPS_Y][CELLS];
	struct rows ring;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&ring, s, count, top, src_pitch, width, free);
#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int r = s - 2 * RADIUS_Y;
		cell whole[CELLS];
		uint result[MIDDLE], words[WINDOW];

		if (s >= count)
			return;
		rows_load(&ring, s + AHEAD, count, top, src_pitch, width, free);
		across(made[s % TAPS_Y], ring.words[s % (AHEAD + 1)]);
		if (r < 0)
			continue;
#pragma unroll
		for (int c = 0; c < CELLS; c++) {
			cell v = made[0][c];

#pragma unroll
			for (int j = 1; j < TAPS_Y; j++)
				v = extreme_of(v, made[j][c]);
			whole[c] = v;
		}
#pragma unroll
		for (int k = 0; k < MIDDLE / CELL_SAMPLES; k++)
			cells_split(&result[k], &result[k + MIDDLE / 2], whole, k);
		if (KEEP != 0) {
			window_load(words, in + (ulong)r * src_pitch, width, free);
			window_keep(result, words, x);
		}
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL extreme_ring(REGION_ARGUMENTS, uint radius, uint element, uint largest, uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		extreme_block(in, src_pitch, out, dst_pitch, x, width, height, true);
	else
		extreme_block(in, src_pitch, out, dst_pitch, x, width, height, false);
}
