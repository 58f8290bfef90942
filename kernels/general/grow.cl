/* grow.cl: pixels from the points of a lattice that cover the whole image (daemon/common/grid.h), for
 * Gaussians of very large sigma.
 *
 * Of each axis there are: the pixels from point to point (stride), the points that a pixel is made
 * from (taps), where in a stride the image's first pixel is (phase), the points in all, the pixels
 * of what they are of (size), and how many pixels of the image are before that (place): if its
 * border has been cropped, it is what is left in the middle. Beyond it, where only `wrap` needs a
 * result, it is repeated. table: of all taps and phases the weights across, each once for every
 * band, then those down, then the points, each in as many floats as there are bands, of three in
 * four.
 *
 * A work-item makes one row of a block. It goes from one point to the next: the pixels between are
 * made from the same few columns of points, which are first summed down. Bands in `keep` are those
 * of the source. */

#define GROW_AXIS(name)                                                                            \
	uint name##_stride, uint name##_taps, uint name##_phase, uint name##_points, uint name##_size,  \
	    int name##_place

enum { GROW_TAPS = 6 };

FORCE_INLINE uint grow_repeat(int i, int n)
{
	const int rest = i % n;

	return (uint)(rest < 0 ? rest + n : rest);
}

FORCE_INLINE float4 grow_point(const global float *points, ulong i, uint bands)
{
	if (bands > 2)
		return vload4(i, points);
	points += i * bands;
	return (float4)(points[0], points[bands - 1], 0.0f, 0.0f);
}

/* The pixels of `count` samples, all between the same points; weight: across, of the first pixel. */
FORCE_INLINE void grow_samples(const float4 *column, const global float *weight, uint taps,
                               uint apart, source_row in, target_row out, uint count, uint bands,
                               uint keep)
{
	const uint width = min(count, (uint)VECTOR);

	for (uint x = 0; x < count; x += VECTOR) {
		const uint at = min(x, count - width);
		float16 sum = 0.0f;

		for (uint tap = 0; tap < taps; tap++)
			sum = fma(float_load(weight + tap * apart + at, width),
			          band_values(column[tap], at, bands), sum);
		if (keep)
			sum = select(sum, pixel_load(in + at, width), band_lanes(at, bands, keep));
		pixel_store(sum, out + at, width);
	}
}

kernel void grow(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global float *table, GROW_AXIS(x),
                 GROW_AXIS(y), uint keep)
{
	const uint pixels = samples / bands;
	const uint2 span = block_span(pixels, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const global float *down = table + x_taps * x_stride * bands;
	const global float *points = down + y_taps * y_stride;

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;

	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	const uint row =
	    grow_repeat(place_y0(y0s, more_y0s) + (int)y - y_place, (int)y_size) + y_phase;

	down += row % y_stride;
	for (uint x = span.x; x < span.y;) {
		const uint pixel = grow_repeat(x0 + (int)x - x_place, (int)x_size);
		const uint phase = (pixel + x_phase) % x_stride, first = (pixel + x_phase) / x_stride;
		const uint here = min(min(span.y - x, x_stride - phase), x_size - pixel);
		const ulong from = (ulong)(row / y_stride) * x_points + first;
		float4 column[GROW_TAPS];

		for (uint tap = 0; tap < x_taps; tap++) {
			column[tap] = 0.0f;
			for (uint i = 0; i < y_taps; i++)
				column[tap] =
				    fma(grow_point(points, from + (ulong)i * x_points + tap, bands),
				        (float4)(down[i * y_stride]), column[tap]);
		}
		grow_samples(column, table + phase * bands, x_taps, x_stride * bands, in + x * bands,
		             out + x * bands, here * bands, bands, keep);
		x += here;
	}
}
