/* gpu/cells.cl: samples that are only compared; stands before the kernels that do. A cell is a word: two
 * bytes, 16 bits apart; or one larger sample. Of floats it has the bits in an order of integers, in
 * which NaN is the largest.
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

#define CELL_MIN cell_min
#define CELL_MAX cell_max

/* The cell that begins with sample i of words. */
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

/* The cell that begins with sample i of cells in a row. */
FORCE_INLINE cell cells_at(const cell *c, int i)
{
	if (SIZE != 1 || i % 2 == 0)
		return c[i / CELL_SAMPLES];
#ifdef __NV_CL_C_VERSION
	return as_int(permute(as_uint(c[i / 2]), as_uint(c[i / 2 + 1]), 0x5432));
#else /* of shifts a compiler may make an instruction that Oclgrind does not have */
	return as_int((ushort2)(as_ushort2(c[i / 2]).y, as_ushort2(c[i / 2 + 1]).x));
#endif
}

/* Word k of cells in a row. */
FORCE_INLINE uint cells_word(const cell *c, int k)
{
	if (SIZE == 1)
		return permute(as_uint(c[2 * k]), as_uint(c[2 * k + 1]), 0x6420);
	if (SIZE == 2)
		return as_uint(c[2 * k]) | as_uint(c[2 * k + 1]) << 16;
	return as_uint(c[k] ^ (c[k] >> 31 & 0x7fffffff));
}
