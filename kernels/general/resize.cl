/* resize.cl: a change of size, in two passes; daemon/image/resampling.h has the arithmetic.
 *
 * resize_down: pixels to float; each row of the result is a sum of rows of the source.
 * resize_across: floats to pixels; each pixel is a sum of pixels of its row, rounded once.
 *
 * `weights` has `words` words for each row (or column) of the result: the place in the image of the
 * first pixel that it is made from, their number, and their weights; those of the region's first one
 * are the `entry`-th. The source's offset is that of its first pixel, whose place in the image is
 * `place`. A work-item makes RESIZE_DOWN_ROWS or RESIZE_ACROSS_ROWS rows of a block: at once, since
 * they have rows of the source, or weights, in common. */

#ifndef RESIZE_DOWN_ROWS
#define RESIZE_DOWN_ROWS 4
#endif
#ifndef RESIZE_ACROSS_ROWS
#define RESIZE_ACROSS_ROWS 4
#endif

/* Vectors of columns, and pixels of a row, whose sums are made at once: more than a sum's additions
 * wait for one another. */
enum { RESIZE_VECTORS = 4, RESIZE_PIXELS = RESIZE_ACROSS_ROWS > 1 ? 2 : 4 };

/* Makes a few vectors of so many rows; the first row's first source row begins at `in`. */
FORCE_INLINE void resize_columns(const global uchar *in, uint pitch, const global float *weight, uint words,
                                 global uchar *out, uint out_pitch, const int rows, const int vectors,
                                 uint width)
{
	float16 sum[RESIZE_DOWN_ROWS][RESIZE_VECTORS];
	int first[RESIZE_DOWN_ROWS];
	uint taps[RESIZE_DOWN_ROWS];

#pragma unroll
	for (int k = 0; k < rows; k++) {
		first[k] = as_int(weight[k * words]) - as_int(weight[0]);
		taps[k] = as_uint(weight[k * words + 1]);
#pragma unroll
		for (int n = 0; n < vectors; n++)
			sum[k][n] = 0.0f;
	}
	for (int i = 0; i < first[rows - 1] + (int)taps[rows - 1]; i++, in += pitch) {
		float16 v[RESIZE_VECTORS];

#pragma unroll
		for (int n = 0; n < vectors; n++)
			v[n] = pixel_load((source_row)in + n * VECTOR, width);
#pragma unroll
		for (int k = 0; k < rows; k++) {
			const uint t = (uint)(i - first[k]);

			if (t < taps[k])
#pragma unroll
				for (int n = 0; n < vectors; n++)
					sum[k][n] =
					    fma(v[n], (float16)(weight[k * words + 2 + t]), sum[k][n]);
		}
	}
#pragma unroll
	for (int k = 0; k < rows; k++)
#pragma unroll
		for (int n = 0; n < vectors; n++)
			float_store(sum[k][n], (global float *)(out + (ulong)k * out_pitch) + n * VECTOR,
			            width);
}

kernel void resize_down(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint width = min(samples, (uint)VECTOR), many = RESIZE_VECTORS * VECTOR;
	uint y = get_global_id(1) * RESIZE_DOWN_ROWS, end = min(rows, y + RESIZE_DOWN_ROWS);

	if (get_global_id(0) >= blocks)
		return;
	while (y < end) {
		const global float *weight = weights + (ulong)(entry + y) * words;
		const global uchar *in = src + src_offset + (ulong)(as_int(weight[0]) - place) * src_pitch;
		global uchar *out = dst + dst_offset + (ulong)y * dst_pitch;
		const bool all = RESIZE_DOWN_ROWS > 1 && end - y == RESIZE_DOWN_ROWS &&
		                 as_int(weight[words]) - as_int(weight[0]) < as_int(weight[1]);
		uint x = span.x;

#define RESIZE_COLUMNS(at, rows, vectors, width)                                                             \
	resize_columns(in + (ulong)(at) * sizeof(PIXEL), src_pitch, weight, words,                           \
	               out + (at) * sizeof(float), dst_pitch, rows, vectors, width)
		if (all)
			for (; x + many <= span.y; x += many)
				RESIZE_COLUMNS(x, RESIZE_DOWN_ROWS, RESIZE_VECTORS, VECTOR);
		else
			for (; x + many <= span.y; x += many)
				RESIZE_COLUMNS(x, 1, RESIZE_VECTORS, VECTOR);
		for (; x < span.y; x += VECTOR)
			if (all)
				RESIZE_COLUMNS(min(x, span.y - width), RESIZE_DOWN_ROWS, 1, width);
			else
				RESIZE_COLUMNS(min(x, span.y - width), 1, 1, width);
		y += all ? RESIZE_DOWN_ROWS : 1;
	}
}

