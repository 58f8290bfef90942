/* unsharp.cl: the last step of an unsharp mask.
 *
 * d = in - blurred; out = |d| < threshold ? in : in + amount * d
 *
 * The source is the blurred image in float; with alpha, the last of 2 or 4 bands, its colour is
 * still multiplied by alpha. Colour stays if the blurred alpha is 0 or less; alpha itself always
 * does. `original` is the image before, in pixels. A work-item makes one row of a block. */

/* Returns the blurred colour of `in`'s pixels. */
FORCE_INLINE float16 unsharp_colour(float16 blurred, float16 in, uint bands)
{
	const float16 alpha = alpha_spread(blurred, bands);

	return select(in, blurred / alpha, alpha > 0.0f);
}

kernel void unsharp(REGION_ARGUMENTS, global const uchar *original, ulong original_offset,
                    uint original_pitch, float amount, float threshold, uint alpha, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const uint kept = alpha ? keep | 1u << (bands - 1) : keep;
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
		float16 blur = float_load(blurred + at, width), d, result;

		if (alpha)
			blur = unsharp_colour(blur, v, bands);
		d = v - blur;
		result = select(fma(d, (float16)(amount), v), v, fabs(d) < threshold);
		if (kept)
			result = select(result, v, band_lanes(at, bands, kept));
		pixel_store(result, out + at, width);
	}
}
