/* gpu/resize_ring.cl: a smaller image, both passes at once; general/resize.cl has them apart.
 *
 * A group makes `block_rows` rows of `out` pixels. Each item goes down its four samples of the source
 * once, and keeps the sums of the rows of the result that they count for: at most ACTIVE, since a kernel
 * reaches three of the result's pixels to either side. A row that is complete goes to local memory, from
 * which the items make its pixels. Sums of bytes are whole numbers, and two rows are added at once.
 *
 * weights: for each column of the result and of what is made beside it the first of the source's and
 * their number; for each row the first and the end; the weights of each column, as many as the source has
 * for any, filled up to the stride with 0; then, after the place of the first, for each of the source's
 * rows its weights in the first row of the result that it counts for and in those after it, and the place
 * of that row. For bytes a weight of a row is of 16 bits, and the upper half of a word has that of the
 * next row, if it counts for the same ones.
 * how: weights of a column, out, columns that are in the result (from, to), such rows, where the weights
 * and the lists of the source's rows begin.
 * entry_x, entry_y: the region's first pixel in the lists; place_x, place_y: the source's in the image. */

enum {
	ACTIVE = RESIZE_RING_ACTIVE,
	ROW_WORDS = RESIZE_RING_ROW_WORDS,
	QUAD_WORDS = sizeof(PIXEL), /* words of four samples */
	ROWS_AT_ONCE = sizeof(PIXEL) == 1 ? 2 : 1,
	RING_AHEAD = 4,                  /* rows of the source that are loaded before they are needed */
	TOGETHER = RESIZE_RING_TOGETHER, /* rows that are made across at once, with the same weights */
	RING_PLANE = RESIZE_RING_PLANE(GROUP_X),
	RING_LINE = 4 * RING_PLANE,
};

/* The place in a line of a row's sample: every fourth sample lies in the same plane. Items that read the
 * same sample of their pixels then find it in different banks. */
FORCE_INLINE uint ring_place(uint sample)
{
	return sample % 4 * RING_PLANE + sample / 4;
}

/* Loads a row's four samples; the last row stands for those after it. Samples after a row's last one
 * belong to the buffer, whose size is a multiple of four samples, and to no result. */
FORCE_INLINE void ring_load(uint *next, const global uchar *in, uint pitch, int row, int last)
{
	const global uint *from = (const global uint *)(in + (uint)min(row, last) * pitch);

#pragma unroll
	for (int i = 0; i < QUAD_WORDS; i++)
		next[i] = from[i];
}

typedef int4 ring_sum_uchar;
typedef float4 ring_sum_ushort;

#define ring_sum  PASTE(ring_sum_, PIXEL, )
#define ring_take PASTE(ring_take_, PIXEL, )
#define ring_add  PASTE(ring_add_, PIXEL, )

#ifdef __NV_CL_C_VERSION
FORCE_INLINE uint ring_mix(uint a, uint b, uint places)
{
	uint d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(places));
	return d;
}

/* Adds the products of two weights and the lower two bytes. */
FORCE_INLINE int ring_low(uint w, uint bytes, int sum)
{
	int d;

	asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(bytes), "r"(sum));
	return d;
}

FORCE_INLINE int ring_high(uint w, uint bytes, int sum)
{
	int d;

	asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(bytes), "r"(sum));
	return d;
}
#else
FORCE_INLINE uint ring_mix(uint a, uint b, uint places)
{
	const ulong all = (ulong)b << 32 | a;
	uint d = 0;

	for (int i = 0; i < 4; i++)
		d |= (uint)(all >> (places >> 4 * i & 7) * 8 & 255) << 8 * i;
	return d;
}

FORCE_INLINE int ring_low(uint w, uint bytes, int sum)
{
	return sum + (short)w * (int)(bytes & 255) + (short)(w >> 16) * (int)(bytes >> 8 & 255);
}

FORCE_INLINE int ring_high(uint w, uint bytes, int sum)
{
	return ring_low(w, bytes >> 16, sum);
}
#endif

/* Takes two rows of the source, whose registers can then be loaded again. */
FORCE_INLINE void ring_take_uchar(uint taken[2], uint rows[2][1])
{
	taken[0] = ring_mix(rows[0][0], rows[1][0], 0x5140);
	taken[1] = ring_mix(rows[0][0], rows[1][0], 0x7362);
}

