/* resize.cl: a change of size, in two passes; daemon/filters/resize.h has the arithmetic.
 *
 * resize_down: pixels to float; each row of the result is a sum of rows of the source.
 * resize_across: floats to pixels; each pixel is a sum of pixels of its row, rounded once.
 *
 * `weights` has `words` words for each row (or column) of the result: the place in the image of the
 * first pixel that it is made from, their number, and their weights; those of the region's first one
 * are the `entry`-th. The source's offset is that of its first pixel, whose place in the image is
 * `place`. A work-item makes one row of a block. */

/* Vectors of columns, and pixels of a row, whose sums are made at once: more than a sum's additions
 * wait for one another. */
enum { RESIZE_VECTORS = 4, RESIZE_PIXELS = 4 };

/* Makes a few vectors of a row; the first source row begins at `in`. */
FORCE_INLINE void resize_columns(const global uchar *in, uint pitch, const global float *weight,
                                 uint taps, global float *out, const int vectors, uint width)
{
	float16 sum[RESIZE_VECTORS];

#pragma unroll
	for (int n = 0; n < vectors; n++)
		sum[n] = 0.0f;
	for (uint i = 0; i < taps; i++, in += pitch)
#pragma unroll
		for (int n = 0; n < vectors; n++)
			sum[n] = fma(pixel_load((source_row)in + n * VECTOR, width),
			             (float16)(weight[i]), sum[n]);
#pragma unroll
	for (int n = 0; n < vectors; n++)
		float_store(sum[n], out + n * VECTOR, width);
}

kernel void resize_down(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const uint many = RESIZE_VECTORS * VECTOR;
	const global float *weight = weights + (ulong)(entry + y) * words;
	const uint taps = as_uint(weight[1]);
	const global uchar *in = src + src_offset + (ulong)(as_int(weight[0]) - place) * src_pitch;
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);
	uint x = span.x;

	if (get_global_id(0) >= blocks)
		return;

#define RESIZE_COLUMNS(at, vectors, width) \
	resize_columns(in + (ulong)(at) * sizeof(PIXEL), src_pitch, weight + 2, taps, out + (at), \
	               vectors, width)
	for (; x + many <= span.y; x += many)
		RESIZE_COLUMNS(x, RESIZE_VECTORS, VECTOR);
	for (; x < span.y; x += VECTOR)
		RESIZE_COLUMNS(min(x, span.y - width), 1, width);
}

/* A pixel of so many floats; those that it does not have are 0, or another pixel's if one follows. */
FORCE_INLINE float4 resize_load(const global float *p, const uint bands, bool follows)
{
	if (bands == 4 || (bands == 3 && follows))
		return vload4(0, p);
	if (bands == 3)
		return (float4)(vload3(0, p), 0.0f);
	if (bands == 2)
		return (float4)(vload2(0, p), 0.0f, 0.0f);
	return (float4)(p[0], 0.0f, 0.0f, 0.0f);
}

/* Makes `count` pixels, at most RESIZE_PIXELS. in: the pixel whose place is `place`. */
FORCE_INLINE void resize_pixels(const global float *in, const global float *weight, uint words, int place,
                                target_row out, const uint bands, const int count)
{
	const global float *p[RESIZE_PIXELS], *w[RESIZE_PIXELS];
	uint taps[RESIZE_PIXELS], least = UINT_MAX;
	float4 sum[RESIZE_PIXELS];

#pragma unroll
	for (int k = 0; k < count; k++, weight += words) {
		p[k] = in + (long)(as_int(weight[0]) - place) * bands;
		taps[k] = as_uint(weight[1]);
		w[k] = weight + 2;
		least = min(least, taps[k]);
		sum[k] = 0.0f;
	}
	for (uint i = 0; i + 1 < least; i++)
#pragma unroll
		for (int k = 0; k < count; k++)
			sum[k] = fma(resize_load(p[k] + i * bands, bands, true), (float4)(w[k][i]),
			             sum[k]);
#pragma unroll
	for (int k = 0; k < count; k++) {
		for (uint i = least - 1; i < taps[k]; i++)
			sum[k] = fma(resize_load(p[k] + i * bands, bands, false), (float4)(w[k][i]),
			             sum[k]);
		out[k * bands] = PIXEL_ROUND_1(sum[k].s0);
		if (bands > 1)
			out[k * bands + 1] = PIXEL_ROUND_1(sum[k].s1);
		if (bands > 2)
			out[k * bands + 2] = PIXEL_ROUND_1(sum[k].s2);
		if (bands > 3)
			out[k * bands + 3] = PIXEL_ROUND_1(sum[k].s3);
	}
}

/* Makes the pixels [span.x, span.y) of a row. */
FORCE_INLINE void resize_row(const global float *in, const global float *weights, uint words, int place,
                             target_row out, const uint bands, uint2 span)
{
	uint x = span.x;

	for (; x + RESIZE_PIXELS <= span.y; x += RESIZE_PIXELS)
		resize_pixels(in, weights + (ulong)x * words, words, place, out + x * bands, bands,
		              RESIZE_PIXELS);
	for (; x < span.y; x++)
		resize_pixels(in, weights + (ulong)x * words, words, place, out + x * bands, bands, 1);
}

kernel void resize_across(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint y = get_global_id(1);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	const global float *weight = weights + (ulong)entry * words;
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = points_span(samples, bands, blocks);

	if (bands == 3)
		resize_row(in, weight, words, place, out, 3, span);
	else if (bands == 4)
		resize_row(in, weight, words, place, out, 4, span);
	else if (bands == 1)
		resize_row(in, weight, words, place, out, 1, span);
	else
		resize_row(in, weight, words, place, out, 2, span);
}
