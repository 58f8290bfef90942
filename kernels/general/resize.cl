/* resize.cl: a change of size, in two passes; daemon/image/resampling.h has the arithmetic.
 *
 * resize_down: pixels to float; each row of the result is a sum of rows of the source.
 * resize_across: floats to pixels; each pixel is a sum of pixels of its row, rounded once.
 *
 * A work-item makes RESIZE_ROWS rows of a block at once: they have rows of the source, or weights, in
 * common. Between the passes such rows lie woven, sample by sample: the first of each, the second of
 * each, and so on. So all rows of a pixel are one vector across. Rows behind the region's last one
 * are copies of it, and are not in the result.
 *
 * `weights` has `words` words for each row (or column) of the result: the place in the image of the
 * first pixel that it is made from, their number, and their weights; those of the region's first one
 * are the `entry`-th. The source's offset is that of its first pixel, whose place in the image is
 * `place`. */

#ifndef RESIZE_DOWN_ROWS
#define RESIZE_DOWN_ROWS 4
#endif
#ifndef RESIZE_ACROSS_ROWS
#define RESIZE_ACROSS_ROWS RESIZE_DOWN_ROWS
#endif
#if RESIZE_DOWN_ROWS != RESIZE_ACROSS_ROWS || (RESIZE_DOWN_ROWS != 1 && RESIZE_DOWN_ROWS != 4)
#error "both passes weave one row or four"
#endif

/* Vectors of columns, and pixels of a row, whose sums are made at once: more than a sum's additions
 * wait for one another. */
enum { RESIZE_ROWS = RESIZE_DOWN_ROWS, RESIZE_VECTORS = 4, RESIZE_PIXELS = 4 };

/* Stores the first `width` of 16 samples of each row, woven. */
FORCE_INLINE void resize_weave(const float16 *v, const int apart, global float *out, uint width)
{
#if RESIZE_DOWN_ROWS == 4
#define RESIZE_PAIRS_LOW(a, b) \
	as_double8(__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23))
#define RESIZE_PAIRS_HIGH(a, b) \
	as_double8(__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
	const double8 low[2] = {RESIZE_PAIRS_LOW(v[0], v[apart]), RESIZE_PAIRS_LOW(v[2 * apart], v[3 * apart])};
	const double8 high[2] = {RESIZE_PAIRS_HIGH(v[0], v[apart]), RESIZE_PAIRS_HIGH(v[2 * apart], v[3 * apart])};
	const float16 woven[RESIZE_ROWS] = {
	    as_float16(__builtin_shufflevector(low[0], low[1], 0, 8, 1, 9, 2, 10, 3, 11)),
	    as_float16(__builtin_shufflevector(low[0], low[1], 4, 12, 5, 13, 6, 14, 7, 15)),
	    as_float16(__builtin_shufflevector(high[0], high[1], 0, 8, 1, 9, 2, 10, 3, 11)),
	    as_float16(__builtin_shufflevector(high[0], high[1], 4, 12, 5, 13, 6, 14, 7, 15))};
#else
	const float16 woven[RESIZE_ROWS] = {v[0]};
#endif
#pragma unroll
	for (int i = 0; i < RESIZE_ROWS; i++) {
		const int most = (int)width * RESIZE_ROWS - i * VECTOR;

		if (most > 0)
			float_store(woven[i], out + i * VECTOR, (uint)min(most, (int)VECTOR));
	}
}

