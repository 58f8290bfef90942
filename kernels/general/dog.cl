/* dog.cl: the difference of two Gaussians.
 *
 * out = blur1 - blur2 + offset, with blur = sum over i, j of g[i] * g[j] * in(x + i - r, y + j - r)
 *
 * A work-item makes a block of DOG_ROWS rows, half of them at a time. First down: each vector of the
 * source is loaded and converted once for all rows of the half and both Gaussians. Their sums go to
 * local memory, r pixels wider than the block on both sides, those of the second below those of the
 * first; then across, from there. The group is one work-item, so there is no barrier; the host gives
 * local memory for DOG_ROWS rows and sizes the blocks so that they fit.
 *
 * weights: the first Gaussian, then the second, each of 2 r + 1; the narrower ends in zeros.
 *
 * Sums of many terms are taken in two levels, as in separable.cl. */

/* Rows of a block, even. */
#ifndef DOG_ROWS
#define DOG_ROWS 8
#endif
#if DOG_ROWS % 2
#error "half of the rows at a time"
#endif

/* Terms of a sum that are added directly; above that, partial sums. */
#ifndef DOG_TERMS
#define DOG_TERMS 32
#endif

enum { DOG_HALF = DOG_ROWS / 2 };

FLOAT_ACCESS(scratch_load, scratch_store, local)

/* Adds the taps [first, end) of all rows of the half, from the `count` source rows from p on, to
 * the sums of both Gaussians. Row r has its first tap on the r-th source row; rows outside its
 * window are not read. */
FORCE_INLINE void dog_add_taps(float16 sum1[DOG_HALF], float16 sum2[DOG_HALF],
                               const global uchar *p, uint pitch, uint count, uint first, uint end,
                               constant float *weights, uint taps, uint width)
{
	for (uint j = first; j < min(count, end + DOG_HALF - 1); j++) {
		const float16 v = pixel_load((source_row)(p + (ulong)j * pitch), width);

#pragma unroll
		for (int r = 0; r < DOG_HALF; r++) {
			const uint tap = j - r;

			if (tap - first < end - first) {
				sum1[r] = fma(v, (float16)(weights[tap]), sum1[r]);
				sum2[r] = fma(v, (float16)(weights[taps + tap]), sum2[r]);
			}
		}
	}
}

/* Sums one vector of columns for all rows of the half. p: its first source row, of `count`. Partial
 * sums have the same taps in all rows, wherever a row is in its block. */
FORCE_INLINE void dog_down(const global uchar *p, uint pitch, uint count, constant float *weights,
                           uint taps, uint width, local float *scratch, uint stride)
{
	float16 total1[DOG_HALF], total2[DOG_HALF];

#pragma unroll
	for (int r = 0; r < DOG_HALF; r++)
		total1[r] = total2[r] = 0.0f;
	for (uint first = 0; first < taps; first += DOG_TERMS) {
		float16 sum1[DOG_HALF], sum2[DOG_HALF];

#pragma unroll
		for (int r = 0; r < DOG_HALF; r++)
			sum1[r] = sum2[r] = 0.0f;
		dog_add_taps(sum1, sum2, p, pitch, count, first, min(taps, first + DOG_TERMS),
		             weights, taps, width);
#pragma unroll
		for (int r = 0; r < DOG_HALF; r++) {
			total1[r] += sum1[r];
			total2[r] += sum2[r];
		}
	}
#pragma unroll
	for (int r = 0; r < DOG_HALF; r++) {
		scratch_store(total1[r], scratch + r * stride, width);
		scratch_store(total2[r], scratch + (DOG_HALF + r) * stride, width);
	}
}

/* Sums one vector across; p is its first tap. */
FORCE_INLINE float16 dog_across(const local float *p, uint bands, uint taps,
                                constant float *weights, uint width)
{
	float16 total = 0.0f;

	for (uint first = 0; first < taps; first += DOG_TERMS) {
		const uint end = min(taps, first + DOG_TERMS);
		float16 sum = 0.0f;

		for (uint i = first; i < end; i++)
			sum = fma(scratch_load(p + i * bands, width), (float16)(weights[i]), sum);
		total += sum;
	}
	return total;
}

/* Makes row y of the target, samples [span.x, span.y); p: the first sums of the first Gaussian. */
FORCE_INLINE void dog_row(const local float *p, uint2 span, source_row in, target_row out,
                          uint bands, uint taps, constant float *weights, float offset, uint keep,
                          uint stride, uint width)
{
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const local float *sums = p + (at - span.x);
		float16 result = dog_across(sums, bands, taps, weights, width) -
		                 dog_across(sums + DOG_HALF * stride, bands, taps, weights + taps,
		                            width) +
		                 offset;

		if (keep)
			result = select(result, pixel_load(in + at, width),
			                band_lanes(at, bands, keep));
		pixel_store(result, out + at, width);
	}
}

kernel void dog(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset, uint keep,
                local float *scratch)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint columns = span.y - span.x + 2 * rx * bands, taps = 2 * rx + 1;
	const uint stride = (columns + VECTOR - 1) & ~15u;
	const uint width = min(columns, (uint)VECTOR);
	const uint first = get_global_id(1) * DOG_ROWS, end = min(rows, first + DOG_ROWS);

	for (uint y = first; y < end; y += DOG_HALF) {
		const uint here = min(end - y, (uint)DOG_HALF);
		const global uchar *top = (const global uchar *)(SOURCE_ROW((long)y - ry) + span.x) -
		                          (ulong)rx * bands * sizeof(PIXEL);

		for (uint x = 0; x < columns; x += VECTOR) {
			const uint at = min(x, columns - width);

			if (width == VECTOR)
				dog_down(top + at * sizeof(PIXEL), src_pitch, here + 2 * ry, weights,
				         taps, VECTOR, scratch + at, stride);
			else
				dog_down(top, src_pitch, here + 2 * ry, weights, taps, width, scratch,
				         stride);
		}
		for (uint r = 0; r < here; r++) {
			const local float *p = scratch + r * stride;

			if (samples >= VECTOR)
				dog_row(p, span, SOURCE_ROW(y + r), TARGET_ROW(y + r), bands, taps,
				        weights, offset, keep, stride, VECTOR);
			else
				dog_row(p, span, SOURCE_ROW(y + r), TARGET_ROW(y + r), bands, taps,
				        weights, offset, keep, stride, samples);
		}
	}
}
