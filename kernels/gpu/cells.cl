/* gpu/cells.cl: samples that are only compared; stands before the kernels that do. A cell is a
 * word: two bytes, 16 bits apart; or one larger sample. A cell of floats has the bits in an order
 * of integers, in which NaN is the largest.
 *
 * Two bytes lie side by side; or in the same place of two rows, or of the halves of a row: then the
 * neighbours of both are the two of another cell (cell_of_two, cells_split).
 *
 * NVIDIA compares pairs of bytes as halves, which they are with their upper bits 0. */

#define CELL_SAMPLES_uchar  2
#define CELL_SAMPLES_ushort 1
#define CELL_SAMPLES_float  1

enum { CELL_SAMPLES = PASTE(CELL_SAMPLES_, PIXEL, ), CELLS = BLOCK_X / CELL_SAMPLES };

typedef int cell;

FORCE_INLINE cell cell_min(cell a, cell b)
{
	if (SIZE != 1)
		return min(a, b);
#ifdef __NV_CL_C_VERSION
	return as_int(half2_min(as_uint(a), as_uint(b)));
#else
	return as_int(min(as_ushort2(a), as_ushort2(b)));
#endif
}

FORCE_INLINE cell cell_max(cell a, cell b)
{
	if (SIZE != 1)
		return max(a, b);
#ifdef __NV_CL_C_VERSION
	return as_int(half2_max(as_uint(a), as_uint(b)));
#else
	return as_int(max(as_ushort2(a), as_ushort2(b)));
#endif
}

/* Sums of a few cells, and their remainder. Bytes do not overflow; sums of larger samples may,
 * harmlessly. */
FORCE_INLINE cell cells_add(cell a, cell b)
{
#ifdef __NV_CL_C_VERSION
	if (SIZE == 1)
		return as_int(half2_add(as_uint(a), as_uint(b)));
#endif
	return as_int(as_uint(a) + as_uint(b));
}

FORCE_INLINE cell cells_subtract(cell a, cell b)
{
#ifdef __NV_CL_C_VERSION
	if (SIZE == 1)
		return as_int(half2_sub(as_uint(a), as_uint(b)));
#endif
	return as_int(as_uint(a) - as_uint(b));
}

/* Returns the cell that begins with sample i of words. */
FORCE_INLINE cell words_cell(const uint *w, int i)
{
	if (SIZE == 1) {
		const uint here = w[i / 4];

		if (i % 4 == 0)
			return as_int(permute(here, 0, 0x4140));
		if (i % 4 == 1)
			return as_int(permute(here, 0, 0x4241));
		if (i % 4 == 2)
			return as_int(permute(here, 0, 0x4342));
		return as_int(here >> 24 | (w[i / 4 + 1] & 255) << 16);
	}
	if (SIZE == 2)
		return as_int(w[i / 2] >> 16 * (i % 2) & 0xffff);

	const int bits = (w[i] & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : as_int(w[i]);

	return bits ^ (bits >> 31 & 0x7fffffff);
}

/* Returns the cell of sample i of words, and for bytes also the sample in the same place of other
 * words. */
FORCE_INLINE cell cell_of_two(const uint *w, const uint *other, int i)
{
	if (SIZE != 1)
		return words_cell(w, i);

	/* Shifted, it has zeros as well. */
	const uint here = w[i / 4];

	switch (i % 4) {
	case 0:
		return as_int(permute(here, other[i / 4] << 16, 0x4640));
	case 1:
		return as_int(permute(here, other[i / 4] << 16, 0x4741));
	case 2:
		return as_int(permute(here, other[i / 4] >> 16, 0x6462));
	default:
		return as_int(permute(here, other[i / 4] >> 16, 0x6563));
	}
}

/* Returns word k of cells in a row. */
FORCE_INLINE uint cells_word(const cell *c, int k)
{
	if (SIZE == 1)
		return permute(as_uint(c[2 * k]), as_uint(c[2 * k + 1]), 0x6420);
	if (SIZE == 2)
		return as_uint(c[2 * k]) | as_uint(c[2 * k + 1]) << 16;
	return as_uint(c[k] ^ (c[k] >> 31 & 0x7fffffff));
}

/* Returns word k of the samples of cells of two, and for bytes also that of the others. */
FORCE_INLINE void cells_split(uint *word, uint *other, const cell *c, int k)
{
	if (SIZE != 1) {
		*word = cells_word(c, k);
		return;
	}

	const uint left = permute(as_uint(c[4 * k]), as_uint(c[4 * k + 1]), 0x6240);
	const uint right = permute(as_uint(c[4 * k + 2]), as_uint(c[4 * k + 3]), 0x6240);

	*word = permute(left, right, 0x5410);
	*other = permute(left, right, 0x7632);
}

/* Returns the third of three values, given the smallest and the largest. */
FORCE_INLINE cell rest_3(cell a, cell b, cell c, cell least, cell most)
{
	return cells_subtract(cells_subtract(cells_add(cells_add(a, b), c), least), most);
}