/* Makes a few vectors of all rows; weight: each row's list. */
FORCE_INLINE void resize_columns(const global uchar *in, uint pitch, const global float *const *weight,
                                 global float *out, const int vectors, uint width)
{
	float16 sum[RESIZE_ROWS][RESIZE_VECTORS];
	int first[RESIZE_ROWS], end = 0;
	uint taps[RESIZE_ROWS];
	bool gaps = false;

#pragma unroll
	for (int k = 0; k < RESIZE_ROWS; k++) {
		first[k] = as_int(weight[k][0]) - as_int(weight[0][0]);
		taps[k] = as_uint(weight[k][1]);
		gaps |= first[k] > end;
		end = first[k] + (int)taps[k];
#pragma unroll
		for (int n = 0; n < vectors; n++)
			sum[k][n] = 0.0f;
	}
	for (int i = 0; i < end; i++, in += pitch) {
		float16 v[RESIZE_VECTORS];

#pragma unroll
		for (int n = 0; n < vectors; n++)
			v[n] = pixel_load((source_row)in + n * VECTOR, width);
#pragma unroll
		for (int k = 0; k < RESIZE_ROWS; k++) {
			const uint t = (uint)(i - first[k]);

			if (t < taps[k])
#pragma unroll
				for (int n = 0; n < vectors; n++)
					sum[k][n] = fma(v[n], (float16)(weight[k][2 + t]), sum[k][n]);
		}
#pragma unroll
		for (int k = 1; gaps && k < RESIZE_ROWS; k++)
			if (i + 1 == first[k - 1] + (int)taps[k - 1] && first[k] > i) {
				in += (ulong)(first[k] - i - 1) * pitch;
				i = first[k] - 1;
			}
	}
#pragma unroll
	for (int n = 0; n < vectors; n++)
		resize_weave(&sum[0][n], RESIZE_VECTORS, out + n * VECTOR * RESIZE_ROWS, width);
}

kernel void resize_down(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint width = min(samples, (uint)VECTOR), many = RESIZE_VECTORS * VECTOR;
	const uint y = get_global_id(1) * RESIZE_ROWS;
	const global float *weight[RESIZE_ROWS];

	if (get_global_id(0) >= blocks || y >= rows)
		return;
#pragma unroll
	for (uint k = 0; k < RESIZE_ROWS; k++)
		weight[k] = weights + (ulong)(entry + min(y + k, rows - 1)) * words;

	const global uchar *in = src + src_offset + (ulong)(as_int(weight[0][0]) - place) * src_pitch;
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);
	uint x = span.x;

#define RESIZE_COLUMNS(at, vectors, width)                                                                 \
	resize_columns(in + (ulong)(at) * sizeof(PIXEL), src_pitch, weight, out + (at) * RESIZE_ROWS,      \
	               vectors, width)
	for (; x + many <= span.y; x += many)
		RESIZE_COLUMNS(x, RESIZE_VECTORS, VECTOR);
	for (; x < span.y; x += VECTOR)
		RESIZE_COLUMNS(min(x, span.y - width), 1, width);
}

/* Stores the bands of a pixel. */
FORCE_INLINE void resize_store(PASTE(PIXEL, 4, ) v, target_row p, const uint bands)
{
	p[0] = v.s0;
	if (bands > 1)
		p[1] = v.s1;
	if (bands > 2)
		p[2] = v.s2;
	if (bands > 3)
		p[3] = v.s3;
}

/* Store a pixel of the first `many` rows: of three or four bands, or of fewer, of which a vector has all
 * rows; and of one row. */
#define RESIZE_TARGET(r) ((target_row)(out + (ulong)(r) * pitch))
FORCE_INLINE void resize_store_16(PASTE(PIXEL, 16, ) v, global uchar *out, uint pitch, const uint bands,
                                  uint many)
{
	v = v.s048c159d26ae37bf;
	resize_store(v.s0123, RESIZE_TARGET(0), bands);
	if (many > 1)
		resize_store(v.s4567, RESIZE_TARGET(1), bands);
	if (many > 2)
		resize_store(v.s89ab, RESIZE_TARGET(2), bands);
	if (many > 3)
		resize_store(v.scdef, RESIZE_TARGET(3), bands);
}

FORCE_INLINE void resize_store_4(PASTE(PIXEL, 4, ) v, global uchar *out, uint pitch, const uint bands,
                                 uint many)
{
	resize_store(v, RESIZE_TARGET(0), RESIZE_ROWS == 1 ? bands : 1);
	if (many > 1)
		*RESIZE_TARGET(1) = v.s1;
	if (many > 2)
		*RESIZE_TARGET(2) = v.s2;
	if (many > 3)
		*RESIZE_TARGET(3) = v.s3;
}

