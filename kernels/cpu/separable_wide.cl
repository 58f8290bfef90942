/* separable_wide.cl: a column filter and a row filter of sizes known at compile time, in wide vectors
 * of floats, for CPUs.
 *
 * blur(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry)) + offset
 *
 * separable_wide: out = blur
 *   threshold_local_wide, unsharp_wide: the results of general/threshold.cl and unsharp.cl from in
 *   and blur, without alpha. The blur is not stored, and pixels need no conversion to floats before
 *   it.
 *
 * A work-item makes a block of BLOCK_Y rows, WIDE_ROWS at a time. First down: each source vector is
 * loaded and converted once for all of these rows; their sums go to private lines. Then across, from
 * there. Only weights inside the window are used (0 * NaN is NaN).
 *
 * Terms are added one after the other, so that radii are limited to 31: 2 * 63 roundings are less
 * than 1e-5.
 *
 * weights: float, row, then column. At least 64 samples a row. */

/* Rows that share a source vector. */
#ifndef WIDE_ROWS
#define WIDE_ROWS 8
#endif

enum {
	WIDE_ACROSS = 2 * RADIUS_X + 1,
	WIDE_DOWN = 2 * RADIUS_Y + 1,
	WIDE_HALO = RADIUS_X * BANDS,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	WIDE_LINE = (BLOCK_X + 16 + 2 * WIDE_HALO + 15) / 16 * 16,
	WIDE_LINES = WIDE_DOWN + WIDE_ROWS - 1,
	/* The source rows [FULL, WIDE_DOWN), if any, are in all rows' windows. */
	WIDE_FULL = WIDE_ROWS - 1,
	WIDE_PARTIAL = WIDE_DOWN > WIDE_FULL ? WIDE_DOWN : WIDE_FULL,
	WIDE_UNROLL = WIDE_ACROSS <= 9 ? WIDE_ACROSS : 4,
	WIDE_DOWN_SAMPLES = 32,
	WIDE_ACROSS_SAMPLES = 64,
};

/* Sums down and sums across; these and pixels anywhere in memory. */
typedef float down __attribute__((ext_vector_type(WIDE_DOWN_SAMPLES)));
typedef float across __attribute__((ext_vector_type(WIDE_ACROSS_SAMPLES)));
typedef down down_anywhere __attribute__((aligned(4)));
typedef across across_anywhere __attribute__((aligned(4)));
typedef PIXEL pixels_down
    __attribute__((ext_vector_type(WIDE_DOWN_SAMPLES), aligned(sizeof(PIXEL))));

typedef float line[WIDE_LINE];

/* Adds the vector at p, of source row j, to the rows that have it in their windows. */
FORCE_INLINE void wide_add(down sum[WIDE_ROWS], const global uchar *p, int j,
                           constant float *column, const bool all)
{
	const down v = __builtin_convertvector(*(const global pixels_down *)p, down);

#pragma unroll
	for (int r = 0; r < WIDE_ROWS; r++)
		if (all || (j >= r && j - r < WIDE_DOWN))
			sum[r] += v * column[j - r];
}

/* Sums down the columns from sample x of the lines on. p: their first source row, of `count`; rows
 * that would need more become anything. */
FORCE_INLINE void wide_down(line *lines, uint x, const global uchar *p, ulong pitch, int count,
                            constant float *column)
{
	down sum[WIDE_ROWS];

#pragma unroll
	for (int r = 0; r < WIDE_ROWS; r++)
		sum[r] = 0.0f;
#pragma unroll
	for (int j = 0; j < WIDE_FULL; j++)
		wide_add(sum, p + min(j, count - 1) * pitch, j, column, false);
#pragma unroll 1
	for (int j = WIDE_FULL; j < WIDE_DOWN; j++)
		wide_add(sum, p + min(j, count - 1) * pitch, j, column, true);
#pragma unroll
	for (int j = WIDE_PARTIAL; j < WIDE_LINES; j++)
		wide_add(sum, p + min(j, count - 1) * pitch, j, column, false);
#pragma unroll
	for (int r = 0; r < WIDE_ROWS; r++)
		*(private down_anywhere *)(lines[r] + x) = sum[r];
}

enum wide_kind { WIDE_BLUR, WIDE_THRESHOLD, WIDE_UNSHARP };

/* Parameters of the step after a blur. amount: full scale for a threshold. */
struct wide_how {
	float offset, amount, threshold;
};

