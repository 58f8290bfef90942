/* subtract.cl: the difference of two images of the same type, saturated.
 *
 * out = in - original, or with `reverse` original - in; bands in `keep` are those of `original`. A
 * work-item makes one row of a block. */

kernel void subtract(REGION_ARGUMENTS, global const uchar *original, ulong original_offset,
                     uint original_pitch, uint reverse, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const source_row in = SOURCE_ROW(y);
	const source_row other =
	    (source_row)(original + original_offset + (ulong)y * original_pitch);
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const float16 a = pixel_load(in + at, width), b = pixel_load(other + at, width);
		float16 result = reverse ? b - a : a - b;

		if (keep)
			result = select(result, b, band_lanes(at, bands, keep));
		pixel_store(result, out + at, width);
	}
}
