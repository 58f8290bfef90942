/* extreme_rows.cl: the smallest or the largest value in a small rectangle whose size is known at
 * compile time, for CPUs.
 *
 * A work-item makes a block of BLOCK_Y rows, a few at a time. First down: each source vector is loaded
 * once for all of these rows, whose windows share the rows from the last one's first to the first
 * one's last; running extremes from there upwards and downwards complete them, in registers (see
 * general/extreme.cl). They go to private lines. Then across, from there.
 *
 * Samples are compared as keys: see keys.cl. At least 64 samples a row. OUTPUT: 1 for the largest. */

enum {
	EXTREME_ACROSS = 2 * RADIUS_X + 1,
	EXTREME_DOWN = 2 * RADIUS_Y + 1,
	EXTREME_HALO = RADIUS_X * BANDS,
	/* Rows made together: their windows have at least one row in common. */
	EXTREME_TOGETHER = EXTREME_DOWN < 4 ? EXTREME_DOWN : 4,
	EXTREME_NEEDED = EXTREME_DOWN + EXTREME_TOGETHER - 1,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. Each line begins at a
	 * multiple of a vector. */
	EXTREME_LINE = (BLOCK_X + 16 + 2 * EXTREME_HALO + LANES - 1) / LANES * LANES,
};

typedef key line[EXTREME_LINE];

FORCE_INLINE keys extreme_of(keys a, keys b)
{
	return keys_extreme(a, b, OUTPUT);
}

/* Makes the extremes down of the columns from sample x of the lines on. p: their first source row,
 * of `count`; rows that would need more become anything. */
FORCE_INLINE void extreme_down(line *lines, uint x, const global uchar *p, ulong pitch, int count)
{
	keys v[EXTREME_NEEDED];

#pragma unroll
	for (int j = 0; j < EXTREME_NEEDED; j++)
		v[j] = keys_load((source_row)(p + min(j, count - 1) * pitch), LANES);
#pragma unroll
	for (int j = EXTREME_TOGETHER; j < EXTREME_DOWN; j++)
		v[EXTREME_TOGETHER - 1] = extreme_of(v[EXTREME_TOGETHER - 1], v[j]);
#pragma unroll
	for (int r = EXTREME_TOGETHER - 2; r >= 0; r--)
		v[r] = extreme_of(v[r], v[r + 1]);
	KEYS_STORE(private, v[0], lines[0] + x);
#pragma unroll
	for (int r = 1; r < EXTREME_TOGETHER; r++) {
		const int j = EXTREME_DOWN + r - 1;

		if (r > 1)
			v[j] = extreme_of(v[j - 1], v[j]);
		KEYS_STORE(private, extreme_of(v[r], v[j]), lines[r] + x);
	}
}

/* Makes the extremes across of `width` samples; `from` is the first tap of the first. */
FORCE_INLINE void extreme_across(const private key *from, target_row out, uint width)
{
	const ulong2 lines = bits_lines(out, width);

	for (uint i = 0; i < width; i += LANES) {
		const uint x = min(i, width - LANES);
		keys v = KEYS_LOAD(private, from + x);

#pragma unroll
		for (int k = 1; k < EXTREME_ACROSS; k++)
			v = extreme_of(v, KEYS_LOAD(private, from + x + k * BANDS));
		bits_stream(KEYS_BITS(v), out + x, lines);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
extreme_rows(REGION_ARGUMENTS, uint radius, uint element, uint largest, uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint width = span.y - span.x, columns = width + 2 * EXTREME_HALO;
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	line lines[EXTREME_TOGETHER] __attribute__((aligned(64)));

	for (uint y = start; y < end; y += EXTREME_TOGETHER) {
		const uint here = min(end - y, (uint)EXTREME_TOGETHER);
		const source_row top = SOURCE_ROW((long)y - RADIUS_Y) + span.x - EXTREME_HALO;

		for (uint i = 0; i < columns; i += LANES) {
			const uint x = min(i, columns - LANES);

			extreme_down(lines, x, (const global uchar *)(top + x), src_pitch,
			             here + EXTREME_DOWN - 1);
		}
		for (uint r = 0; r < here; r++) {
			extreme_across(lines[r], TARGET_ROW(y + r) + span.x, width);
			keys_keep(SOURCE_ROW(y + r), TARGET_ROW(y + r), span, BANDS, KEEP);
		}
	}
}
