/* lattice.cl: from pixels to a lattice of every stride-th row and column and back, for Gaussians of
 * large sigma; daemon/common/lattice.h has the arithmetic.
 *
 * shrink_down: pixels to float; row i is the sum over t of spline[t] * in(y = i * stride + t).
 * shrink_across: the same along a row of floats.
 * grow_across, grow_down: row (or place) p is the sum over tap of weight[tap][(p + phase) % stride] *
 * in((p + phase) / stride + tap); grow_down ends in pixels, rounded once. Bands in `keep` are those
 * of `original`.
 *
 * The source's offset is that of the first sample that the region's first one is made from. The
 * ones down go through a block of `block_rows` rows in vectors, and load what several rows
 * share once: when shrinking, a row of the source adds to up to `taps` sums at a time; when growing,
 * stride rows are made from the same points. The ones across have a row of a block a
 * work-item. Nothing that has weight 0 in the spline is read. */

/* Points that are made at once across. */
#ifndef LATTICE_POINTS
#define LATTICE_POINTS 8
#endif

enum { LATTICE_TAPS = 6, LATTICE_PHASES = 8 };

/* One vector of columns: `here` rows of the lattice, the first of which begins at p. */
FORCE_INLINE void shrink_rows(const global uchar *p, uint pitch, constant float *spline,
                              uint length, uint stride, const int taps, uint here,
                              global uchar *out, uint out_pitch, uint width)
{
	const uint tail = length - (taps - 1) * stride;
	float16 sum[LATTICE_TAPS]; /* of the row that begins here, the one before it, … */

#pragma unroll
	for (int i = 0; i < taps; i++)
		sum[i] = 0.0f;
	for (uint left = here + taps - 1;; left--) {
		for (uint t = 0; t < tail; t++, p += pitch) {
			const float16 v = pixel_load((source_row)p, width);

#pragma unroll
			for (int i = 0; i < taps; i++)
				sum[i] = fma(v, (float16)(spline[i * stride + t]), sum[i]);
		}
		if (left <= here) {
			float_store(sum[taps - 1], (global float *)out, width);
			out += out_pitch;
		}
		if (left == 1)
			return;
		for (uint t = tail; t < stride; t++, p += pitch) {
			const float16 v = pixel_load((source_row)p, width);

#pragma unroll
			for (int i = 0; i < taps - 1; i++)
				sum[i] = fma(v, (float16)(spline[i * stride + t]), sum[i]);
		}
#pragma unroll
		for (int i = taps - 1; i > 0; i--)
			sum[i] = sum[i - 1];
		sum[0] = 0.0f;
	}
}

kernel void shrink_down(REGION_ARGUMENTS, constant float *spline, uint length, uint stride,
                        uint taps, uint block_rows)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1) * block_rows, width = min(samples, (uint)VECTOR);
	const global uchar *in = (const global uchar *)SOURCE_ROW((ulong)y * stride);
	global uchar *out = dst + dst_offset + (ulong)y * dst_pitch;

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width), here = min(rows - y, block_rows);
		const global uchar *p = in + (ulong)at * sizeof(PIXEL);
		global uchar *q = out + (ulong)at * sizeof(float);

		if (taps == 5)
			shrink_rows(p, src_pitch, spline, length, stride, 5, here, q, dst_pitch,
			            width);
		else
			shrink_rows(p, src_pitch, spline, length, stride, 6, here, q, dst_pitch,
			            width);
	}
}

kernel void shrink_across(REGION_ARGUMENTS, constant float *spline, uint length, uint stride)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += LATTICE_POINTS) {
		const global float *p[LATTICE_POINTS];
		float sum[LATTICE_POINTS];

#pragma unroll
		for (int i = 0; i < LATTICE_POINTS; i++) {
			const uint at = min(x + i, span.y - 1);

			p[i] = in + at / bands * stride * bands + at % bands;
			sum[i] = 0.0f;
		}
		for (uint t = 0; t < length; t++)
#pragma unroll
			for (int i = 0; i < LATTICE_POINTS; i++)
				sum[i] = fma(p[i][t * bands], spline[t], sum[i]);
#pragma unroll
		for (int i = 0; i < LATTICE_POINTS; i++)
			if (x + i < span.y)
				out[x + i] = sum[i];
	}
}

/* One sample, from its first point. */
FORCE_INLINE float grow_sample(const global float *p, uint bands, constant float *weight,
                               uint taps)
{
	float sum = 0.0f;

	for (uint tap = 0; tap < taps; tap++)
		sum = fma(p[tap * bands], weight[tap * LATTICE_PHASES], sum);
	return sum;
}

kernel void grow_across(REGION_ARGUMENTS, constant float *weight, uint stride, uint taps,
                        uint phase)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);
	uint x = span.x;

	if (get_global_id(0) >= blocks)
		return;
	/* One band: all pixels of a point at once, those too many overwritten by the next. */
	if (bands == 1) {
		for (; x < span.y && (x + phase) % stride; x++)
			out[x] = grow_sample(in + (x + phase) / stride, 1,
			                     weight + (x + phase) % stride, taps);
		for (; x + LATTICE_PHASES <= span.y; x += stride) {
			const global float *p = in + (x + phase) / stride;
			float8 sum = p[0] * vload8(0, weight);

			for (uint tap = 1; tap < taps; tap++)
				sum = fma((float8)(p[tap]), vload8(tap, weight), sum);
			vstore8(sum, 0, out + x);
		}
	}
	for (; x < span.y; x++) {
		const uint pixel = x / bands + phase;

		out[x] = grow_sample(in + pixel / stride * bands + x % bands, bands,
		                     weight + pixel % stride, taps);
	}
}

/* The vector of a row that has these points, in pixels. */
FORCE_INLINE void grow_row(const float16 *point, constant float *weight, const int taps,
                           source_row before, target_row out, uint at, uint bands, uint keep,
                           uint width)
{
	float16 sum = point[0] * weight[0];

#pragma unroll
	for (int tap = 1; tap < taps; tap++)
		sum = fma(point[tap], (float16)(weight[tap * LATTICE_PHASES]), sum);
	if (keep)
		sum = select(sum, pixel_load(before + at, width), band_lanes(at, bands, keep));
	pixel_store(sum, out + at, width);
}

kernel void grow_down(REGION_ARGUMENTS, constant float *weight, uint stride, uint taps, uint phase,
                      uint block_rows, global const uchar *original, ulong original_offset,
                      uint original_pitch, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint first = get_global_id(1) * block_rows, end = min(rows, first + block_rows);
	const uint width = min(samples, (uint)VECTOR);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		uint y = first;

		while (y < end) {
			const uint i = (y + phase) / stride, next = min(end, (i + 1) * stride - phase);
			const global uchar *p =
			    src + src_offset + (ulong)i * src_pitch + at * sizeof(float);
			float16 point[LATTICE_TAPS];

#pragma unroll
			for (int tap = 0; tap < LATTICE_TAPS; tap++) {
				point[tap] = 0.0f;
				if (tap < (int)taps)
					point[tap] = float_load((const global float *)p, width);
				p += src_pitch;
			}
			for (; y < next; y++) {
				const source_row before = (source_row)(original + original_offset +
				                                       (ulong)y * original_pitch);
				constant float *w = weight + (y + phase - i * stride);

				if (taps == 5)
					grow_row(point, w, 5, before, TARGET_ROW(y), at, bands, keep,
					         width);
				else
					grow_row(point, w, 6, before, TARGET_ROW(y), at, bands, keep,
					         width);
			}
		}
	}
}
