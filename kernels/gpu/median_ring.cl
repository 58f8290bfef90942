/* gpu/median_ring.cl: the median of 3x3 or 5x5, in registers.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows, two rows at a time, whose windows have all but
 * one row each in common. Samples are cells: see gpu/cells.cl; but a cell of bytes has two that lie
 * half a block apart, so that the neighbours of both are the two of another cell.
 *
 * median_shared.cl makes the shared parts of windows. */

enum {
	COLUMNS = CELLS + 2 * REACH, /* cells of a row that a block needs */
	ROWS_NEEDED = TAPS_Y + TOGETHER - 1
};

#if RADIUS_Y < 2
#define MEDIAN_UNROLL _Pragma("unroll")
#else
#define MEDIAN_UNROLL _Pragma("unroll 1")
#endif

/* Returns the cell of column i, counted from the leftmost that the block needs. */
FORCE_INLINE cell column_cell(const uint *w, int i)
{
	return cell_of_two(w, w + CELLS / 4, FIRST - REACH + i);
}

/* Returns the median of three columns; the middle values of two are given as the smaller and the
 * larger. */
FORCE_INLINE cell median_of_columns(const cell *a, const cell *b, const cell *c, cell small,
                                    cell large, cell other)
{
	return median_3(max_3(a[0], b[0], c[0]), cell_max(small, cell_min(large, other)),
	                min_3(a[2], b[2], c[2]));
}

/* Makes the medians of one band of two rows. */
FORCE_INLINE void median_band_3(cell made[TOGETHER][CELLS], uint words[ROWS_NEEDED][WINDOW],
                                const int band)
{
	enum { RING = 3 };
	cell sorted[RING][3 * TOGETHER], v[ROWS_NEEDED];
	cell small[TOGETHER], large[TOGETHER]; /* middle values of columns that two windows share */

#pragma unroll
	for (int j = 0; j * BANDS + band < COLUMNS; j++) {
		const int i = j * BANDS + band - 2 * REACH; /* for the window that ends here */

#pragma unroll
		for (int s = 0; s < ROWS_NEEDED; s++)
			v[s] = column_cell(words[s], j * BANDS + band);
		column_of_3(sorted[j % RING], v);
		if (j < 2)
			continue;
#pragma unroll
		for (int t = 0; t < TOGETHER; t++) {
			const cell *first = &sorted[(j + 1) % RING][3 * t];
			const cell *before = &sorted[(j + 2) % RING][3 * t];
			const cell *here = &sorted[j % RING][3 * t];

			if (j % 2 == 0) {
				small[t] = cell_min(before[1], here[1]);
				large[t] = cell_max(before[1], here[1]);
			}
			made[t][i] = median_of_columns(first, before, here, small[t], large[t],
			                               j % 2 == 0 ? first[1] : here[1]);
		}
	}
}

FORCE_INLINE void median_band_5(cell made[TOGETHER][CELLS], uint words[ROWS_NEEDED][WINDOW],
                                const int band)
{
	enum { RING = 6 };
	cell sorted[RING][4], outer[RING][TOGETHER], v[ROWS_NEEDED];
	cell pairs[2][8], outer_pairs[2][TOGETHER][2], ten[10], four[4], six[6];

#pragma unroll
	for (int j = 0; j * BANDS + band < COLUMNS; j++) {
		const int i = j * BANDS + band - 2 * REACH; /* for the window that ends here */
		const int here = j % RING;
		const bool last = i + BANDS >= CELLS;

#pragma unroll
		for (int s = 0; s < ROWS_NEEDED; s++)
			v[s] = column_cell(words[s], j * BANDS + band);
		column_of_4(sorted[here], v + 1);
#pragma unroll
		for (int t = 0; t < TOGETHER; t++)
			outer[here][t] = v[5 * t];
		if (j >= 2 && j % 2 == 0) {
			const int before = (j - 1) % RING;

			merge_8(pairs[j / 2 % 2], sorted[before], sorted[here]);
#pragma unroll
			for (int t = 0; t < TOGETHER; t++) {
				cell *pair = outer_pairs[j / 2 % 2][t];

				pair[0] = outer[before][t], pair[1] = outer[here][t];
				sort_two(&pair[0], &pair[1]);
			}
		}
		if (j < 4 || (j % 2 == 0 && !last))
			continue;
		/* The pairs end at column j - 1, or j. */
		middle_10(ten, pairs[0], pairs[1]);
#pragma unroll
		for (int t = 0; t < TOGETHER; t++) {
			const int first = (j - 4 - j % 2) % RING;

			merge_4(four, outer_pairs[0][t][0], outer_pairs[0][t][1],
			        outer_pairs[1][t][0], outer_pairs[1][t][1]);
			middle_6(six, ten, four);
			made[t][i - j % 2 * BANDS] =
			    median_of_11(six, sorted[first], outer[first][t]);
			if (j % 2 == 1)
				made[t][i] = median_of_11(six, sorted[here], outer[here][t]);
		}
	}
}

FORCE_INLINE void median_block(const global uchar *in, uint src_pitch, global uchar *out,
                               uint dst_pitch, uint x, uint width, uint height, const bool free)
{
	const int count = free ? ROWS_IN : (int)min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const global uchar *const top = in - (long)RADIUS_Y * (long)src_pitch;
	uint words[ROWS_NEEDED][WINDOW], next[TOGETHER][WINDOW];

#pragma unroll
	for (int s = 0; s < ROWS_NEEDED; s++)
		window_load(words[s], top + (ulong)(uint)min(s, count - 1) * src_pitch, width,
		            free);
	MEDIAN_UNROLL
	for (int r = 0; r < BLOCK_Y; r += TOGETHER) {
		cell made[TOGETHER][CELLS];
		uint result[MIDDLE];

#pragma unroll
		for (int t = 0; t < TOGETHER; t++) {
			const int s = min(r + ROWS_NEEDED + t, count - 1);

			if (r + TOGETHER < BLOCK_Y)
				window_load(next[t], top + (ulong)(uint)s * src_pitch, width, free);
		}
#pragma unroll
		for (int band = 0; band < BANDS; band++)
			if (TAPS_Y == 3)
				median_band_3(made, words, band);
			else
				median_band_5(made, words, band);
#pragma unroll
		for (int t = 0; t < TOGETHER; t++) {
			if (!free && r + t >= (int)height)
				return;
#pragma unroll
			for (int k = 0; k < MIDDLE / CELL_SAMPLES; k++)
				cells_split(&result[k], &result[k + MIDDLE / 2], made[t], k);
			window_keep(result, words[t + RADIUS_Y], x);
			window_store(result, out + (ulong)(r + t) * dst_pitch, width, free);
		}
#pragma unroll
		for (int i = 0; i < WINDOW; i++) {
#pragma unroll
			for (int s = 0; s < ROWS_NEEDED - TOGETHER; s++)
				words[s][i] = words[s + TOGETHER][i];
#pragma unroll
			for (int t = 0; t < TOGETHER; t++)
				words[ROWS_NEEDED - TOGETHER + t][i] = next[t][i];
		}
	}
}

GPU_KERNEL median_ring(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		median_block(in, src_pitch, out, dst_pitch, x, width, height, true);
	else
		median_block(in, src_pitch, out, dst_pitch, x, width, height, false);
}
