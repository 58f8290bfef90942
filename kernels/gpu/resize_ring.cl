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
};

typedef PASTE(PIXEL, 4, ) pixels4;

/* Loads four samples at p; only the first `count` exist. */
FORCE_INLINE float4 ring_load(const global uchar *p, int count)
{
	const source_row in = (source_row)p;

	if (count >= 4)
		return convert_float4(*(const global pixels4 *)p);
	return (float4)(in[0], count > 1 ? in[1] : 0, count > 2 ? in[2] : 0, 0);
}

/* Adds the rows from `row` to `end` of the source to the sums. */
FORCE_INLINE void ring_add(float4 *sum, const global uchar *in, uint pitch, int count,
                           const global float *lists, int row, int end)
{
#pragma unroll 4
	for (int r = row; r < end; r++) {
		const float4 v = ring_load(in + (ulong)r * pitch, count);
		const float8 w = vload8(r, lists);

		sum[0] = fma(v, w.s1, sum[0]);
		sum[1] = fma(v, w.s2, sum[1]);
		sum[2] = fma(v, w.s3, sum[2]);
		sum[3] = fma(v, w.s4, sum[3]);
		sum[4] = fma(v, w.s5, sum[4]);
		sum[5] = fma(v, w.s6, sum[5]);
	}
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
	local float weight[RESIZE_RING_WEIGHTS], line[2][SAMPLES];
	local uint start[SAMPLES];
	const uint words = how.s0, out = how.s1, stride = (words - 2) | 1, item = get_local_id(0);
	const uint x = max(entry_x + (uint)get_group_id(0) * out, how.s2);
	const uint end_x = min(entry_x + min(samples / BANDS, (uint)(get_group_id(0) + 1) * out), how.s3);
	const uint y = max(entry_y + (uint)get_group_id(1) * BLOCK_Y, how.s4);
	const uint end_y = min(entry_y + min(rows, (uint)(get_group_id(1) + 1) * BLOCK_Y), how.s5);
	const global float *column = weights + (ulong)x * words;
	const global float *last = weights + (ulong)(end_x - 1) * words, *ends = weights + how.s6;
	const global float *lists = weights + how.s7 + ROW_WORDS;

	if (x >= end_x || y >= end_y)
		return;

	const int top = as_int(weights[how.s7]), left = as_int(column[0]);
	const int needed = (as_int(last[0]) + as_int(last[1]) - left) * BANDS;
	const global uchar *in = src + src_offset + (long)(left - place_x) * (long)(BANDS * sizeof(PIXEL)) +
	                         (long)(top - place_y) * (long)src_pitch;
	/* All rows are aligned alike. */
	const int before = (int)((ulong)in / sizeof(PIXEL) & 3), count = before + needed - 4 * (int)item;
	float4 sum[ACTIVE];
	int row = as_int(ends[2 * y]) - top;
	uint i = as_uint(lists[row * ROW_WORDS]);

	in += 4 * (int)(item * sizeof(PIXEL)) - before * (int)sizeof(PIXEL);
	for (uint k = item; k < end_x - x; k += GROUP_X) {
		const global float *of = column + (ulong)k * words;
		const uint taps = as_uint(of[1]);

		start[k] = taps << 16 | (uint)(before + (as_int(of[0]) - left) * BANDS);
		for (uint t = 0; t < taps; t++)
			weight[k * stride + t] = of[2 + t];
	}
#pragma unroll
	for (int k = 0; k < ACTIVE; k++)
		sum[k] = 0.0f;
	for (; i < y; i++) { /* rows of the group above, which share rows of the source */
		const int end = as_int(ends[2 * i + 1]) - top;

		if (count > 0)
			ring_add(sum, in, src_pitch, count, lists, row, end);
		ring_turn(sum);
		row = max(row, end);
	}
	for (; i < end_y; i++) {
		const int end = as_int(ends[2 * i + 1]) - top;
		const target_row to = TARGET_ROW(i - entry_y) + (x - entry_x) * BANDS;
		local float *made = line[i & 1];

		if (count > 0) {
			ring_add(sum, in, src_pitch, count, lists, row, end);
			vstore4(sum[0], item, made);
		}
		ring_turn(sum);
		row = max(row, end);
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint n = item; n < (end_x - x) * BANDS; n += GROUP_X) {
			const uint k = n / BANDS, from = (start[k] & 0xffff) + n % BANDS;
			float all = 0.0f;

			for (uint t = 0; t < start[k] >> 16; t++)
				all = fma(made[from + t * BANDS], weight[k * stride + t], all);
			to[n] = PIXEL_ROUND_1(all);
		}
	}
}
