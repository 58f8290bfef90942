/* separable_sums.cl: means of bytes over rectangles by running sums, for CPUs.
 *
 * mean(x, y) = the mean of in(x + i, y + j) over |i| <= rx, |j| <= ry
 *
 * separable_sums: out = mean, rounded
 * threshold_local_sums: out = in - rounded mean > threshold ? full : 0
 *
 * A work-item makes a block of BLOCK_Y rows, one after another. It keeps the sum of each column's
 * window: from row to row one sample enters and one leaves. Lanes of a vector cannot run along a
 * row, so these sums are added up from the row's start (Hillis and Steele, "Data Parallel
 * Algorithms", 1986): a window's sum is the difference of two of those, also where they have wrapped.
 * So the cost is the same for all sizes, and sums are exact.
 *
 * weights: not used. At least 64 samples a row. No `offset`. */

enum {
	SUMS_ACROSS = 2 * RADIUS_X + 1,
	SUMS_DOWN = 2 * RADIUS_Y + 1,
	SUMS_AREA = SUMS_ACROSS * SUMS_DOWN,
	SUMS_HALO = RADIUS_X * BANDS,
	SUMS_COLUMNS = 32,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	SUMS_LINE = (BLOCK_X + 16 + 2 * SUMS_HALO + SUMS_COLUMNS - 1) / SUMS_COLUMNS * SUMS_COLUMNS,
};

/* The sum of a column's window. */
#if RADIUS_Y < 128
typedef ushort column;
#else
typedef uint column;
#endif
typedef column columns_anywhere
    __attribute__((ext_vector_type(SUMS_COLUMNS), aligned(sizeof(column))));
typedef column columns __attribute__((ext_vector_type(SUMS_COLUMNS)));
typedef uchar bytes_anywhere __attribute__((ext_vector_type(SUMS_COLUMNS), aligned(1)));
typedef column columns_16 __attribute__((ext_vector_type(VECTOR), aligned(sizeof(column))));
typedef uint16 sums_anywhere __attribute__((aligned(4)));

#define SUMS_BYTES(p) __builtin_convertvector(*(const global bytes_anywhere *)(p), columns)
#define SUMS_AT(p)    (*(const private sums_anywhere *)(p))

/* Returns, for 16 lanes, the lanes `n` earlier; 0 in the first n. */
#define SUMS_LATER(v, n)                                                                           \
	__builtin_shufflevector((uint16)(0), v, 16 - (n), 17 - (n), 18 - (n), 19 - (n), 20 - (n),  \
	                        21 - (n), 22 - (n), 23 - (n), 24 - (n), 25 - (n), 26 - (n),        \
	                        27 - (n), 28 - (n), 29 - (n), 30 - (n), 31 - (n))

/* Returns, for each lane, the last lane of its band. */
#define SUMS_LAST(i) (16 - BANDS + (i) % BANDS)
#define SUMS_TOTAL(v)                                                                              \
	__builtin_shufflevector(v, v, SUMS_LAST(0), SUMS_LAST(1), SUMS_LAST(2), SUMS_LAST(3),      \
	                        SUMS_LAST(4), SUMS_LAST(5), SUMS_LAST(6), SUMS_LAST(7),            \
	                        SUMS_LAST(8), SUMS_LAST(9), SUMS_LAST(10), SUMS_LAST(11),          \
	                        SUMS_LAST(12), SUMS_LAST(13), SUMS_LAST(14), SUMS_LAST(15))

/* Adds a row to the columns and, if `leaves`, takes another one away. */
FORCE_INLINE void sums_slide(column *line, const global uchar *in, const global uchar *out,
                             const bool leaves, uint count)
{
	uint x = 0;

	for (; x + SUMS_COLUMNS <= count; x += SUMS_COLUMNS)
		*(columns *)(line + x) +=
		    SUMS_BYTES(in + x) - (leaves ? SUMS_BYTES(out + x) : (columns)(0));
	for (; x < count; x++)
		line[x] += in[x] - (leaves ? out[x] : 0);
}

