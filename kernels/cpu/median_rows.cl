/* median_rows.cl: the median of 3x3 or 5x5, for CPUs.
 *
 * A work-item makes a block of BLOCK_Y rows, two at a time, whose windows have all but one row each in
 * common: see median_shared.cl. Columns of 3x3 stay in registers. Those of 5x5 are sorted once, and go to
 * private lines, from where they are merged with their neighbours, which two windows across share;
 * and of a window's 25 values the 20 that both rows have are brought down to six first.
 *
 * Samples are compared as keys: see keys.cl. At least 64 samples a row. */

enum {
	MEDIAN_HALO = RADIUS_X * BANDS,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. Each line begins at a
	 * multiple of a vector. */
	MEDIAN_LINE = (BLOCK_X + 16 + 2 * MEDIAN_HALO + LANES - 1) / LANES * LANES,
};

typedef key line[MEDIAN_LINE];

/* Columns of 5x5: the four values that both rows share, sorted, and the fifth of each row; then the
 * same for each column merged with its right neighbour. */
struct median_lines {
	line sorted[4], outer[TOGETHER], pairs[8], outer_pairs[TOGETHER][2];
};

/* Load and store vectors of two to eight lines, at sample x; not in loops, which PoCL's compiler would
 * leave, and the vectors in memory. */
FORCE_INLINE void lines_load_2(cell *v, const line *lines, uint x)
{
	v[0] = KEYS_LOAD(private, lines[0] + x);
	v[1] = KEYS_LOAD(private, lines[1] + x);
}

FORCE_INLINE void lines_load_4(cell *v, const line *lines, uint x)
{
	lines_load_2(v, lines, x);
	lines_load_2(v + 2, lines + 2, x);
}

FORCE_INLINE void lines_load_8(cell *v, const line *lines, uint x)
{
	lines_load_4(v, lines, x);
	lines_load_4(v + 4, lines + 4, x);
}

FORCE_INLINE void lines_store_2(const cell *v, line *lines, uint x)
{
	KEYS_STORE(private, v[0], lines[0] + x);
	KEYS_STORE(private, v[1], lines[1] + x);
}

FORCE_INLINE void lines_store_4(const cell *v, line *lines, uint x)
{
	lines_store_2(v, lines, x);
	lines_store_2(v + 2, lines + 2, x);
}

FORCE_INLINE void median_columns(struct median_lines *lines, const cell *v, uint x)
{
	const cell outer[TOGETHER] = {v[0], v[5]};
	cell sorted[4];

	column_of_4(sorted, v + 1);
	lines_store_4(sorted, lines->sorted, x);
	lines_store_2(outer, lines->outer, x);
}

/* Merges the values that only one row has with those of the next columns. */
FORCE_INLINE void median_outer_pairs(line *pairs, const line *outer, uint x)
{
	cell pair[2] = {KEYS_LOAD(private, *outer + x), KEYS_LOAD(private, *outer + x + BANDS)};

	sort_two(&pair[0], &pair[1]);
	lines_store_2(pair, pairs, x);
}

/* Merges each column with the next one. */
FORCE_INLINE void median_pairs(struct median_lines *lines, uint columns)
{
	for (uint i = 0; i < columns - BANDS; i += LANES) {
		const uint x = min(i, columns - BANDS - LANES);
		cell a[4], b[4], pair[8];

		lines_load_4(a, lines->sorted, x);
		lines_load_4(b, lines->sorted, x + BANDS);
		merge_8(pair, a, b);
		lines_store_4(pair, lines->pairs, x);
		lines_store_4(pair + 4, lines->pairs + 4, x);
		median_outer_pairs(lines->outer_pairs[0], &lines->outer[0], x);
		median_outer_pairs(lines->outer_pairs[1], &lines->outer[1], x);
	}
}

/* Returns the middle six of the values that both rows' windows of 5x5 share, from sample x on. */
FORCE_INLINE void median_middle(cell *six, const struct median_lines *lines, uint x)
{
	cell a[8], b[8], ten[10], last[4];

	lines_load_8(a, lines->pairs, x);
	lines_load_8(b, lines->pairs, x + 2 * BANDS);
	middle_10(ten, a, b);
	lines_load_4(last, lines->sorted, x + 4 * BANDS);
	middle_6(six, ten, last);
}

/* Returns the median of these and of the five that only one row has. */
FORCE_INLINE cell median_window_5(const cell *six, const line *pairs, const line *outer, uint x)
{
	cell a[2], b[2], four[4];

	lines_load_2(a, pairs, x);
	lines_load_2(b, pairs, x + 2 * BANDS);
	merge_4(four, a[0], a[1], b[0], b[1]);
	return median_of_11(six, four, KEYS_LOAD(private, *outer + x + 4 * BANDS));
}

/* The places of the medians of two rows, or of the first row. */
struct median_target {
	target_row first, second;
	ulong2 first_lines, second_lines;
	uint here;
};

FORCE_INLINE void median_store(const cell made[TOGETHER], const struct median_target *to, uint x)
{
	bits_stream(KEYS_BITS(made[0]), to->first + x, to->first_lines);
	if (to->here == TOGETHER)
		bits_stream(KEYS_BITS(made[1]), to->second + x, to->second_lines);
}

