/* gpu/separable_mma.cl: a column filter and a row filter in one kernel, bytes on NVIDIA's matrix
 * units.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry))
 *
 * Both filters are products with banded matrices, made by mma.m16n8k16 of halves into floats ("PTX
 * ISA", section 9.7.14, has its layouts; lane = 4 g + t). A warp makes strips of 16 rows by 32 *
 * BLOCK_X samples, BLOCK_Y / 16 of them, in steps of 32 samples:
 *
 * down:    D(16 rows, 8 samples) = column weights(16, K rows) * bytes(K rows, 8 samples)
 * across:  E(16 rows, 8 samples) = D(16 rows, K samples) * row weights(K samples, 8 samples)
 *
 * Lane (g, t) loads the words at samples 4 g .. 4 g + 3 of rows 2 t, 2 t + 1, 2 t + 8, 2 t + 9 of
 * each 16: their bytes are its share of the right-hand sides of four products; number q makes the
 * samples 4 n + q, n = 0 .. 7. As in attention kernels, D, rounded to halves, lies as the left-hand
 * side of the second product wants it, where k stands for sample 4 k + 2 h, and 8 + k for 4 k + 2 h
 * + 1. Samples of E are dealt out so that a lane has 8 neighbours: number p makes the samples 8 t +
 * 2 p + (0, 1). The D of a step serves all outputs within its reach: those of BLOCKS steps are kept
 * in registers.
 *
 * Bytes are the halves with the same bits (see half2_ in window.cl), column weights are times 2^15,
 * row weights times 2^9. For weights >= 0 of sum 1, offset 0; each weight as a half float, twice in
 * a word (HALF2); RADIUS_X * BANDS and RADIUS_Y up to 64. GROUP_X is 32, BLOCK_Y a multiple of 16.
 * The error before the rounding to bytes is at most the sum of
 *
 *   - for each filter: 255 * the larger of the sums of its weights' positive and of their negative
 *     rounding errors
 *   - 2 * 2^-4 (half an ulp of 255, D and E as halves) + 0.01 (sums in floats)
 *
 * If it is less than 1, no result is wrong by more than 1. */

#ifdef HAS_WARPS

/* Steps whose loads are issued before they are needed. */
#ifndef STEPS_AHEAD
#define STEPS_AHEAD 1
#endif

enum {
	LANES = GROUP_X * GROUP_Y,
	STEP = 32,                         /* samples */
	REACH_UP = SEPARABLE_MMA_REACH_UP(REACH), /* from a step's first sample to its first D's */
	BLOCKS = SEPARABLE_MMA_BLOCKS(REACH),
	DEPTH = SEPARABLE_MMA_DEPTH(RADIUS_Y), /* products down, of 16 rows each */
	PAD = SEPARABLE_MMA_PAD(REACH),        /* zeros on both sides of the weights */
	ROW = SEPARABLE_MMA_ROW(REACH),
	COLUMN = SEPARABLE_MMA_COLUMN(REACH, RADIUS_Y)
};

/* A lane's shares of the banded matrices. */
struct bands {
	uint down[DEPTH][4], across[BLOCKS][2][4][2];
};

/* Returns two weights, those of the inputs at distances a and b after the first tap. */
FORCE_INLINE uint bands_pair(const local uint *weights, int a, int b)
{
	return permute(weights[PAD + a], weights[PAD + b], 0x5410);
}

FORCE_INLINE void bands_load(struct bands *m, const local uint *row, const local uint *column,
                             int g, int t)
{
#pragma unroll
	for (int d = 0; d < DEPTH; d++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int k = 16 * d + 2 * t + 8 * (i / 2) - (g + 8 * (i % 2));

			m->down[d][i] = bands_pair(column, k, k + 1);
		}
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
#pragma unroll
		for (int h = 0; h < 2; h++)
#pragma unroll
			for (int p = 0; p < 4; p++)
#pragma unroll
				for (int i = 0; i < 2; i++) {
					const int in = STEP * b - REACH_UP + 8 * t + 2 * h + i;
					const int k = in - (8 * (g / 2) + 2 * p + g % 2) + REACH;

					m->across[b][h][p][i] = bands_pair(row, k, k + 4);
				}
}

/* The places of a lane's words: in rows `offset` bytes from p, the lane's row i being row_of(i) or,
 * if that is not needed, the last needed row. Samples outside [-REACH, last] of the strip do not
 * count, but must not be read. */
struct place {
	const global uchar *p;
	uint pitch, last_row, offset[4 * DEPTH];
	int last, t, count;  /* count: 4 * DEPTH, unknown to the compiler */
	local uint *scratch; /* 4 * DEPTH words of this lane's, LANES apart */
};