/* Makes `count` pixels, at most RESIZE_PIXELS, of all rows, in vectors of `size` floats, and stores
 * the first `many` rows; the place of the pixel at `in` is `place`. */
#define RESIZE_PIXELS_OF(size, round)                                                                      \
	FORCE_INLINE void resize_pixels_##size(const global float *in, const global float *weight,         \
	                                       uint words, int place, global uchar *out, uint pitch,       \
	                                       const uint bands, uint many, const int count)               \
	{                                                                                                  \
		const global float *p[RESIZE_PIXELS], *w[RESIZE_PIXELS];                                   \
		ulong taps[RESIZE_PIXELS], least = UINT_MAX;                                               \
		float##size sum[RESIZE_PIXELS];                                                            \
                                                                                                           \
		RESIZE_EACH(k, count) {                                                                    \
			w[k] = weight + (ulong)k * words;                                                  \
			p[k] = in + (long)(as_int(w[k][0]) - place) * (bands * RESIZE_ROWS);               \
			taps[k] = as_uint(w[k][1]);                                                        \
			least = min(least, taps[k]);                                                       \
			sum[k] = 0.0f;                                                                     \
		}                                                                                          \
		for (ulong i = 0; i < least; i++)                                                          \
			RESIZE_EACH(k, count)                                                              \
				RESIZE_ADD(size, k, i);                                                    \
		RESIZE_EACH(k, count) {                                                                    \
			for (ulong i = least; i < taps[k]; i++)                                            \
				RESIZE_ADD(size, k, i);                                                    \
			resize_store_##size(round(sum[k]), out + k * bands * sizeof(PIXEL), pitch, bands,  \
			                    many);                                                         \
		}                                                                                          \
	}
#define RESIZE_EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#define RESIZE_ADD(size, k, i)                                                                             \
	sum[k] = fma(vload##size(0, p[k] + (i) * (bands * RESIZE_ROWS)), (float##size)(w[k][2 + (i)]), sum[k])

RESIZE_PIXELS_OF(4, PIXEL_ROUND_4)
RESIZE_PIXELS_OF(16, PIXEL_ROUND)

kernel void resize_across(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint y = get_global_id(1) * RESIZE_ROWS;

	if (get_global_id(0) >= blocks || y >= rows)
		return;

	const uint2 span = points_span(samples, bands, blocks);
	const uint many = min(rows - y, (uint)RESIZE_ROWS);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	uint x = span.x;

#define RESIZE_AT(size, bands, many, count)                                                                \
	resize_pixels_##size(in, weights + (ulong)(entry + x) * words, words, place,                       \
	                     dst + dst_offset + (ulong)y * dst_pitch + x * bands * sizeof(PIXEL),          \
	                     dst_pitch, bands, many, count)
#define RESIZE_ROW(bands)                                                                                  \
	for (uint count; x < span.y; x += count) {                                                         \
		count = many == RESIZE_ROWS && x + RESIZE_PIXELS <= span.y ? RESIZE_PIXELS : 1;            \
		if (bands * RESIZE_ROWS > 4 && count > 1)                                                  \
			RESIZE_AT(16, bands, RESIZE_ROWS, RESIZE_PIXELS);                                  \
		else if (bands * RESIZE_ROWS > 4)                                                          \
			RESIZE_AT(16, bands, many, 1);                                                     \
		else if (count > 1)                                                                        \
			RESIZE_AT(4, bands, RESIZE_ROWS, RESIZE_PIXELS);                                   \
		else                                                                                       \
			RESIZE_AT(4, bands, many, 1);                                                      \
	}
	if (bands == 3) {
		RESIZE_ROW(3)
	} else if (bands == 4) {
		RESIZE_ROW(4)
	} else if (bands == 1) {
		RESIZE_ROW(1)
	} else {
		RESIZE_ROW(2)
	}
}
