/* median_rows.cl: the median of 5x5, for CPUs.
 *
 * A work-item makes a block of BLOCK_Y rows, two at a time, whose windows have all but one row each in
 * common: see median_shared.cl. Vectors of columns are sorted once, and go to private lines, from where
 * they are merged with their neighbours, which two windows across share.
 *
 * Samples are compared as keys: see keys.cl. At least 64 samples a row. */

/* Samples and rows that a work-item makes. */
#ifndef BLOCK_X
#define BLOCK_X 1024
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 32
#endif

enum {
	MEDIAN_TAPS = 5,
	MEDIAN_HALO = 2 * BANDS,
	TOGETHER = 2, /* rows */
	MEDIAN_NEEDED = MEDIAN_TAPS + TOGETHER - 1,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	MEDIAN_LINE = BLOCK_X + 16 + 2 * MEDIAN_HALO,
};

typedef key line[MEDIAN_LINE];

/* Of each column: the four that both rows share, sorted, and the fifth of each row; then the same of
 * it and its right neighbour, merged. */
struct median_lines {
	line sorted[4], outer[TOGETHER], pairs[8], outer_pairs[TOGETHER][2];
};

/* Loads and stores vectors of `count` lines, at sample x. */
FORCE_INLINE void lines_load(cell *v, const line *lines, const int count, uint x)
{
#pragma unroll
	for (int i = 0; i < count; i++)
		v[i] = KEYS_LOAD(private, lines[i] + x);
}

FORCE_INLINE void lines_store(const cell *v, line *lines, const int count, uint x)
{
#pragma unroll
	for (int i = 0; i < count; i++)
		KEYS_STORE(private, v[i], lines[i] + x);
}

FORCE_INLINE void median_columns(struct median_lines *lines, const cell *v, uint x)
{
	const cell outer[TOGETHER] = {v[0], v[5]};
	cell sorted[4];

	column_of_4(sorted, v + 1);
	lines_store(sorted, lines->sorted, 4, x);
	lines_store(outer, lines->outer, TOGETHER, x);
}

/* Merges each of so many columns with the next one. */
FORCE_INLINE void median_pairs(struct median_lines *lines, uint columns)
{
	for (uint i = 0; i < columns - BANDS; i += LANES) {
		const uint x = min(i, columns - BANDS - LANES);
		cell a[4], b[4], pair[8];

		lines_load(a, lines->sorted, 4, x);
		lines_load(b, lines->sorted, 4, x + BANDS);
		merge_8(pair, a, b);
		lines_store(pair, lines->pairs, 8, x);
		for (int t = 0; t < TOGETHER; t++) {
			lines_load(pair, &lines->outer[t], 1, x);
			lines_load(pair + 1, &lines->outer[t], 1, x + BANDS);
			sort_two(&pair[0], &pair[1]);
			lines_store(pair, lines->outer_pairs[t], 2, x);
		}
	}
}

/* The medians of both rows' windows that begin at sample x. */
FORCE_INLINE void median_windows(cell made[TOGETHER], const struct median_lines *lines, uint x)
{
	cell a[8], b[8], ten[10], last[4], four[4], six[6], corner;

	lines_load(a, lines->pairs, 8, x);
	lines_load(b, lines->pairs, 8, x + 2 * BANDS);
	middle_10(ten, a, b);
	lines_load(last, lines->sorted, 4, x + 4 * BANDS);
#pragma unroll
	for (int t = 0; t < TOGETHER; t++) {
		lines_load(a, lines->outer_pairs[t], 2, x);
		lines_load(b, lines->outer_pairs[t], 2, x + 2 * BANDS);
		merge_4(four, a[0], a[1], b[0], b[1]);
		middle_6(six, ten, four);
		lines_load(&corner, &lines->outer[t], 1, x + 4 * BANDS);
		made[t] = median_of_11(six, last, corner);
	}
}

/* Two rows, or the first of them. */
FORCE_INLINE void median_rows_made(struct median_lines *lines, source_row top, uint pitch,
                                   target_row first, target_row second, uint width, uint here)
{
	const uint columns = width + 2 * MEDIAN_HALO;

	for (uint i = 0; i < columns; i += LANES) {
		const uint x = min(i, columns - LANES);
		const global uchar *const p = (const global uchar *)(top + x);
		cell v[MEDIAN_NEEDED];

#pragma unroll
		for (uint j = 0; j < MEDIAN_NEEDED; j++)
			v[j] = keys_load(
			    (source_row)(p + (ulong)min(j, here + MEDIAN_TAPS - 2) * pitch), LANES);
		median_columns(lines, v, x);
	}
	median_pairs(lines, columns);
	for (uint i = 0; i < width; i += LANES) {
		const uint x = min(i, width - LANES);
		cell made[TOGETHER];

		median_windows(made, lines, x);
		keys_store(made[0], first + x, LANES);
		if (here == TOGETHER)
			keys_store(made[1], second + x, LANES);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
median_rows(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	struct median_lines lines __attribute__((aligned(64)));

	for (uint y = start; y < end; y += TOGETHER) {
		const uint here = min(end - y, (uint)TOGETHER);

		median_rows_made(&lines, SOURCE_ROW((long)y - 2) + span.x - MEDIAN_HALO,
		                 src_pitch, TARGET_ROW(y) + span.x, TARGET_ROW(y + 1) + span.x,
		                 span.y - span.x, here);
		for (uint r = 0; r < here; r++)
			keys_keep(SOURCE_ROW(y + r), TARGET_ROW(y + r), span, BANDS, KEEP);
	}
}
