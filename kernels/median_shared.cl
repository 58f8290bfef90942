/* median_shared.cl: the median of 3x3 or 5x5 from what neighbouring windows have in common; stands
 * before the kernels that use it, which make two rows together. The preceding file defines `cell`,
 * one or several samples, cell_min(), cell_max() and rest_3().
 *
 * Each column of a window of 3x3 is sorted: the rows that both windows share once, then the row
 * that only one has is put in. The median is that of the largest of the smallest, the median of the
 * middle ones and the smallest of the largest (Paeth, "Median finding on a 3x3 grid", 1990).
 *
 * Four windows of 5x5, two and two, share four columns of four rows, which are sorted. Sorted
 * columns are merged to pairs, which eight windows share. The middle ten of the sixteen values of
 * two pairs are found: the three values below and above cannot be the median of any, whatever its
 * other nine values are. With the four values of the row that only two windows have, the middle six
 * of twenty follow; with the four of its own column and the one in its corner, each window's
 * median. (Sharing the common part of windows: Adams, "Fast median filters using separable sorting
 * networks", 2021.) */

enum { TOGETHER = 2 }; /* rows */

FORCE_INLINE cell min_3(cell a, cell b, cell c)
{
	return cell_min(cell_min(a, b), c);
}

FORCE_INLINE cell max_3(cell a, cell b, cell c)
{
	return cell_max(cell_max(a, b), c);
}

FORCE_INLINE cell median_3(cell a, cell b, cell c)
{
	return rest_3(a, b, c, min_3(a, b, c), max_3(a, b, c));
}

/* Sorts the columns of both windows of four rows. */
FORCE_INLINE void column_of_3(cell *sorted, const cell *v)
{
	const cell small = cell_min(v[1], v[2]), large = cell_max(v[1], v[2]);

#pragma unroll
	for (int t = 0; t < TOGETHER; t++) {
		const cell other = v[3 * t];

		sorted[3 * t] = cell_min(other, small);
		sorted[3 * t + 2] = cell_max(other, large);
		sorted[3 * t + 1] =
		    rest_3(v[1], v[2], other, sorted[3 * t], sorted[3 * t + 2]);
	}
}

FORCE_INLINE void sort_two(cell *a, cell *b)
{
	const cell small = cell_min(*a, *b);

	*b = cell_max(*a, *b);
	*a = small;
}

/* The same; bytes by sums of halves, for which NVIDIA has units beside those that compare. */
FORCE_INLINE void sort_two_by_sums(cell *a, cell *b)
{
#ifdef __NV_CL_C_VERSION
	if (SIZE == 1) {
		const uint more = half2_above(as_uint(*b), as_uint(*a));
		const cell large = cells_add(*a, as_int(more));

		*a = cells_subtract(*b, as_int(more));
		*b = large;
		return;
	}
#endif
	sort_two(a, b);
}

/* Sorts the four rows of a column that both windows have. */
FORCE_INLINE void column_of_4(cell *sorted, const cell *v)
{
#pragma unroll
	for (int i = 0; i < 4; i++)
		sorted[i] = v[i];
	sort_two_by_sums(&sorted[0], &sorted[1]);
	sort_two_by_sums(&sorted[2], &sorted[3]);
	sort_two_by_sums(&sorted[0], &sorted[2]);
	sort_two_by_sums(&sorted[1], &sorted[3]);
	sort_two_by_sums(&sorted[1], &sorted[2]);
}

/* Merges sorted values (Batcher, "Sorting networks and their applications", 1968): the first, third
 * and so on of either, the others, and then neighbours. */
FORCE_INLINE void merge_4(cell *v, cell a0, cell a1, cell b0, cell b1)
{
	v[0] = a0, v[1] = b0, v[2] = a1, v[3] = b1;
	sort_two(&v[0], &v[1]);
	sort_two(&v[2], &v[3]);
	sort_two(&v[1], &v[2]);
}

FORCE_INLINE void merge_8(cell *v, const cell *a, const cell *b)
{
	cell odd[4], even[4];

	merge_4(odd, a[0], a[2], b[0], b[2]);
	merge_4(even, a[1], a[3], b[1], b[3]);
	v[0] = odd[0], v[7] = even[3];
#pragma unroll
	for (int i = 0; i < 3; i++) {
		v[2 * i + 1] = even[i], v[2 * i + 2] = odd[i + 1];
		sort_two_by_sums(&v[2 * i + 1], &v[2 * i + 2]);
	}
}

/* Returns the middle ten of two times eight sorted values, sorted: as if they were merged. */
FORCE_INLINE void middle_10(cell *middle, const cell *a, const cell *b)
{
	cell odd[8], even[8], first[4], second[4];

	merge_4(first, a[0], a[4], b[0], b[4]);
	merge_4(second, a[2], a[6], b[2], b[6]);
#pragma unroll
	for (int i = 0; i < 3; i++) {
		odd[2 * i + 1] = second[i], odd[2 * i + 2] = first[i + 1];
		sort_two(&odd[2 * i + 1], &odd[2 * i + 2]);
	}
	merge_4(first, a[1], a[5], b[1], b[5]);
	merge_4(second, a[3], a[7], b[3], b[7]);
#pragma unroll
	for (int i = 0; i < 3; i++) {
		even[2 * i + 1] = second[i], even[2 * i + 2] = first[i + 1];
		sort_two(&even[2 * i + 1], &even[2 * i + 2]);
	}
#pragma unroll
	for (int i = 0; i < 5; i++) {
		middle[2 * i] = even[i + 1], middle[2 * i + 1] = odd[i + 2];
		sort_two(&middle[2 * i], &middle[2 * i + 1]);
	}
}

/* Returns the middle six of ten and of four sorted values, sorted. The smaller of the i-th of the
 * ten and the i-th last of the four is one of the least four of all; the same holds at the other
 * end. The rest is bitonic, so that its halves, compared value by value, give the smaller three and
 * the larger three (Batcher). */
FORCE_INLINE void middle_6(cell *middle, const cell *ten, const cell *four)
{
	cell v[6];

#pragma unroll
	for (int i = 0; i < 4; i++)
		v[i] = cell_min(cell_max(ten[i], four[3 - i]), ten[6 + i]);
	v[4] = ten[4], v[5] = ten[5];
#pragma unroll
	for (int i = 0; i < 3; i++)
		sort_two(&v[i], &v[3 + i]);
#pragma unroll
	for (int i = 0; i < 6; i += 3) {
		middle[i] = min_3(v[i], v[i + 1], v[i + 2]);
		middle[i + 2] = max_3(v[i], v[i + 1], v[i + 2]);
		middle[i + 1] = rest_3(v[i], v[i + 1], v[i + 2], middle[i], middle[i + 2]);
	}
}

/* Returns the median of six and of four sorted values and of another, which lies between the fifth
 * and the sixth of the ten: the largest of the smaller values, and the smallest of the larger ones,
 * in either of the six and one of the four. */
FORCE_INLINE cell median_of_11(const cell *six, const cell *four, cell other)
{
	cell small = six[0], large = six[5];
	cell low[4], high[4];

#pragma unroll
	for (int i = 0; i < 4; i++) {
		low[i] = six[i + 1], high[i] = four[3 - i];
		sort_two_by_sums(&low[i], &high[i]);
	}
	small = max_3(max_3(small, low[0], low[1]), low[2], low[3]);
	large = min_3(min_3(large, high[0], high[1]), high[2], high[3]);
	return cell_min(cell_max(other, small), large);
}
