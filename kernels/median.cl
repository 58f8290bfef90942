/* median.cl: the median of 3x3 or 5x5 by a sorting network; stands before the kernels that use it. They
 * define `cell`, one or several samples, and cell_min() and cell_max() of two.
 *
 * The columns of the window are sorted, then its rows, which leaves the columns sorted. In such a
 * matrix the value at (i, j) has at least (i + 1)(j + 1) - 1 others that are not above it. So all but
 * three of nine, or 13 of 25, are on known sides of the median, the same number on either, and it is
 * the median of the rest. */

/* The smaller of two goes to a, the larger to b. */
FORCE_INLINE void sort_2(cell *a, cell *b)
{
	const cell small = cell_min(*a, *b);

	*b = cell_max(*a, *b);
	*a = small;
}

/* Sort five that lie `apart` from each other, and three. */
FORCE_INLINE void sort_5(cell *v, const int apart)
{
	sort_2(v, v + apart);
	sort_2(v + 3 * apart, v + 4 * apart);
	sort_2(v + 2 * apart, v + 4 * apart);
	sort_2(v + 2 * apart, v + 3 * apart);
	sort_2(v + apart, v + 4 * apart);
	sort_2(v, v + 3 * apart);
	sort_2(v, v + 2 * apart);
	sort_2(v + apart, v + 3 * apart);
	sort_2(v + apart, v + 2 * apart);
}

FORCE_INLINE void sort_3(cell *v, const int apart)
{
	sort_2(v, v + apart);
	sort_2(v + apart, v + 2 * apart);
	sort_2(v, v + apart);
}

/* Moves the smallest of `count` values to the first place, the largest to the last. */
FORCE_INLINE void sort_ends(cell *v, const int size)
{
#pragma unroll
	for (int i = 0; i < size / 2; i++)
		sort_2(&v[i], &v[size - 1 - i]);
#pragma unroll
	for (int i = 1; i < (size + 1) / 2; i++)
		sort_2(&v[0], &v[i]);
#pragma unroll
	for (int i = size / 2; i < size - 1; i++)
		sort_2(&v[i], &v[size - 1]);
}

/* Returns the median of 13 values. The smallest and the largest of eight cannot be it; another
 * value takes their place, and so on. */
FORCE_INLINE cell median_of_13(cell *v)
{
	sort_ends(v, 8);
	v[0] = v[8];
	sort_ends(v, 7);
	v[0] = v[9];
	sort_ends(v, 6);
	v[0] = v[10];
	sort_ends(v, 5);
	v[0] = v[11];
	sort_ends(v, 4);
	v[0] = v[12];
	sort_ends(v, 3);
	return v[1];
}

/* Returns the median of a square of `side` values, 3 or 5, row after row; destroys them. */
FORCE_INLINE cell median_of_square(cell *v, const int side)
{
#pragma unroll
	for (int i = 0; i < side; i++)
		if (side == 3)
			sort_3(v + i, side);
		else
			sort_5(v + i, side);
#pragma unroll
	for (int j = 0; j < side; j++)
		if (side == 3)
			sort_3(v + j * side, 1);
		else
			sort_5(v + j * side, 1);
	if (side == 3) {
		cell rest[3] = {v[2], v[4], v[6]};

		sort_3(rest, 1);
		return rest[1];
	}

	cell rest[13] = {v[3],  v[4],  v[7],  v[8],  v[9],  v[11], v[12],
	                 v[13], v[15], v[16], v[17], v[20], v[21]};

	return median_of_13(rest);
}
