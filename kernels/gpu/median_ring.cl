/* gpu/median_ring.cl: the median of 3x3 or 5x5, in registers.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows, two rows at a time, whose windows have all but
 * one row each in common. Samples are cells: see gpu/cells.cl; but of bytes a cell has two that lie
 * half a block apart, so that the neighbours of both are the two of another cell.
 *
 * Each column of a window is sorted: the rows that both windows share once, then the row that
 * only one has is put in. Of 3x3 the median is that of the largest of the smallest, the median of
 * the middle ones and the smallest of the largest (Paeth, "Median finding on a 3x3 grid", 1990).
 * Of 5x5 pairs of columns are merged, which four windows in a row share, and of two pairs the middle
 * six of twenty are found, which two windows share: the seven values below and above cannot be the
 * median of either, whatever its fifth column has. (Sharing what windows have in common: Adams, "Fast
 * median filters using separable sorting networks", 2021.) */

enum {
	COLUMNS = CELLS + 2 * REACH, /* cells of a row that a block needs */
	TOGETHER = 2,                /* rows */
	ROWS_NEEDED = TAPS_Y + TOGETHER - 1
};

#if RADIUS_Y < 2
#define MEDIAN_UNROLL _Pragma("unroll")
#else
#define MEDIAN_UNROLL _Pragma("unroll 1")
#endif

/* The cell of column i, counted from the leftmost that the block needs. */
FORCE_INLINE cell column_cell(const uint *w, int i)
{
	return cell_of_two(w, w + CELLS / 4, FIRST - REACH + i);
}

FORCE_INLINE cell min_3(cell a, cell b, cell c)
{
	return cell_min(cell_min(a, b), c);
}

FORCE_INLINE cell max_3(cell a, cell b, cell c)
{
	return cell_max(cell_max(a, b), c);
}

/* Of three values, whose smallest and largest are given, the third. */
FORCE_INLINE cell rest_3(cell a, cell b, cell c, cell least, cell most)
{
	return cells_subtract(cells_subtract(cells_add(cells_add(a, b), c), least), most);
}

FORCE_INLINE cell median_3(cell a, cell b, cell c)
{
	return rest_3(a, b, c, min_3(a, b, c), max_3(a, b, c));
}

FORCE_INLINE void sort_two(cell *a, cell *b)
{
	const cell small = cell_min(*a, *b);

	*b = cell_max(*a, *b);
	*a = small;
}

/* ---- 3x3 ---- */

/* The columns of both windows of four rows, sorted. */
FORCE_INLINE void column_of_3(cell sorted[TOGETHER][3], const cell *v)
{
	const cell small = cell_min(v[1], v[2]), large = cell_max(v[1], v[2]);

#pragma unroll
	for (int t = 0; t < TOGETHER; t++) {
		const cell other = v[3 * t];

		sorted[t][0] = cell_min(other, small);
		sorted[t][2] = cell_max(other, large);
		sorted[t][1] = rest_3(v[1], v[2], other, sorted[t][0], sorted[t][2]);
	}
}

/* The median of three columns, two of whose middle values are given as the smaller and the larger. */
FORCE_INLINE cell median_of_columns(const cell *a, const cell *b, const cell *c, cell small,
                                    cell large, cell other)
{
	return median_3(max_3(a[0], b[0], c[0]), cell_max(small, cell_min(large, other)),
	                min_3(a[2], b[2], c[2]));
}

/* ---- 5x5 ---- */

/* The columns of both windows of six rows, sorted. */
FORCE_INLINE void column_of_5(cell sorted[TOGETHER][5], cell *v)
{
	sort_two(&v[1], &v[2]);
	sort_two(&v[3], &v[4]);
	sort_two(&v[1], &v[3]);
	sort_two(&v[2], &v[4]);
	sort_two(&v[2], &v[3]);
#pragma unroll
	for (int t = 0; t < TOGETHER; t++) {
		const cell other = v[5 * t];

		sorted[t][0] = cell_min(v[1], other);
#pragma unroll
		for (int i = 1; i < 4; i++)
			sorted[t][i] = cell_max(v[i], cell_min(v[i + 1], other));
		sorted[t][4] = cell_max(v[4], other);
	}
}

/* Merges sorted values (Batcher, "Sorting networks and their applications", 1968): those that were
 * first, third and so on in either, the others, and then neighbours. */
FORCE_INLINE void merge_4(cell *v, cell a0, cell a1, cell b0, cell b1)
{
	v[0] = a0, v[1] = b0, v[2] = a1, v[3] = b1;
	sort_two(&v[0], &v[1]);
	sort_two(&v[2], &v[3]);
	sort_two(&v[1], &v[2]);
}