FORCE_INLINE void median_rows_5(struct median_lines *lines, source_row top, uint pitch,
                                const struct median_target *to, uint width)
{
	const uint columns = width + 2 * MEDIAN_HALO;

	for (uint i = 0; i < columns; i += LANES) {
		const uint x = min(i, columns - LANES);
		const global uchar *const p = (const global uchar *)(top + x);
		cell v[6];

#pragma unroll
		for (uint j = 0; j < 6; j++)
			v[j] = keys_load((source_row)(p + (ulong)min(j, to->here + 3) * pitch), LANES);
		median_columns(lines, v, x);
	}
	median_pairs(lines, columns);
	for (uint i = 0; i < width; i += LANES) {
		const uint x = min(i, width - LANES);
		cell made[TOGETHER], six[6];

		median_middle(six, lines, x);
		made[0] = median_window_5(six, lines->outer_pairs[0], &lines->outer[0], x);
		made[1] = median_window_5(six, lines->outer_pairs[1], &lines->outer[1], x);
		median_store(made, to, x);
	}
}

/* Columns of both rows' windows, sorted; p: their first row. */
FORCE_INLINE void median_column_3(cell sorted[3 * TOGETHER], const global uchar *p, ulong pitch,
                                  uint here)
{
	cell v[4];

	v[0] = keys_load((source_row)p, LANES);
	v[1] = keys_load((source_row)(p + pitch), LANES);
	v[2] = keys_load((source_row)(p + 2 * pitch), LANES);
	v[3] = keys_load((source_row)(p + (here + 1) * pitch), LANES);
	column_of_3(sorted, v);
}

/* Returns the median of three columns. */
FORCE_INLINE cell median_window_3(const cell *a, const cell *b, const cell *c)
{
	return median_3(max_3(a[0], b[0], c[0]), median_3(a[1], b[1], c[1]),
	                min_3(a[2], b[2], c[2]));
}

/* Returns sixteen lanes of two vectors, from the n-th on. */
#define MEDIAN_SHIFT(a, b, n)                                                                      \
	__builtin_shufflevector(a, b, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8,   \
	                        n + 9, n + 10, n + 11, n + 12, n + 13, n + 14, n + 15)

/* Makes the medians of floats while there are two whole vectors of columns: each is sorted once,
 * and shifted for the windows that begin in the other. (Bytes are loaded again: that is faster than
 * shifting.) Returns the number of samples made. */
FORCE_INLINE uint median_run_3(const global uchar *p, uint pitch, const struct median_target *to,
                               uint width)
{
#if defined __x86_64__ && !defined PIXEL_MAX
	cell a[3 * TOGETHER], b[3 * TOGETHER], c[3 * TOGETHER], next[3 * TOGETHER], made[TOGETHER];
	uint x = 0;

	if (width < 2 * LANES)
		return 0;
	median_column_3(a, p, pitch, to->here);
	for (; x + 2 * LANES <= width + 2 * MEDIAN_HALO; x += LANES) {
		median_column_3(next, p + sizeof(PIXEL) * (x + LANES), pitch, to->here);
#pragma unroll
		for (int i = 0; i < 3 * TOGETHER; i++) {
			b[i] = MEDIAN_SHIFT(a[i], next[i], BANDS);
			c[i] = MEDIAN_SHIFT(a[i], next[i], 2 * BANDS);
		}
		made[0] = median_window_3(a, b, c);
		made[1] = median_window_3(a + 3, b + 3, c + 3);
		median_store(made, to, x);
#pragma unroll
		for (int i = 0; i < 3 * TOGETHER; i++)
			a[i] = next[i];
	}
	return x;
#else
	return 0;
#endif
}

FORCE_INLINE void median_rows_3(source_row top, uint pitch, const struct median_target *to,
                                uint width)
{
	const uint done = median_run_3((const global uchar *)top, pitch, to, width);

	for (uint i = done; i < width; i += LANES) {
		const uint x = min(i, width - LANES);
		const global uchar *const p = (const global uchar *)(top + x);
		cell a[3 * TOGETHER], b[3 * TOGETHER], c[3 * TOGETHER], made[TOGETHER];

		median_column_3(a, p, pitch, to->here);
		median_column_3(b, p + sizeof(PIXEL) * BANDS, pitch, to->here);
		median_column_3(c, p + 2 * sizeof(PIXEL) * BANDS, pitch, to->here);
		made[0] = median_window_3(a, b, c);
		made[1] = median_window_3(a + 3, b + 3, c + 3);
		median_store(made, to, x);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
median_rows(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	struct median_lines lines __attribute__((aligned(64)));

	for (uint y = start; y < end; y += TOGETHER) {
		const uint here = min(end - y, (uint)TOGETHER), width = span.y - span.x;
		const source_row top = SOURCE_ROW((long)y - RADIUS_Y) + span.x - MEDIAN_HALO;
		const target_row first = TARGET_ROW(y) + span.x, second = TARGET_ROW(y + 1) + span.x;
		const struct median_target to = {first, second, bits_lines(first, width),
		                                 bits_lines(second, width), here};

		if (RADIUS_X == 1)
			median_rows_3(top, src_pitch, &to, width);
		else
			median_rows_5(&lines, top, src_pitch, &to, width);
		for (uint r = 0; r < here; r++)
			keys_keep(SOURCE_ROW(y + r), TARGET_ROW(y + r), span, BANDS, KEEP);
	}
}