/* A pixel of so many floats, and what follows it, or 0. */
FORCE_INLINE float4 resize_load(const global float *p, const uint bands)
{
	if (bands > 2)
		return vload4(0, p);
	if (bands == 2)
		return (float4)(vload2(0, p), 0.0f, 0.0f);
	return (float4)(p[0], 0.0f, 0.0f, 0.0f);
}

/* Makes `count` pixels, at most RESIZE_PIXELS, of so many rows. in: the pixel whose place is
 * `place`. */
FORCE_INLINE void resize_pixels(const global uchar *in, uint pitch, const global float *weight, uint words,
                                int place, global uchar *out, uint out_pitch, const uint bands,
                                const int rows, const int count)
{
	const global uchar *p[RESIZE_PIXELS];
	uint taps[RESIZE_PIXELS], least = UINT_MAX;
	float4 sum[RESIZE_ACROSS_ROWS][RESIZE_PIXELS];

#define RESIZE_ADD(r, k, i)                                                                                  \
	sum[r][k] = fma(resize_load((const global float *)(p[k] + (ulong)(r) * pitch) + (i) * bands, bands), \
	                (float4)(weight[(k) * words + 2 + (i)]), sum[r][k])
#pragma unroll
	for (int k = 0; k < count; k++) {
		p[k] = in + (long)(as_int(weight[k * words]) - place) * bands * (long)sizeof(float);
		taps[k] = as_uint(weight[k * words + 1]);
		least = min(least, taps[k]);
#pragma unroll
		for (int r = 0; r < rows; r++)
			sum[r][k] = 0.0f;
	}
	for (uint i = 0; i < least; i++)
#pragma unroll
		for (int k = 0; k < count; k++)
#pragma unroll
			for (int r = 0; r < rows; r++)
				RESIZE_ADD(r, k, i);
#pragma unroll
	for (int k = 0; k < count; k++)
#pragma unroll
		for (int r = 0; r < rows; r++) {
			target_row to = (target_row)(out + (ulong)r * out_pitch) + k * bands;

			for (uint i = least; i < taps[k]; i++)
				RESIZE_ADD(r, k, i);

			const PASTE(PIXEL, 4, ) pixel = PIXEL_ROUND_4(sum[r][k]);

			to[0] = pixel.s0;
			if (bands > 1)
				to[1] = pixel.s1;
			if (bands > 2)
				to[2] = pixel.s2;
			if (bands > 3)
				to[3] = pixel.s3;
		}
}

/* Makes the pixels [span.x, span.y) of so many rows. */
FORCE_INLINE void resize_row(const global uchar *in, uint pitch, const global float *weights, uint words,
                             int place, global uchar *out, uint out_pitch, const uint bands, const int rows,
                             uint2 span)
{
	uint x = span.x;

#define RESIZE_AT(count)                                                                                     \
	resize_pixels(in, pitch, weights + (ulong)x * words, words, place,                                   \
	              out + x * bands * sizeof(PIXEL), out_pitch, bands, rows, count)
	for (; x + RESIZE_PIXELS <= span.y; x += RESIZE_PIXELS)
		RESIZE_AT(RESIZE_PIXELS);
	for (; x < span.y; x++)
		RESIZE_AT(1);
}

kernel void resize_across(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	uint y = get_global_id(1) * RESIZE_ACROSS_ROWS, end = min(rows, y + RESIZE_ACROSS_ROWS);
	const global float *weight = weights + (ulong)entry * words;

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = points_span(samples, bands, blocks);

#define RESIZE_ROW(bands, rows)                                                                              \
	resize_row(src + src_offset + (ulong)y * src_pitch, src_pitch, weight, words, place,                 \
	           dst + dst_offset + (ulong)y * dst_pitch, dst_pitch, bands, rows, span)
#define RESIZE_ROWS(rows)                                                                                    \
	if (bands == 3)                                                                                      \
		RESIZE_ROW(3, rows);                                                                         \
	else if (bands == 4)                                                                                 \
		RESIZE_ROW(4, rows);                                                                         \
	else if (bands == 1)                                                                                 \
		RESIZE_ROW(1, rows);                                                                         \
	else                                                                                                 \
		RESIZE_ROW(2, rows)
	if (end - y == RESIZE_ACROSS_ROWS) {
		RESIZE_ROWS(RESIZE_ACROSS_ROWS);
	} else {
		for (; y < end; y++) {
			RESIZE_ROWS(1);
		}
	}
}
