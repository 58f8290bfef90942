/* gpu/gradient_half.cl: the gradient of a 3x3 window (Sobel and its kin), bytes in pairs of half
 * floats.
 *
 * gx = sum over j of smooth[j] * (in(x + 1, y + j - 1) - in(x - 1, y + j - 1)), gy its transpose;
 * out = sqrt(gx² + gy²), gx + offset or gy + offset (OUTPUT 0, 1, 2)
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It makes the difference across and the
 * smoothed row of each row, and keeps those of the last three rows in registers.
 *
 * For integer smooth[] >= 0 with 255 * (smooth[0] + smooth[1] + smooth[2]) <= 2048, so that all
 * sums are exact, and integer offset from 0 to 1023, 0 for the magnitude. The magnitude's error
 * before its rounding to bytes is below 255 * 2^-11 (two roundings of the square, halved by the
 * root) + 2^-4 (of the root) < 0.2. */

#ifndef SMOOTH0
#define SMOOTH0 1.0f
#define SMOOTH1 2.0f
#define SMOOTH2 1.0f
#endif
#ifndef OUTPUT
#define OUTPUT 0
#endif

/* Returns smooth[0] * a + smooth[1] * b + smooth[2] * c. */
FORCE_INLINE uint gradient_smooth(uint a, uint b, uint c, const uint *smooth)
{
	if (SMOOTH0 == SMOOTH2 && SMOOTH0 == 1.0f)
		return SMOOTH1 == 1.0f ? half2_add(half2_add(a, c), b)
		                       : half2_fma(b, smooth[1], half2_add(a, c));
	return half2_fma(b, smooth[1], half2_fma(a, smooth[0], half2_mul(c, smooth[2])));
}

/* Returns the magnitude, in units of 2^-9, of a gradient in units of 2^-24; at most 255. */
FORCE_INLINE uint gradient_magnitude(uint gx, uint gy)
{
	const uint x = half2_mul(gx, HALF2_SCALE(15)), y = half2_mul(gy, HALF2_SCALE(15));
	const uint square = half2_fma(x, x, half2_mul(y, y));
	const float2 v = half2_float(half2_min(square, 0x33F033F0)); /* 255² * 2^-18 */

	return float_half2((float2)(fast_sqrt(v.x), fast_sqrt(v.y)));
}

FORCE_INLINE void gradient_half_block(const global uchar *in, uint src_pitch, global uchar *out,
                                      uint dst_pitch, uint x, uint width, uint height,
                                      const uint *smooth, uint base, const bool free)
{
	const int count = free ? ROWS_IN : min((int)height + 2, (int)ROWS_IN);
	const global uchar *top = in - (long)src_pitch;
	uint difference[3][PAIRS], line[3][PAIRS], centre[2][WINDOW];
	struct rows rows;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&rows, s, count, top, src_pitch, width, free);

#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int r = s - 2, last = s % 3;
		const uint *words;
		uint pair[2 * WINDOW], result[MIDDLE];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
		words = rows.words[s % (AHEAD + 1)];
		window_pairs(pair, words);
#pragma unroll
		for (int i = 0; i < WINDOW; i++)
			centre[s % 2][i] = words[i];
#pragma unroll
		for (int i = 0; i < PAIRS; i++) {
			const uint left = window_pair(pair, FIRST + 2 * i - BANDS);
			const uint right = window_pair(pair, FIRST + 2 * i + BANDS);

			difference[last][i] = half2_sub(right, left);
			line[last][i] = gradient_smooth(left, pair[FIRST / 2 + i], right, smooth);
		}
		if (r < 0)
			continue;
#pragma unroll
		for (int k = 0; k < MIDDLE; k++) {
			uint v[2];

#pragma unroll
			for (int i = 0; i < 2; i++) {
				const int at = 2 * k + i;
				const uint gx = gradient_smooth(difference[r % 3][at],
				                                difference[(r + 1) % 3][at],
				                                difference[last][at], smooth);
				const uint gy = half2_sub(line[last][at], line[r % 3][at]);

				if (OUTPUT == 0)
					v[i] = half2_fma(gradient_magnitude(gx, gy), HALF2_SCALE(9),
					                 HALF2_1024);
				else
					v[i] = half2_min(
					    half2_max(half2_fma(half2_mul(OUTPUT == 1 ? gx : gy,
					                                  HALF2_SCALE(12)),
					                        HALF2_SCALE(12), base),
					              HALF2_1024),
					    HALF2_1279);
			}
			result[k] = permute(v[0], v[1], 0x6420);
		}
		window_keep(result, centre[(r + 1) % 2], x);
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL gradient_half(REGION_ARGUMENTS, float smooth0, float smooth1, float smooth2, uint output,
                         float scale, float offset, uint keep)
{
	const uint smooth[3] = {float_half2((float2)(SMOOTH0)), float_half2((float2)(SMOOTH1)),
	                        float_half2((float2)(SMOOTH2))};
	const uint base = float_half2((float2)(1024.0f + offset));

	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		gradient_half_block(in, src_pitch, out, dst_pitch, x, width, height, smooth, base,
		                    true);
	else
		gradient_half_block(in, src_pitch, out, dst_pitch, x, width, height, smooth, base,
		                    false);
}
