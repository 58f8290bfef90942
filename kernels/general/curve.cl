/* curve.cl: each sample by itself.
 *
 * t = gain * in + bias, from low to high, or NaN; out = scale * t^exponent + shift
 *
 * Gain and bias have a component for each band if by_band, else the first is for all.
 *
 * Low is not below 0 if the exponent is other than 1. A work-item makes one row of a block. */

kernel void curve(REGION_ARGUMENTS, float4 gain, float4 bias, float low, float high, float exponent,
                  float scale, float shift, uint by_band, uint keep)
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
		float16 t = fma(v, (float16)(gain.s0), (float16)(bias.s0));

		if (by_band)
			t = fma(v, band_values(gain, at, bands), band_values(bias, at, bands));
		t = WITHIN(t, (float16)(low), (float16)(high));

		if (exponent != 1.0f)
			t = exact_powr(t, exponent);
		t = fma(t, (float16)(scale), (float16)(shift));
		if (keep)
			t = select(t, v, band_lanes(at, bands, keep));
		pixel_store(t, out + at, width);
	}
}
