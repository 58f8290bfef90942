/* gradient.cl: the gradient of a 3x3 window (Sobel and its kin).
 *
 * gx = sum over j of smooth[j] * (in(x + 1, y + j - 1) - in(x - 1, y + j - 1)), gy its transpose;
 * out = sqrt(gx² + gy²), gx, gy or atan2(gy, gx) * scale, + offset
 *
 * A work-item makes a block of GRADIENT_ROWS rows. Down a column of vectors it reads each source
 * row once, three vectors wide, and makes the difference across and the smoothed row, which all
 * three windows need. Those of the last two rows stay in registers. */

/* Rows of a block: 2 more are read. */
#ifndef GRADIENT_ROWS
#define GRADIENT_ROWS 8
#endif

enum { GRADIENT_MAGNITUDE, GRADIENT_X, GRADIENT_Y, GRADIENT_DIRECTION };

/* One source row's contribution. */
struct line {
	float16 difference, smooth;
};

FORCE_INLINE struct line gradient_line(source_row p, uint bands, float3 weights, uint width)
{
	const float16 left = pixel_load(p - bands, width);
	const float16 centre = pixel_load(p, width);
	const float16 right = pixel_load(p + bands, width);
	struct line line;

	line.difference = right - left;
	line.smooth = fma(left, (float16)(weights.x),
	                  fma(centre, (float16)(weights.y), right * weights.z));
	return line;
}

/* Integers cannot overflow here; floats are scaled so that their squares neither overflow nor
 * vanish. */
FORCE_INLINE float16 gradient_magnitude(float16 gx, float16 gy)
{
#ifdef PIXEL_MAX
	return sqrt(fma(gx, gx, gy * gy));
#else
	const int16 swap = fabs(gy) > fabs(gx); /* not fmax(), which would lose NaN */
	const float16 large = fabs(select(gx, gy, swap));
	const float16 share = fabs(select(gy, gx, swap)) / fmax(large, (float16)(FLT_MIN));

	return large * sqrt(fma(share, share, (float16)(1.0f)));
#endif
}

FORCE_INLINE float16 gradient_output(float16 gx, float16 gy, uint output, float scale, float offset)
{
	switch (output) {
	case GRADIENT_MAGNITUDE:
		return gradient_magnitude(gx, gy) + offset;
	case GRADIENT_X:
		return gx + offset;
	case GRADIENT_Y:
		return gy + offset;
	default:
		return fma(exact_atan2(gy, gx), (float16)(scale), (float16)(offset));
	}
}

FORCE_INLINE void gradient_block(REGION_ARGUMENTS, float3 weights, uint output, float scale,
                                 float offset, uint keep, uint width)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1) * GRADIENT_ROWS;
	const uint here = min(rows - y, (uint)GRADIENT_ROWS);

	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		struct line above = gradient_line(SOURCE_ROW((long)y - 1) + at, bands, weights, width);
		struct line here_line = gradient_line(SOURCE_ROW(y) + at, bands, weights, width);

		for (uint r = 0; r < here; r++) {
			const struct line below =
			    gradient_line(SOURCE_ROW(y + r + 1) + at, bands, weights, width);
			const float16 gx =
			    fma(above.difference, (float16)(weights.x),
			        fma(here_line.difference, (float16)(weights.y),
			            below.difference * weights.z));
			const float16 gy = below.smooth - above.smooth;
			float16 result = gradient_output(gx, gy, output, scale, offset);

			if (keep)
				result = select(result, pixel_load(SOURCE_ROW(y + r) + at, width),
				                band_lanes(at, bands, keep));
			pixel_store(result, TARGET_ROW(y + r) + at, width);
			above = here_line;
			here_line = below;
		}
	}
}

kernel void gradient(REGION_ARGUMENTS, float smooth0, float smooth1, float smooth2, uint output,
                     float scale, float offset, uint keep)
{
	const float3 weights = (float3)(smooth0, smooth1, smooth2);

	if (get_global_id(0) >= blocks)
		return;
	if (samples < VECTOR)
		gradient_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		               bands, blocks, weights, output, scale, offset, keep, samples);
	else if (output == GRADIENT_MAGNITUDE)
		gradient_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		               bands, blocks, weights, GRADIENT_MAGNITUDE, scale, offset, keep,
		               VECTOR);
	else
		gradient_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		               bands, blocks, weights, output, scale, offset, keep, VECTOR);
}