FORCE_INLINE float16 wide_compare(float16 v, float16 blur, const struct wide_how *how,
                                  const enum wide_kind kind)
{
	float16 d;

#ifdef PIXEL_MAX
	if (kind == WIDE_THRESHOLD)
		blur = rint(blur);
#endif
	d = v - blur;
	if (kind == WIDE_THRESHOLD)
		return select((float16)(0.0f), (float16)(how->amount), d > how->threshold);
	return select(fma(d, (float16)(how->amount), v), v, fabs(d) < how->threshold);
}

/* Returns the sums across whose first tap is at p. */
FORCE_INLINE void wide_across(const private float *p, constant float *row,
                              const struct wide_how *how, const enum wide_kind kind,
                              source_row in, target_row out, uint x, ulong2 lines)
{
	float16 result[WIDE_ACROSS_SAMPLES / VECTOR];
	across sum = how->offset;

#pragma unroll WIDE_UNROLL
	for (int i = 0; i < WIDE_ACROSS; i++)
		sum += *(const private across_anywhere *)(p + i * BANDS) * row[i];
	*(private across *)result = sum;
#pragma unroll
	for (int k = 0; kind != WIDE_BLUR && k < WIDE_ACROSS_SAMPLES / VECTOR; k++)
		result[k] = wide_compare(pixel_load(in + k * VECTOR, VECTOR), result[k], how, kind);
#pragma unroll
	for (int k = 0; k < WIDE_ACROSS_SAMPLES / VECTOR; k++)
		wide_store(result[k], in + k * VECTOR, out + k * VECTOR, x + k * VECTOR,
		           lines);
}

/* Makes the block of a work-item. src, dst: the first samples of its region. */
FORCE_INLINE void wide_block(const global uchar *src, uint src_pitch, global uchar *dst,
                             uint dst_pitch, uint2 span, uint start, uint end,
                             constant float *weights, const struct wide_how *how,
                             const enum wide_kind kind)
{
	const uint width = span.y - span.x, columns = width + 2 * WIDE_HALO;
	const ulong src_offset = 0, dst_offset = 0;
	line lines[WIDE_ROWS] __attribute__((aligned(64)));

	for (uint y = start; y < end; y += WIDE_ROWS) {
		const uint here = min(end - y, (uint)WIDE_ROWS);
		const source_row top = SOURCE_ROW((long)y - RADIUS_Y) + span.x - WIDE_HALO;

		for (uint i = 0; i < columns; i += WIDE_DOWN_SAMPLES) {
			const uint x = min(i, columns - WIDE_DOWN_SAMPLES);

			wide_down(lines, x, (const global uchar *)(top + x), src_pitch,
			          here + WIDE_DOWN - 1, weights + WIDE_ACROSS);
		}
		for (uint r = 0; r < here; r++) {
			const source_row in = SOURCE_ROW(y + r) + span.x;
			const target_row out = TARGET_ROW(y + r) + span.x;
			const ulong2 past = stream_lines(out, out + width,
			                                 WIDE_ACROSS_SAMPLES * sizeof(PIXEL));

			for (uint i = 0; i < width; i += WIDE_ACROSS_SAMPLES) {
				const uint x = min(i, width - WIDE_ACROSS_SAMPLES);

				wide_across(lines[r] + x, weights, how, kind, in + x, out + x,
				            span.x + x, past);
			}
		}
	}
}

#define WIDE_BLOCK(how, kind)                                                                      \
	const uint2 span = block_span(samples, blocks, get_global_id(0));                          \
	const uint start = get_global_id(1) * BLOCK_Y;                                             \
                                                                                                   \
	wide_block(src + src_offset, src_pitch, dst + dst_offset, dst_pitch, span, start,          \
	           min(start + BLOCK_Y, rows), weights, how, kind);

#define WIDE_KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

/* A program has one kernel: compiling all three takes twice as long. */
#ifdef KERNEL_separable_wide
WIDE_KERNEL separable_wide(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                           float offset, uint keep)
{
	const struct wide_how how = {offset, 0, 0};

	WIDE_BLOCK(&how, WIDE_BLUR)
}
#endif

#ifdef KERNEL_threshold_local_wide
WIDE_KERNEL threshold_local_wide(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                                 float offset, uint keep, float full, float threshold)
{
	const struct wide_how how = {offset, full, threshold};

	WIDE_BLOCK(&how, WIDE_THRESHOLD)
}
#endif

#ifdef KERNEL_unsharp_wide
WIDE_KERNEL unsharp_wide(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                         uint keep, float amount, float threshold)
{
	const struct wide_how how = {offset, amount, threshold};

	WIDE_BLOCK(&how, WIDE_UNSHARP)
}
#endif
