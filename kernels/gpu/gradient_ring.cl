/* gpu/gradient_ring.cl: the gradient of a 3x3 window (Sobel and its kin) in floats, from registers.
 *
 * gx = sum over j of smooth[j] * (in(x + 1, y + j - 1) - in(x - 1, y + j - 1)), gy its transpose;
 * out = sqrt(gx² + gy²), gx, gy or atan2(gy, gx) * scale (OUTPUT 0 to 3), + offset
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. It makes the difference across and the
 * smoothed row of each row, and keeps those of the last three rows in registers. Any type, any
 * smooth[]. */

#ifndef SMOOTH0
#define SMOOTH0 1.0f
#define SMOOTH1 2.0f
#define SMOOTH2 1.0f
#endif
#ifndef OUTPUT
#define OUTPUT 0
#endif

/* Integers cannot overflow here; floats are scaled so that their squares neither overflow nor
 * vanish. */
FORCE_INLINE float gradient_magnitude(float gx, float gy)
{
#ifdef PIXEL_MAX
	return fast_sqrt(fma(gx, gx, gy * gy));
#else
	const bool swap = fabs(gy) > fabs(gx); /* not fmax(), which would lose NaN */
	const float large = fabs(swap ? gy : gx);
	const float share = fabs(swap ? gx : gy) / fmax(large, FLT_MIN);

	return large * sqrt(fma(share, share, 1.0f));
#endif
}

FORCE_INLINE float gradient_result(float gx, float gy, float scale, float offset)
{
	if (OUTPUT == 0)
		return gradient_magnitude(gx, gy) + offset;
	if (OUTPUT == 1)
		return gx + offset;
	if (OUTPUT == 2)
		return gy + offset;
	return fma(atan2(gy, gx), scale, offset);
}

FORCE_INLINE void gradient_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                      uint dst_pitch, uint x, uint width, uint height, float scale,
                                      float offset, const bool free)
{
	float difference[3][BLOCK_X], line[3][BLOCK_X];
	uint centre[2][WINDOW];
	const int count = free ? ROWS_IN : min((int)height + 2, (int)ROWS_IN);
	const global uchar *top = in - (long)src_pitch;
	struct rows rows;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&rows, s, count, top, src_pitch, width, free);

#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int r = s - 2, last = s % 3;
		const uint *words;
		uint result[MIDDLE];
		float v[BLOCK_X];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
		words = rows.words[s % (AHEAD + 1)];
#pragma unroll
		for (int i = 0; i < WINDOW; i++)
			centre[s % 2][i] = words[i];
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			const float left = window_float(words, FIRST + i - BANDS);
			const float right = window_float(words, FIRST + i + BANDS);

			difference[last][i] = right - left;
			line[last][i] = fma(window_float(words, FIRST + i), SMOOTH1,
			                    fma(left, SMOOTH0, right * SMOOTH2));
		}
		if (r < 0)
			continue;
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			const float gx =
			    fma(difference[(r + 1) % 3][i], SMOOTH1,
			        fma(difference[r % 3][i], SMOOTH0, difference[last][i] * SMOOTH2));

			v[i] = gradient_result(gx, line[last][i] - line[r % 3][i], scale, offset);
		}
		window_pack(result, v);
		window_keep(result, centre[(r + 1) % 2], x);
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL gradient_ring(REGION_ARGUMENTS, float smooth0, float smooth1, float smooth2, uint output,
                         float scale, float offset, uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		gradient_ring_block(in, src_pitch, out, dst_pitch, x, width, height, scale, offset,
		                    true);
	else
		gradient_ring_block(in, src_pitch, out, dst_pitch, x, width, height, scale, offset,
		                    false);
}
