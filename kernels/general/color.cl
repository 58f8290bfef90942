/* color.cl: colours from colours.
 *
 * to_ycc, from_ycc: to luma and chroma and back, for filters that work on one of them.
 * BT.601, full range, as in JPEG (ITU-T T.871): Y = 0.299 R + 0.587 G + 0.114 B,
 * Cb = (B - Y) / 1.772 + middle, Cr = (R - Y) / 1.402 + middle. In float both ways; only from_ycc
 * rounds. bands is 3, or 4 with alpha, which is passed on.
 *
 * colormatrix: each band is a weighted sum of all, by a row of a matrix. A single colour counts as
 * three; alpha is the fourth, and full scale if there is none.
 *
 * A work-item makes one row of a block. */

/* Returns the pixels of a row that a work-item makes. */
FORCE_INLINE uint2 color_span(uint samples, uint bands, uint blocks)
{
	const uint i = get_global_id(0), pixels = samples / bands;

	return (uint2)((uint)((ulong)pixels * i / blocks), (uint)((ulong)pixels * (i + 1) / blocks));
}

kernel void to_ycc(REGION_ARGUMENTS, float middle)
{
	const source_row in = SOURCE_ROW(get_global_id(1));
	global float *out = (global float *)(dst + dst_offset + (ulong)get_global_id(1) * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = color_span(samples, bands, blocks);

	for (uint x = span.x; x < span.y; x++) {
		const source_row p = in + x * bands;
		const float r = convert_float(p[0]), g = convert_float(p[1]), b = convert_float(p[2]);
		const float luma = fma(0.299f, r, fma(0.587f, g, 0.114f * b));

		out[x * bands] = luma;
		out[x * bands + 1] = (b - luma) / 1.772f + middle;
		out[x * bands + 2] = (r - luma) / 1.402f + middle;
		if (bands == 4)
			out[x * bands + 3] = convert_float(p[3]);
	}
}

FORCE_INLINE PIXEL color_round(float v)
{
#ifdef PIXEL_MAX
	return CONVERT(PIXEL, )(rint(clamp(v, 0.0f, PIXEL_MAX)));
#else
	return v;
#endif
}

kernel void from_ycc(REGION_ARGUMENTS, float middle)
{
	const global float *in =
	    (const global float *)(src + src_offset + (ulong)get_global_id(1) * src_pitch);
	const target_row out = TARGET_ROW(get_global_id(1));

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = color_span(samples, bands, blocks);

	for (uint x = span.x; x < span.y; x++) {
		const global float *p = in + x * bands;
		const float luma = p[0], cb = p[1] - middle, cr = p[2] - middle;
		const float r = fma(1.402f, cr, luma), b = fma(1.772f, cb, luma);

		out[x * bands] = color_round(r);
		out[x * bands + 1] = color_round(fma(-0.299f, r, fma(-0.114f, b, luma)) / 0.587f);
		out[x * bands + 2] = color_round(b);
		if (bands == 4)
			out[x * bands + 3] = color_round(p[3]);
	}
}

/* Loads one band of up to 16 pixels side by side. */
FORCE_INLINE float16 plane_load(source_row p, uint bands, uint count)
{
	PIXEL part[VECTOR];

	for (uint i = 0; i < VECTOR; i++)
		part[i] = i < count ? p[i * bands] : 0;
	return convert_float16(vload16(0, part));
}

FORCE_INLINE void plane_store(float16 v, target_row p, uint bands, uint count)
{
	PIXEL part[VECTOR];

	vstore16(PIXEL_ROUND(v), 0, part);
	for (uint i = 0; i < count; i++)
		p[i * bands] = part[i];
}

kernel void colormatrix(REGION_ARGUMENTS, float4 red, float4 green, float4 blue, float4 fourth,
                        float4 shift, float full, uint alpha, uint keep)
{
	const source_row in = SOURCE_ROW(get_global_id(1));
	const target_row out = TARGET_ROW(get_global_id(1));
	const uint colours = bands - alpha;

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = color_span(samples, bands, blocks);

	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint count = min((uint)VECTOR, span.y - x);
		const source_row p = in + x * bands;
		const float16 v0 = plane_load(p, bands, count);
		float16 v1 = v0, v2 = v0, v3 = (float16)(full);

		if (colours > 1) {
			v1 = plane_load(p + 1, bands, count);
			v2 = (float16)(0.0f);
		}
		if (colours > 2)
			v2 = plane_load(p + 2, bands, count);
		if (alpha || colours == 4)
			v3 = plane_load(p + bands - 1, bands, count);
		for (uint b = 0; b < bands; b++) {
			const bool last = b >= colours || b == 3;
			const float4 row = last ? fourth : b == 0 ? red : b == 1 ? green : blue;
			const float by = last ? shift.s3 : b == 0 ? shift.s0 : b == 1 ? shift.s1 : shift.s2;
			float16 t = fma(v3, (float16)(row.s3), (float16)(by));

			t = fma(v2, (float16)(row.s2), t);
			t = fma(v1, (float16)(row.s1), t);
			t = fma(v0, (float16)(row.s0), t);
			if (keep >> b & 1)
				t = last ? v3 : b == 0 ? v0 : b == 1 ? v1 : v2;
			plane_store(t, out + x * bands + b, bands, count);
		}
	}
}