FORCE_INLINE uint place_row(const struct place *place, int i)
{
	return min((uint)(i / 4 * 16 + 2 * place->t + i % 2 + 8 * (i / 2 % 2)), place->last_row);
}

/* Loads the lane's words of a step, from sample `at` of the strip on. Words that are not aligned
 * take a loop that is not unrolled, so that it needs few registers, and local memory. */
FORCE_INLINE void step_load(uint *words, const struct place *place, int at, const bool free)
{
	if (free) {
		const global uchar *p = place->p + clamp(at, -REACH & ~3, place->last & ~3);

#pragma unroll
		for (int i = 0; i < 4 * DEPTH; i++)
			words[i] = *(const global uint *)(p + place->offset[i]);
		return;
	}
#pragma unroll 1
	for (int i = 0; i < place->count; i++) {
		const global uchar *p = place->p + (ulong)place_row(place, i) * place->pitch;
		const int shift = (int)((uint)(size_t)p & 3);
		const int low = shift - REACH, high = shift + place->last;
		const uint first = *(const global uint *)(p - shift + (clamp(at, low, high) & ~3));
		const uint next =
		    *(const global uint *)(p - shift + (clamp(at + 4, low, high) & ~3));

		place->scratch[i * LANES] = (uint)(((ulong)next << 32 | first) >> (8 * shift));
	}
#pragma unroll
	for (int i = 0; i < 4 * DEPTH; i++)
		words[i] = place->scratch[i * LANES];
}

