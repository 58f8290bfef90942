/* matrix.cl: any matrix of odd sides.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * matrix: a work-item makes a block of MATRIX_ROWS rows. Each vector of the source is loaded and
 * converted once for all rows of the block; each adds it with its own weight (0 outside the row's
 * window). The products of one source row are summed by themselves, so that rounding errors grow
 * with width + height and not with their product. weights: MATRIX_ROWS - 1 rows of zeros, the
 * matrix, MATRIX_ROWS - 1 rows of zeros.
 *
 * matrix_compensated: for matrices whose terms are so large, against the result's last place, that
 * float sums could be wrong by more than 1. Weights and sums are pairs of floats (Dekker, "A
 * floating-point technique for extending the available precision", 1971), products exact by fma.
 * One row a work-item. weights: pairs of leading part and remainder. alpha: the last of 2 or 4
 * bands weighs the others. The largest weight would multiply the error of a product of colour and
 * alpha rounded to one float, so the multiplication and the division are of pairs too, and done
 * here. Colour is 0 if alpha comes to 0 or less. */

/* Rows of a block: conversions saved against products with 0. */
#ifndef MATRIX_ROWS
#define MATRIX_ROWS 4
#endif

FORCE_INLINE void matrix_vector(source_row p, ulong pitch, uint count, uint bands, uint taps,
                                uint height, constant float *weights, uint width, float16 total[MATRIX_ROWS])
{
#pragma unroll
	for (int r = 0; r < MATRIX_ROWS; r++)
		total[r] = 0.0f;
	for (uint j = 0; j < count; j++) {
		float16 sum[MATRIX_ROWS];

#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			sum[r] = 0.0f;
		for (uint i = 0; i < taps; i++) {
			const float16 v = pixel_load(p + i * bands, width);

#pragma unroll
			for (int r = 0; r < MATRIX_ROWS; r++)
				if (WINDOW_HAS((int)j - r, height))
					sum[r] = fma(v, (float16)(weights[(j + MATRIX_ROWS - 1 - r) * taps + i]),
					             sum[r]);
		}
#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			total[r] += sum[r];
		p = (source_row)((const global uchar *)p + pitch);
	}
}

FORCE_INLINE float16 matrix_finish(float16 result, source_row centre, uint x, uint bands,
                                   uint keep, uint width)
{
	if (!keep)
		return result;
	return select(result, pixel_load(centre, width), band_lanes(x, bands, keep));
}

FORCE_INLINE void matrix_block(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                               float offset, uint keep, uint width)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1) * MATRIX_ROWS;
	const uint here = min(rows - y, (uint)MATRIX_ROWS);

	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		float16 total[MATRIX_ROWS];

		matrix_vector(SOURCE_ROW((long)y - ry) + at - (long)(rx * bands), src_pitch,
		              here + 2 * ry, bands, 2 * rx + 1, 2 * ry + 1, weights, width, total);
#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			if (r < here)
				pixel_store(matrix_finish(total[r] + offset, SOURCE_ROW(y + r) + at,
				                          at, bands, keep, width),
				            TARGET_ROW(y + r) + at, width);
	}
}

kernel void matrix(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                   uint keep)
{
	if (get_global_id(0) >= blocks)
		return;
	if (samples >= VECTOR)
		matrix_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		             bands, blocks, weights, rx, ry, offset, keep, VECTOR);
	else
		matrix_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		             bands, blocks, weights, rx, ry, offset, keep, samples);
}

/* A sum as the pair high + low. */
struct pair {
	float16 high, low;
};

/* Adds weight * v, the weight being high + low. */
FORCE_INLINE struct pair pair_add(struct pair sum, float high, float low, float16 v)
{
#pragma OPENCL FP_CONTRACT OFF
	const float16 product = v * high;
	const float16 error = fma(v, (float16)(high), -product);
	const float16 next = sum.high + product;
	const float16 shift = next - sum.high;
	const float16 lost = (sum.high - (next - shift)) + (product - shift);

	sum.high = next;
	sum.low += lost + fma(v, (float16)(low), error);
	return sum;
}

/* Adds weight * v * alpha, but weight * v to the alphas (lanes `is_alpha`) themselves. */
FORCE_INLINE struct pair pair_add_weighted(struct pair sum, float high, float low, float16 v,
                                           uint bands, int16 is_alpha)
{
#pragma OPENCL FP_CONTRACT OFF
	const float16 factor = select(alpha_spread(v, bands), (float16)(1.0f), is_alpha);
	const float16 product = v * factor;

	sum = pair_add(sum, high, low, product);
	sum.low = fma(fma(v, factor, -product), (float16)(high), sum.low);
	return sum;
}

/* Makes the low part smaller than the high one's last place. */
FORCE_INLINE struct pair pair_normal(struct pair sum)
{
#pragma OPENCL FP_CONTRACT OFF
	const float16 high = sum.high + sum.low;
	const float16 shift = high - sum.high;

	sum.low = (sum.high - (high - shift)) + (sum.low - shift);
	sum.high = high;
	return sum;
}

/* Divides sums of colour * alpha by those of alpha, which stay. */
FORCE_INLINE float16 pair_divide(struct pair sum, float offset, float offset_low, uint bands,
                                 int16 is_alpha)
{
#pragma OPENCL FP_CONTRACT OFF
	const struct pair s = pair_normal(sum);
	const float16 high = alpha_spread(s.high, bands), low = alpha_spread(s.low, bands);
	const float16 quotient = s.high / high;
	const float16 rest = fma(-quotient, high, s.high) + (s.low - quotient * low);
	const float16 colour = quotient + offset + (rest / high + offset_low);

	return select(select((float16)(0.0f), colour, high > 0.0f), s.high, is_alpha);
}

FORCE_INLINE void matrix_compensated_block(REGION_ARGUMENTS, constant float *weights, uint rx,
                                           uint ry, float offset, float offset_low,
                                           uint keep, uint alpha, uint width)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1), taps = 2 * rx + 1;

	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const int16 is_alpha = band_lanes(at, bands, 1u << (bands - 1));
		struct pair sum = {alpha ? 0.0f : offset, alpha ? 0.0f : offset_low};
		float16 result;

		for (uint j = 0; j < 2 * ry + 1; j++) {
			const source_row p = SOURCE_ROW((long)y + j - ry) + at - (long)(rx * bands);

			for (uint i = 0; i < taps; i++) {
				constant float *weight = weights + 2 * (j * taps + i);
				const float16 v = pixel_load(p + i * bands, width);

				if (alpha)
					sum = pair_add_weighted(sum, weight[0], weight[1], v, bands,
					                        is_alpha);
				else
					sum = pair_add(sum, weight[0], weight[1], v);
			}
		}
		result = alpha ? pair_divide(sum, offset, offset_low, bands, is_alpha)
		               : sum.high + sum.low;
		pixel_store(matrix_finish(result, SOURCE_ROW(y) + at, at, bands, keep, width),
		            TARGET_ROW(y) + at, width);
	}
}

kernel void matrix_compensated(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                               float offset, float offset_low, uint keep, uint alpha)
{
	if (get_global_id(0) >= blocks)
		return;
	if (samples >= VECTOR)
		matrix_compensated_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch,
		                         samples, rows, bands, blocks, weights, rx, ry, offset,
		                         offset_low, keep, alpha, VECTOR);
	else
		matrix_compensated_block(src, src_offset, src_pitch, dst, dst_offset, dst_pitch,
		                         samples, rows, bands, blocks, weights, rx, ry, offset,
		                         offset_low, keep, alpha, samples);
}