FORCE_INLINE void merge_10(cell *v, const cell *a, const cell *b)
{
	cell odd[4], even[4], third[6];
	cell a2 = a[2], b2 = b[2];

	merge_4(odd, a[0], a[4], b[0], b[4]);
	merge_4(even, a[1], a[3], b[1], b[3]);
	sort_two(&a2, &b2);
	sort_two(&odd[1], &a2);
	sort_two(&b2, &odd[2]);
	third[0] = odd[0], third[1] = odd[1], third[2] = a2, third[3] = b2, third[4] = odd[2],
	third[5] = odd[3];
	v[0] = third[0], v[9] = third[5];
#pragma unroll
	for (int i = 0; i < 4; i++) {
		v[2 * i + 1] = even[i];
		v[2 * i + 2] = third[i + 1];
		sort_two(&v[2 * i + 1], &v[2 * i + 2]);
	}
}

/* Of two sorted sequences the k-th value of all: the least of what is the largest of some of the one
 * and as many of the other as are missing to k. */
FORCE_INLINE cell rank_of_both(const cell *a, const int as, const cell *b, const int bs, const int k)
{
	const int first = max(0, k - bs);
	cell least = first ? cell_max(a[first - 1], b[k - first - 1]) : b[k - 1];

#pragma unroll
	for (int i = first + 1; i <= min(as, k); i++)
		least = cell_min(least, i == k ? a[i - 1] : cell_max(a[i - 1], b[k - i - 1]));
	return least;
}

/* The middle six of two times ten sorted values, sorted: as if they were merged. */
FORCE_INLINE void middle_6(cell *middle, const cell *a, const cell *b)
{
	cell odd[2][5], even[2][5];

#pragma unroll
	for (int i = 0; i < 5; i++) {
		odd[0][i] = a[2 * i], even[0][i] = a[2 * i + 1];
		odd[1][i] = b[2 * i], even[1][i] = b[2 * i + 1];
	}
#pragma unroll
	for (int i = 0; i < 3; i++) {
		middle[2 * i] = rank_of_both(odd[0], 5, odd[1], 5, 5 + i);
		middle[2 * i + 1] = rank_of_both(even[0], 5, even[1], 5, 4 + i);
		sort_two(&middle[2 * i], &middle[2 * i + 1]);
	}
}

/* ---- both ---- */

/* The medians of one band of two rows. */
FORCE_INLINE void median_band(cell made[TOGETHER][CELLS], uint words[ROWS_NEEDED][WINDOW],
                              const int band)
{
	enum { RING = 6 };
	cell sorted[RING][TOGETHER][TAPS_Y], pairs[2][TOGETHER][10], middle[6], v[ROWS_NEEDED];
	cell small[TOGETHER], large[TOGETHER]; /* middle values of columns that two windows share */

#pragma unroll
	for (int j = 0; j * BANDS + band < COLUMNS; j++) {
		const int i = j * BANDS + band - 2 * REACH; /* of the window that ends here */
		const bool last = i + BANDS >= CELLS;

#pragma unroll
		for (int s = 0; s < ROWS_NEEDED; s++)
			v[s] = column_cell(words[s], j * BANDS + band);
		if (TAPS_Y == 3)
			column_of_3(sorted[j % RING], v);
		else
			column_of_5(sorted[j % RING], v);
#pragma unroll
		for (int t = 0; t < TOGETHER; t++) {
			if (TAPS_Y == 3) {
				const cell *before = sorted[(j + RING - 1) % RING][t];
				const cell *here = sorted[j % RING][t];
				const cell *first = sorted[(j + RING - 2) % RING][t];

				if (j >= 2 && j % 2 == 0) {
					small[t] = cell_min(before[1], here[1]);
					large[t] = cell_max(before[1], here[1]);
				}
				if (j >= 2)
					made[t][i] = median_of_columns(
					    first, before, here, small[t], large[t],
					    j % 2 == 0 ? first[1] : here[1]);
				continue;
			}
			if (j >= 2 && j % 2 == 0)
				merge_10(pairs[j / 2 % 2][t], sorted[(j - 1) % RING][t],
				         sorted[j % RING][t]);
			if (j < 4 || (j % 2 == 0 && !last))
				continue;
			/* The pairs end at column j - 1, or j. */
			middle_6(middle, pairs[0][t], pairs[1][t]);
			if (j % 2 == 0) {
				made[t][i] = rank_of_both(middle, 6, sorted[(j - 4) % RING][t], 5, 6);
				continue;
			}
			made[t][i - BANDS] = rank_of_both(middle, 6, sorted[(j - 5) % RING][t], 5, 6);
			made[t][i] = rank_of_both(middle, 6, sorted[j % RING][t], 5, 6);
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
		window_load(words[s], top + (ulong)(uint)min(s, count - 1) * src_pitch, width, free);
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
			median_band(made, words, band);
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
