/* gpu/matrix_half.cl: any matrix of odd sides, bytes in pairs of half floats.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. Each source row's window is spread into pairs
 * once, for all rows of the block whose windows it is in. Each matrix row is summed by itself in
 * halves. Small matrices are unrolled and their rows added in halves too; of others only the rows
 * of the block and the columns of the matrix are unrolled, and their rows added in floats.
 *
 * For weights of magnitude below 15.9, each as a half float, twice in a word (HALF2), and integer
 * offset from 0 to 1023. With M(set) = 255 * the larger of the sums of its positive and of its
 * negative weights' magnitudes, and half an ulp of v being 2^(floor(log2(v)) - 11), the error
 * before the rounding to bytes is at most the sum of
 *
 *   - 255 * the larger of the sums of the weights' positive and of their negative rounding errors
 *   - over j, k: half an ulp of M(row j's first k + 1 weights in the order first, last, second,
 *     last but one ...)
 *   - for small matrices, over j > 0: half an ulp of M(rows 0 to j)
 *   - weights * 2^-13 (products may be denormal)
 *
 * If it is less than 1, no result is wrong by more than 1. */

/* Matrices of more weights than this are large. */
#ifndef MATRIX_UNROLLED
#define MATRIX_UNROLLED 49
#endif

enum { LARGE = (2 * RADIUS_X + 1) * (2 * RADIUS_Y + 1) > MATRIX_UNROLLED };

/* The block's sums: floats of large matrices, else pairs of halves; in units of 2^-12. */
struct matrix_sums {
	uint pair[BLOCK_Y][PAIRS];
	float2 single[BLOCK_Y][PAIRS];
};

/* Adds source row s of the block's, the first being 0, to the block's rows. */
FORCE_INLINE void matrix_half_row(struct matrix_sums *sums, int s, const global uchar *p,
                                  uint width, constant uint *weights, const bool free)
{
	uint words[WINDOW], pair[2 * WINDOW], odd[2 * WINDOW];

	window_load(words, p, width, free);
	window_pairs(pair, words);
#pragma unroll
	for (int i = 0; i < 2 * WINDOW - 1; i++)
		odd[i] = window_pair(pair, 2 * i + 1);
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		if ((uint)(s - r) >= TAPS_Y)
			continue;

		constant uint *row = weights + (s - r) * TAPS_X;
		uint part[PAIRS];

#pragma unroll
		for (int k = 0; k < TAPS_X; k++) {
			const uint weight = half2_mul(row[TAP(k, TAPS_X)], HALF2_SCALE(12));
			const int first = FIRST - REACH + TAP(k, TAPS_X) * BANDS;

#pragma unroll
			for (int i = 0; i < PAIRS; i++) {
				const uint v = first % 2 ? odd[first / 2 + i] : pair[first / 2 + i];

				part[i] =
				    k == 0 ? half2_mul(v, weight) : half2_fma(v, weight, part[i]);
			}
		}
#pragma unroll
		for (int i = 0; i < PAIRS; i++)
			if (LARGE)
				sums->single[r][i] += half2_float(part[i]);
			else
				sums->pair[r][i] =
				    s == r ? part[i] : half2_add(sums->pair[r][i], part[i]);
	}
}

FORCE_INLINE void matrix_half_block(const global uchar *in, uint src_pitch, global uchar *out,
                                    uint dst_pitch, uint x, uint width, uint height,
                                    constant uint *weights, float offset, const bool free)
{
	const int count = min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const global uchar *p = in - (long)RADIUS_Y * (long)src_pitch;
	const uint base = float_half2((float2)(1024.0f + offset));
	struct matrix_sums sums;

	if (LARGE) {
#pragma unroll
		for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
			for (int i = 0; i < PAIRS; i++)
				sums.single[r][i] = 0.0f;
#pragma unroll 1
		for (int s = 0; s < count; s++)
			matrix_half_row(&sums, s, p + (ulong)s * src_pitch, width, weights, free);
	} else {
#pragma unroll
		for (int s = 0; s < BLOCK_Y + 2 * RADIUS_Y; s++)
			if (free || s < count)
				matrix_half_row(&sums, s, p + (ulong)s * src_pitch, width, weights,
				                free);
	}
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		uint result[MIDDLE], words[WINDOW];
		float v[BLOCK_X];

		if (!free && (uint)r >= height)
			return;
		if (LARGE) {
#pragma unroll
			for (int i = 0; i < PAIRS; i++) {
				v[2 * i] = fma(sums.single[r][i].x, 4096.0f, offset);
				v[2 * i + 1] = fma(sums.single[r][i].y, 4096.0f, offset);
			}
			window_pack(result, v);
		} else {
#pragma unroll
			for (int i = 0; i < PAIRS; i++)
				sums.pair[r][i] = half2_min(
				    half2_max(half2_fma(sums.pair[r][i], HALF2_SCALE(12), base),
				              HALF2_1024),
				    HALF2_1279);
#pragma unroll
			for (int k = 0; k < MIDDLE; k++)
				result[k] =
				    permute(sums.pair[r][2 * k], sums.pair[r][2 * k + 1], 0x6420);
		}
		if (KEEP != 0) {
			window_load(words, in + (ulong)r * src_pitch, width, free);
			window_keep(result, words, x);
		}
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL matrix_half(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                       uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		matrix_half_block(in, src_pitch, out, dst_pitch, x, width, height, weights, offset,
		                  true);
	else
		matrix_half_block(in, src_pitch, out, dst_pitch, x, width, height, weights, offset,
		                  false);
}
