/* threshold.cl: full scale where a sample is above a limit, else 0.
 *
 * threshold: out = in > limit ? full : 0
 * threshold_local: out = original - in > limit ? full : 0
 *
 * In the second the source is the blurred image in float, which is rounded first where pixels are
 * integers, so that equal ones differ by nothing; with alpha, the last of 2 or 4 bands, its colour is
 * still multiplied by alpha, and where the blurred alpha is 0 or less it counts as the original. NaN
 * is not above anything. The first has a limit for each band if by_band, else the first is for all. A
 * work-item makes one row of a block. */

kernel void threshold(REGION_ARGUMENTS, float4 limits, float full, uint by_band, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const float16 v = pixel_load(in + at, width);
		const float16 limit =
		    by_band ? band_values(limits, at, bands) : (float16)(limits.s0);
		float16 result = select((float16)(0.0f), (float16)(full), v > limit);

		if (keep)
			result = select(result, v, band_lanes(at, bands, keep));
		pixel_store(result, out + at, width);
	}
}

/* Returns the blurred samples as pixels. */
FORCE_INLINE float16 threshold_base(float16 blur, float16 v, uint alpha, uint bands)
{
	if (alpha) {
		const float16 weight = alpha_spread(blur, bands);

		blur = select(v, blur / weight, weight > 0.0f);
	}
#ifdef PIXEL_MAX
	return rint(blur);
#else
	return blur;
#endif
}

kernel void threshold_local(REGION_ARGUMENTS, global const uchar *original, ulong original_offset,
                            uint original_pitch, float limit, float full, uint alpha, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const global float *blurred =
	    (const global float *)(src + src_offset + (ulong)y * src_pitch);
	const source_row in =
	    (source_row)(original + original_offset + (ulong)y * original_pitch);
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const float16 v = pixel_load(in + at, width);
		const float16 base =
		    threshold_base(float_load(blurred + at, width), v, alpha, bands);
		float16 result = select((float16)(0.0f), (float16)(full), v - base > limit);

		if (keep)
			result = select(result, v, band_lanes(at, bands, keep));
		pixel_store(result, out + at, width);
	}
}