/* Adds them to the sums. */
FORCE_INLINE void ring_add_uchar(int4 *sum, const uint taken[2], const local uint4 *list)
{
	const uint lower = taken[0], upper = taken[1];
	const uint4 four = list[0], rest = list[1];
	const uint w[ACTIVE] = {four.s0, four.s1, four.s2, four.s3, rest.s0, rest.s1};

#pragma unroll
	for (int k = 0; k < ACTIVE; k++)
		sum[k] = (int4)(ring_low(w[k], lower, sum[k].s0), ring_high(w[k], lower, sum[k].s1),
		                ring_low(w[k], upper, sum[k].s2), ring_high(w[k], upper, sum[k].s3));
}

FORCE_INLINE void ring_take_ushort(uint taken[2], uint rows[1][2])
{
	taken[0] = rows[0][0];
	taken[1] = rows[0][1];
}

FORCE_INLINE void ring_add_ushort(float4 *sum, const uint a[2], const local uint4 *list)
{
	const float4 four = as_float4(list[0]), rest = as_float4(list[1]);
	const float w[ACTIVE] = {four.s0, four.s1, four.s2, four.s3, rest.s0, rest.s1};
	const float4 v = convert_float4((uint4)(a[0] & 0xffff, a[0] >> 16, a[1] & 0xffff, a[1] >> 16));

#pragma unroll
	for (int k = 0; k < ACTIVE; k++)
		sum[k] = fma(v, w[k], sum[k]);
}

/* Adds the rows of the source up to `end` to the sums, and loads the ones after them. */
FORCE_INLINE void ring_down(ring_sum *sum, uint next[RING_AHEAD][QUAD_WORDS], const global uchar *in,
                            uint pitch, int *row, int end, int last, const local uint4 *list)
{
	while (*row < end) {
		const int used = min(end - *row, (int)RING_AHEAD);
		uint taken[RING_AHEAD][2];

#pragma unroll
		for (int r = 0; r < RING_AHEAD; r += ROWS_AT_ONCE)
			ring_take(taken[r], next + r);
#pragma unroll
		for (int r = 0; r < RING_AHEAD; r++)
			ring_load(next[r], in, pitch, *row + used + r, last);
#pragma unroll
		for (int r = 0; r < RING_AHEAD; r += ROWS_AT_ONCE)
			if (r < used)
				ring_add(sum, taken[r], list + 2 * (*row + r));
		*row += used;
	}
}

/* Puts a complete sum into a line. */
FORCE_INLINE void ring_put(local float *line, ring_sum sum)
{
	line[0] = convert_float(sum.s0);
	line[RING_PLANE] = convert_float(sum.s1);
	line[2 * RING_PLANE] = convert_float(sum.s2);
	line[3 * RING_PLANE] = convert_float(sum.s3);
}

/* Makes TOGETHER pixels of a column, one below the other, from the lines. */
FORCE_INLINE void ring_across(const local float *line, const local float4 *w, uint taps, uint first, float *all)
{
	uint place[4];

#pragma unroll
	for (int t = 0; t < 4; t++)
		place[t] = ring_place(first + t * BANDS);
#pragma unroll 2
	for (uint k = 0; k < taps; k += 4, line += BANDS) {
		const float4 four = w[k / 4];
		const float each[4] = {four.s0, four.s1, four.s2, four.s3};

#pragma unroll
		for (int t = 0; t < 4; t++)
#pragma unroll
			for (int j = 0; j < TOGETHER; j++)
				all[j] = fma(line[j * RING_LINE + place[t]], each[t], all[j]);
	}
}