/* Adds up the columns of each band from the first on. */
FORCE_INLINE void sums_run(const column *line, uint *run, uint count)
{
	uint16 before = 0;

	for (uint x = 0; x < count; x += VECTOR) {
		uint16 v = __builtin_convertvector(*(const columns_16 *)(line + x), uint16);

		v += SUMS_LATER(v, BANDS);
		v += SUMS_LATER(v, 2 * BANDS);
		if (BANDS < 4)
			v += SUMS_LATER(v, (4 * BANDS) % 16);
		if (BANDS < 2)
			v += SUMS_LATER(v, (8 * BANDS) % 16);
		*(uint16 *)(run + x) = v + before;
		/* Three bands begin in another lane of each vector; the others need not wait. */
		before = BANDS == 3 ? SUMS_TOTAL(v + before) : before + SUMS_TOTAL(v);
	}
}

/* Returns the sums of the windows of 16 samples; run: from the first one's first tap on. */
FORCE_INLINE uint16 sums_of(const uint *run)
{
	return SUMS_AT(run + 2 * SUMS_HALO) - SUMS_AT(run - BANDS);
}

/* As the area is odd, no mean is halfway between two bytes: it is rounded to at most n if
 * 2 sum < area (2 n + 1). */
FORCE_INLINE float16 sums_threshold(uint16 sum, source_row in, int threshold, float full)
{
	const int16 v = convert_int16(vload16(0, in));
	const int16 most = v * SUMS_AREA - (threshold * SUMS_AREA + SUMS_AREA / 2 + 1);

	return select((float16)(0.0f), (float16)(full), as_int16(sum) <= most);
}

FORCE_INLINE void sums_store(const uint *run, source_row in, target_row out, uint start,
                             uint width, const bool compares, int threshold, float full)
{
	const ulong2 lines = stream_lines(out, out + width, VECTOR * sizeof(PIXEL));

	for (uint i = 0; i < width; i += VECTOR) {
		const uint x = min(i, width - VECTOR);
		const uint16 sum = sums_of(run + x);

		wide_store(compares ? sums_threshold(sum, in + x, threshold, full)
		                    : convert_float16(as_int16(sum)) * (1.0f / SUMS_AREA),
		           in + x, out + x, start + x, lines);
	}
}

/* Makes the block of a work-item. src, dst: the first samples of its region. */
FORCE_INLINE void sums_block(const global uchar *src, uint src_pitch, global uchar *dst,
                             uint dst_pitch, uint2 span, uint start, uint end,
                             const bool compares, int threshold, float full)
{
	const uint width = span.y - span.x, count = width + 2 * SUMS_HALO;
	const ulong src_offset = 0, dst_offset = 0;
	column line[SUMS_LINE] __attribute__((aligned(64)));
	uint run[VECTOR + SUMS_LINE] __attribute__((aligned(64)));

	for (uint x = 0; x < SUMS_LINE; x += SUMS_COLUMNS)
		*(columns *)(line + x) = 0;
	*(uint16 *)run = 0;
	for (int j = 0; j < SUMS_DOWN - 1; j++)
		sums_slide(line, SOURCE_ROW((long)start - RADIUS_Y + j) + span.x - SUMS_HALO, 0,
		           false, count);
	for (uint y = start; y < end; y++) {
		const source_row in = SOURCE_ROW((long)y + RADIUS_Y) + span.x - SUMS_HALO;
		const source_row out = SOURCE_ROW((long)y - RADIUS_Y - 1) + span.x - SUMS_HALO;

		if (y == start)
			sums_slide(line, in, 0, false, count);
		else
			sums_slide(line, in, out, true, count);
		sums_run(line, run + VECTOR, count);
		sums_store(run + VECTOR, SOURCE_ROW(y) + span.x, TARGET_ROW(y) + span.x, span.x,
		           width, compares, threshold, full);
	}
}

#define SUMS_BLOCK(compares, threshold, full)                                                      \
	const uint2 span = block_span(samples, blocks, get_global_id(0));                          \
	const uint start = get_global_id(1) * BLOCK_Y;                                             \
                                                                                                   \
	sums_block(src + src_offset, src_pitch, dst + dst_offset, dst_pitch, span, start,          \
	           min(start + BLOCK_Y, rows), compares, threshold, full);

#define SUMS_KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

/* A program has one kernel. */
#ifdef KERNEL_separable_sums
SUMS_KERNEL separable_sums(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                           float offset, uint keep)
{
	SUMS_BLOCK(false, 0, 0)
}
#endif

#ifdef KERNEL_threshold_local_sums
SUMS_KERNEL threshold_local_sums(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                                 float offset, uint keep, float full, float threshold)
{
	SUMS_BLOCK(true, (int)threshold, full)
}
#endif
