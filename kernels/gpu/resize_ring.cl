/* gpu/resize_ring.cl: a smaller image, both passes at once; general/resize.cl has them apart.
 *
 * A group makes BLOCK_Y rows of `out` pixels. Each item goes down its four samples of the source once,
 * and keeps the sums of the rows of the result that they count for: at most ACTIVE, since a kernel
 * reaches three of the result's pixels to either side. A row that is complete goes to local memory,
 * from which the items make its pixels.
 *
 * weights: for each column of the result and of what is made beside it, `words`: see general/resize.cl;
 * then for each row the first of the source's rows and the end; then, after the place of the first, for
 * each of the source's rows the first row of the result that it counts for and its weights there.
 * how: words, out, columns that are in the result (from, to), such rows, where those two lists begin.
 * entry_x, entry_y: the region's first pixel in the lists; place_x, place_y: the source's in the image. */

enum {
	SAMPLES = RESIZE_RING_SAMPLES(GROUP_X),
	ACTIVE = 6,
	ROW_WORDS = 8,
	RING_AHEAD = 4,                       /* rows of the source that are loaded before they are needed */
	TOGETHER = RESIZE_RING_TOGETHER, /* rows that are made across at once, with the same weights */
};

typedef PASTE(PIXEL, 4, ) pixels4;

/* Loads the next rows; the last one stands for those after it. Samples after a row's last one belong
 * to the buffer, whose size is a multiple of four samples, and to no result. */
FORCE_INLINE void ring_load(pixels4 *next, const global uchar *in, uint pitch, int row, int last)
{
#pragma unroll
	for (int r = 0; r < RING_AHEAD; r++)
		next[r] = *(const global pixels4 *)(in + (ulong)(uint)min(row + r, last) * pitch);
}

/* Adds a row of the source to the sums. */
FORCE_INLINE void ring_add(float4 *sum, float4 v, float4 w, float2 more)
{
	sum[0] = fma(v, w.s0, sum[0]);
	sum[1] = fma(v, w.s1, sum[1]);
	sum[2] = fma(v, w.s2, sum[2]);
	sum[3] = fma(v, w.s3, sum[3]);
	sum[4] = fma(v, more.s0, sum[4]);
	sum[5] = fma(v, more.s1, sum[5]);
}

/* Goes on to the next row of the result. */
FORCE_INLINE void ring_turn(float4 *sum)
{
#pragma unroll
	for (int k = 1; k < ACTIVE; k++)
		sum[k - 1] = sum[k];
	sum[ACTIVE - 1] = 0.0f;
}

kernel void resize_ring(REGION_ARGUMENTS, const global float *weights, uint8 how, uint entry_x, int place_x,
                        uint entry_y, int place_y)
{
	local float weight[RESIZE_RING_WEIGHTS], line[TOGETHER][SAMPLES];
	local float4 list[RESIZE_RING_ROWS];
	local float2 more[RESIZE_RING_ROWS];
	local uint start[SAMPLES];
	const uint words = how.s0, out = how.s1, stride = (words - 2) | 1, item = get_local_id(0);
	const uint x = max(entry_x + (uint)get_group_id(0) * out, how.s2);
	const uint end_x = min(entry_x + min(samples / BANDS, (uint)(get_group_id(0) + 1) * out), how.s3);
	const uint y = max(entry_y + (uint)get_group_id(1) * BLOCK_Y, how.s4);
	const uint end_y = min(entry_y + min(rows, (uint)(get_group_id(1) + 1) * BLOCK_Y), how.s5);
	const global float *column = weights + (ulong)x * words;
	const global float *ends = weights + how.s6, *lists = weights + how.s7 + ROW_WORDS;

	if (x >= end_x || y >= end_y)
		return;

	const global float *right = weights + (ulong)(end_x - 1) * words;
	const int top = as_int(weights[how.s7]), left = as_int(column[0]);
	const int needed = (as_int(right[0]) + as_int(right[1]) - left) * BANDS;
	/* The group's rows of the source, from `top` on. */
	const int above = as_int(ends[2 * y]) - top, last = as_int(ends[2 * end_y - 1]) - top - 1;
	const global uchar *in = src + src_offset + (long)(left - place_x) * (long)(BANDS * sizeof(PIXEL)) +
	                         (long)(top + above - place_y) * (long)src_pitch;
	/* All rows are aligned alike. */
	const int before = (int)((ulong)in / sizeof(PIXEL) & 3);
	const bool reads = 4 * (int)item < before + needed;
	uint i = as_uint(lists[above * ROW_WORDS]);
	int row = 0, end = as_int(ends[2 * i + 1]) - top - above;
	float4 sum[ACTIVE];
	pixels4 next[RING_AHEAD];

	in += 4 * (int)(item * sizeof(PIXEL)) - before * (int)sizeof(PIXEL);
	if (reads)
		ring_load(next, in, src_pitch, row, last - above);
	for (uint k = item; k < end_x - x; k += GROUP_X) {
		const global float *of = column + (ulong)k * words;
		const uint taps = as_uint(of[1]);

		start[k] = taps << 16 | (uint)(before + (as_int(of[0]) - left) * BANDS);
		for (uint t = 0; t < taps; t++)
			weight[k * stride + t] = of[2 + t];
	}
	for (int k = (int)item; k <= last - above; k += GROUP_X) {
		const global float *of = lists + (above + k) * ROW_WORDS + 1;

		list[k] = vload4(0, of);
		more[k] = vload2(2, of);
	}
#pragma unroll
	for (int k = 0; k < ACTIVE; k++)
		sum[k] = 0.0f;
	barrier(CLK_LOCAL_MEM_FENCE);
	/* The first rows are the group's above, which share rows of the source. */
	for (; i < end_y; i++) {
		const uint part = (i - y) % TOGETHER;
		const int new_end = as_int(ends[2 * min(i + 1, end_y - 1) + 1]) - top - above;

		while (reads && row < end) {
			const int used = min(end - row, RING_AHEAD);
			pixels4 now[RING_AHEAD];

#pragma unroll
			for (int r = 0; r < RING_AHEAD; r++)
				now[r] = next[r];
			ring_load(next, in, src_pitch, row + used, last - above);
#pragma unroll
			for (int r = 0; r < RING_AHEAD; r++)
				if (r < used)
					ring_add(sum, convert_float4(now[r]), list[row + r], more[row + r]);
			row += used;
		}
		end = new_end;
		if (reads && i >= y)
			vstore4(sum[0], item, line[part]);
		ring_turn(sum);
		if (i < y || (part + 1 < TOGETHER && i + 1 < end_y))
			continue;
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint n = item; n < (end_x - x) * BANDS; n += GROUP_X) {
			const uint k = n / BANDS, first = start[k];
			const local float *from = line[0] + (first & 0xffff) + n % BANDS;
			const local float *w = weight + k * stride;
			float all[TOGETHER] = {0};

			for (uint t = 0; t < first >> 16; t++, from += BANDS)
#pragma unroll
				for (int j = 0; j < TOGETHER; j++)
					all[j] = fma(from[j * SAMPLES], w[t], all[j]);
#pragma unroll
			for (uint j = 0; j < TOGETHER; j++)
				if (j <= part)
					TARGET_ROW(i - part + j - entry_y)[(x - entry_x) * BANDS + n] =
					    PIXEL_ROUND_1(all[j]);
		}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}