kernel void resize_ring(REGION_ARGUMENTS, const global float *weights, uint8 how, uint entry_x, int place_x,
                        uint entry_y, int place_y, uint block_rows)
{
	local float4 weight[RESIZE_RING_WEIGHTS / 4];
	local uint4 list[2 * RESIZE_RING_ROWS];
	local float line[TOGETHER * RING_LINE];
	local ushort start[RESIZE_RING_SAMPLES(GROUP_X)], stop[RESIZE_RING_ROWS];
	const uint taps = how.s0, out = how.s1, stride = RESIZE_RING_STRIDE(taps), item = get_local_id(0);
	const uint x = max(entry_x + (uint)get_group_id(0) * out, how.s2);
	const uint end_x = min(entry_x + min(samples / BANDS, (uint)(get_group_id(0) + 1) * out), how.s3);
	const uint y = max(entry_y + (uint)get_group_id(1) * block_rows, how.s4);
	const uint end_y = min(entry_y + min(rows, (uint)(get_group_id(1) + 1) * block_rows), how.s5);
	const global int2 *columns = (const global int2 *)weights, *ends = columns + how.s2 + how.s3;
	const global float *lists = weights + how.s7 + ROW_WORDS;

	if (x >= end_x || y >= end_y)
		return;

	const int top = as_int(weights[how.s7]), left = columns[x].s0;
	const int needed = (columns[end_x - 1].s0 + columns[end_x - 1].s1 - left) * BANDS;
	/* The group's rows of the source, from `top` on. */
	const int above = ends[y].s0 - top, last = ends[end_y - 1].s1 - top - 1 - above;
	const global uchar *in = src + src_offset + (long)(left - place_x) * (long)(BANDS * sizeof(PIXEL)) +
	                         (long)(top + above - place_y) * (long)src_pitch;
	/* All rows are aligned alike. */
	const int before = (int)((ulong)in / sizeof(PIXEL) & 3);
	const bool reads = 4 * (int)item < before + needed;
	const global float4 *across = (const global float4 *)(weights + how.s6) + (ulong)x * (stride / 4);
	const global uint4 *from = (const global uint4 *)(lists + above * ROW_WORDS);
	uint i = as_uint(lists[above * ROW_WORDS + ACTIVE]);
	int row = 0;
	uint done = 0; /* rows of the result */
	ring_sum sum[ACTIVE + TOGETHER];
	uint next[RING_AHEAD][QUAD_WORDS];

	in += 4 * (int)(item * sizeof(PIXEL)) - before * (int)sizeof(PIXEL);
#pragma unroll
	for (int r = 0; r < RING_AHEAD; r++)
		if (reads)
			ring_load(next[r], in, src_pitch, r, last);
	for (uint k = item; k < end_x - x; k += GROUP_X)
		start[k] = (ushort)(before + (columns[x + k].s0 - left) * BANDS);
	for (uint k = item; k < (end_x - x) * (stride / 4); k += GROUP_X)
		weight[k] = across[k];
	for (uint k = item; k < end_y - i; k += GROUP_X)
		stop[k] = (ushort)(ends[i + k].s1 - top - above);
	for (int k = (int)item; k < 2 * (last + 1); k += GROUP_X)
		list[k] = from[k];
	/* Weights of 0 are for samples that nobody puts there. */
	for (uint k = item; k < RING_PLANE; k += GROUP_X)
		if (k >= GROUP_X || !reads)
			for (int j = 0; j < 4 * TOGETHER; j++)
				line[j * RING_PLANE + k] = 0.0f;
#pragma unroll
	for (int k = 0; k < ACTIVE + TOGETHER; k++)
		sum[k] = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	/* The first rows are the group's above, which share rows of the source. */
	for (; i < end_y; i += TOGETHER, done += TOGETHER) {
#pragma unroll
		for (uint j = 0; j < TOGETHER; j++) {
			const int end = stop[done + min(j, end_y - 1 - i)];

			if (reads) {
				ring_down(sum + j, next, in, src_pitch, &row, end, last, list);
				ring_put(line + j * RING_LINE + item, sum[j]);
			}
		}
#pragma unroll
		for (int k = 0; k < ACTIVE + TOGETHER; k++)
			sum[k] = k < ACTIVE ? sum[k + TOGETHER] : (ring_sum)(0);
		if (i + TOGETHER <= y)
			continue;
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint n = item; n < (end_x - x) * BANDS; n += GROUP_X) {
			float all[TOGETHER] = {0};

			ring_across(line, weight + n / BANDS * (stride / 4), taps, start[n / BANDS] + n % BANDS,
			            all);
#pragma unroll
			for (uint j = 0; j < TOGETHER; j++)
				if (i + j >= y && i + j < end_y)
					TARGET_ROW(i + j - entry_y)[(x - entry_x) * BANDS + n] =
					    PIXEL_ROUND_1(all[j]);
		}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}