/* Makes the products down, rounded to halves: the two left-hand sides of the products across. */
FORCE_INLINE void step_down(uint left[2][4], const uint *words, const struct bands *m)
{
	float sum[4][4];

#pragma unroll
	for (int q = 0; q < 4; q++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			sum[q][i] = 0.0f;
#pragma unroll
	for (int d = 0; d < DEPTH; d++) {
		uint part[4]; /* two rows' bytes in turns, of samples 0, 1 or 2, 3 */

#pragma unroll
		for (int i = 0; i < 4; i++)
			part[i] = permute(words[4 * d + i / 2 * 2], words[4 * d + i / 2 * 2 + 1],
			                  i % 2 ? 0x7362 : 0x5140);
#pragma unroll
		for (int q = 0; q < 4; q++) {
			uint right[2];

#pragma unroll
			for (int i = 0; i < 2; i++)
				right[i] = permute(part[2 * i + q / 2], 0, q % 2 ? 0x4342 : 0x4140);
			mma_halves(sum[q], m->down[d], right);
		}
	}
#pragma unroll
	for (int h = 0; h < 2; h++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float *s = sum[2 * h + i / 2] + i % 2 * 2;

			left[h][i] = float_half2((float2)(s[0], s[1]));
		}
}

/* Makes the products across, as bytes: the lane's 8 samples of rows g and g + 8. */
FORCE_INLINE void step_across(uint result[2][2], uint left[BLOCKS][2][4], const struct bands *m)
{
	float sum[4][4];

#pragma unroll
	for (int p = 0; p < 4; p++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			sum[p][i] = 0.0f;
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
#pragma unroll
		for (int h = 0; h < 2; h++)
#pragma unroll
			for (int p = 0; p < 4; p++)
				mma_halves(sum[p], left[b][h], m->across[b][h][p]);
#pragma unroll
	for (int r = 0; r < 2; r++) {
		uint pair[4];

#pragma unroll
		for (int p = 0; p < 4; p++)
			pair[p] = half2_min(
			    half2_add(float_half2((float2)(sum[p][2 * r], sum[p][2 * r + 1])),
			              HALF2_1024),
			    HALF2_1279);
		result[r][0] = permute(pair[0], pair[1], 0x6420);
		result[r][1] = permute(pair[2], pair[3], 0x6420);
	}
}

/* Stores the lane's 8 samples from sample x of the strip on; `width` are inside the region. */
FORCE_INLINE void step_store(uint *result, const global uchar *in, global uchar *out, uint x,
                             uint width, uint strip, const bool free)
{
	if (x >= width)
		return;
#pragma unroll
	for (int i = 0; i < 8; i++)
		if (KEEP != 0 && (KEEP >> ((strip + x + i) % BANDS) & 1) != 0 && x + i < width)
			result[i / 4] = (result[i / 4] & ~(255u << 8 * (i % 4))) |
			                (uint)in[x + i] << 8 * (i % 4);
	if (free && x + 8 <= width) {
		*(global uint2 *)(out + x) = (uint2)(result[0], result[1]);
		return;
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		if (x + i < width)
			out[x + i] = (uchar)(result[i / 4] >> 8 * (i % 4));
}

/* Makes one strip of 16 rows; `width` samples to the right and `height` rows down are inside the
 * region. */
FORCE_INLINE void strip_filter(const global uchar *in, uint src_pitch, global uchar *out,
                               uint dst_pitch, uint x, uint width, uint height,
                               const struct bands *m, int g, int t, int count, local uint *scratch,
                               const bool free)
{
	struct place place = {.p = in - (long)RADIUS_Y * (long)src_pitch,
	                      .pitch = src_pitch,
	                      .last_row = min(height, 16u) - 1 + 2 * RADIUS_Y,
	                      .last = (int)min(width, 32u * BLOCK_X + 64) - 1 + REACH,
	                      .t = t,
	                      .count = count,
	                      .scratch = scratch};
	const int steps = (int)(min(width, 32u * BLOCK_X) + STEP - 1) / STEP;
	const uint here = min(width, 32u * BLOCK_X);
	uint words[STEPS_AHEAD + 1][4 * DEPTH], left[BLOCKS][2][4];

#pragma unroll
	for (int i = 0; i < 4 * DEPTH; i++)
		place.offset[i] = place_row(&place, i) * src_pitch;
#pragma unroll
	for (int i = 0; i < STEPS_AHEAD; i++)
		step_load(words[i + 1], &place, STEP * i + 4 * g - REACH_UP, free);
#pragma unroll 1
	for (int b = 0; b < steps + BLOCKS - 1; b++) {
		uint result[2][2];

#pragma unroll
		for (int i = 0; i < 4 * DEPTH; i++)
#pragma unroll
			for (int k = 0; k < STEPS_AHEAD; k++)
				words[k][i] = words[k + 1][i];
		step_load(words[STEPS_AHEAD], &place, STEP * (b + STEPS_AHEAD) + 4 * g - REACH_UP,
		          free);
#pragma unroll
		for (int i = 0; i < BLOCKS - 1; i++)
#pragma unroll
			for (int k = 0; k < 8; k++)
				left[i][k / 4][k % 4] = left[i + 1][k / 4][k % 4];
		step_down(left[BLOCKS - 1], words[0], m);
		if (b < BLOCKS - 1)
			continue;
		step_across(result, left, m);
#pragma unroll
		for (int r = 0; r < 2; r++)
			if ((uint)(g + 8 * r) < height)
				step_store(result[r], in + (ulong)(g + 8 * r) * src_pitch,
				           out + (ulong)(g + 8 * r) * dst_pitch,
				           STEP * (b - BLOCKS + 1) + 8 * t, here, x, free);
	}
}

GPU_KERNEL separable_mma(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                         uint keep)
{
	typedef char shape_check[GROUP_X == 32 && BLOCK_Y % 16 == 0 && REACH <= 64 &&
	                                 RADIUS_Y <= 64 && SIZE == 1
	                             ? 1
	                             : -1];
	local uint row[ROW], column[COLUMN], scratch[SEPARABLE_MMA_SCRATCH(LANES, RADIUS_Y)];
	const uint item = get_local_id(1) * GROUP_X + get_local_id(0);
	const uint x = get_group_id(0) * 32 * BLOCK_X, first = get_global_id(1) * BLOCK_Y;
	const int g = get_local_id(0) / 4, t = get_local_id(0) % 4;
	const int count = 4 * (int)((16 + 2 * ry + 15) / 16);
	struct bands m;

	for (uint i = item; i < ROW; i += GROUP_X * GROUP_Y) {
		const int d = (int)i - PAD;

		row[i] = d >= 0 && d <= 2 * REACH && d % BANDS == 0
		             ? half2_mul(weights[d / BANDS], HALF2_SCALE(9))
		             : 0;
	}
	for (uint i = item; i < COLUMN; i += GROUP_X * GROUP_Y) {
		const int d = (int)i - PAD;

		column[i] =
		    d >= 0 && d < TAPS_Y ? half2_mul(weights[TAPS_X + d], HALF2_SCALE(15)) : 0;
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	bands_load(&m, row, column, g, t);
	if (x >= samples)
		return;
	for (uint y = first; y < min(rows, first + BLOCK_Y); y += 16) {
		const global uchar *in = src + src_offset + (ulong)y * src_pitch + x;
		global uchar *out = dst + dst_offset + (ulong)y * dst_pitch + x;
		const uint places = ((uint)(size_t)out | dst_pitch) & 7;

		if (places == 0 && (((uint)(size_t)in | src_pitch) & 3) == 0)
			strip_filter(in, src_pitch, out, dst_pitch, x, samples - x, rows - y, &m, g,
			             t, count, scratch + item, true);
		else
			strip_filter(in, src_pitch, out, dst_pitch, x, samples - x, rows - y, &m, g,
			             t, count, scratch + item, false);
	}
}

#endif
