/* premultiply.cl: colour times alpha before a smoothing filter, and its division after it.
 *
 * premultiply: pixels to float; with alpha, colour becomes colour * alpha, and alpha stays. (Division by full scale
 * is left out: the factor is the same above and below the line when colour is divided by alpha.)
 * unpremultiply: filtered floats to pixels; colour becomes colour / alpha + offset, rounded once,
 * and 0 where alpha is 0 or less; alpha is rounded, without the offset. Bands in `keep` are those of
 * `original`, the pixels before they were multiplied.
 *
 * With alpha, bands is 2 or 4, and alpha the last. A work-item makes one row of a block. These two have one side in
 * float and one in PIXEL, whatever the program's type. */

kernel void premultiply(REGION_ARGUMENTS, uint alpha)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const uint alpha_band = 1u << (bands - 1);
	const source_row in = SOURCE_ROW(y);
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const float16 v = pixel_load(in + at, width);

		float16 result = v;

		if (alpha)
			result = select(v * alpha_spread(v, bands), v,
			                band_lanes(at, bands, alpha_band));
		float_store(result, out + at, width);
	}
}

kernel void unpremultiply(REGION_ARGUMENTS, global const uchar *original, ulong original_offset,
                          uint original_pitch, float offset, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const uint alpha_band = 1u << (bands - 1);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	const source_row before =
	    (source_row)(original + original_offset + (ulong)y * original_pitch);
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const float16 v = float_load(in + at, width);
		const float16 alpha = alpha_spread(v, bands);
		const float16 colour = select((float16)(0.0f), v / alpha + offset, alpha > 0.0f);
		float16 result = select(colour, v, band_lanes(at, bands, alpha_band));

		if (keep)
			result = select(result, pixel_load(before + at, width),
			                band_lanes(at, bands, keep));
		pixel_store(result, out + at, width);
	}
}
