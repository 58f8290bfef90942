/* gpu/median_ring.cl: the median of 3x3 or 5x5, in registers.
 *
 * A work-item loads the windows of all rows that its block needs, then sorts those of each cell: see
 * median.cl and gpu/cells.cl. */

GPU_KERNEL median_ring(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	BLOCK_PLACE
	const bool free = window_free(in, src_pitch, out, dst_pitch, width, height);
	const uint count = min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const global uchar *const top = in - (long)RADIUS_Y * (long)src_pitch;
	uint words[ROWS_IN][WINDOW];

	if (width == 0 || height == 0)
		return;
#pragma unroll
	for (int s = 0; s < ROWS_IN; s++)
		if (free)
			window_load(words[s], top + (ulong)s * src_pitch, width, true);
		else if ((uint)s < count)
			window_load(words[s], top + (ulong)s * src_pitch, width, false);
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		cell made[CELLS];
		uint result[MIDDLE];

		if ((uint)r >= height)
			return;
#pragma unroll
		for (int c = 0; c < CELLS; c++) {
			cell v[TAPS_Y * TAPS_X];

#pragma unroll
			for (int i = 0; i < TAPS_Y * TAPS_X; i++)
				v[i] = words_cell(words[r + i / TAPS_X],
				                  FIRST + c * CELL_SAMPLES +
				                      (i % TAPS_X - RADIUS_X) * BANDS);
			made[c] = median_of_square(v, TAPS_X);
		}
#pragma unroll
		for (int k = 0; k < MIDDLE; k++)
			result[k] = cells_word(made, k);
		window_keep(result, words[r + RADIUS_Y], x);
		if (free)
			window_store(result, out + (ulong)r * dst_pitch, width, true);
		else
			window_store(result, out + (ulong)r * dst_pitch, width, false);
	}
}
