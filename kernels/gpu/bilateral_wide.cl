/* gpu/bilateral_wide.cl: the bilateral filter, for a radius known to the compiler.
 *
 * out = c + sum of w * (p - c) / sum of w, over the p within RADIUS_X of c, with
 * w = exp2(space * (i² + j²) + range * e2), e2 being the squared difference summed over the colour
 * bands. ALPHA: the last band is alpha, and w * alpha takes w's place; it itself is filtered with w,
 * and colour is 0 where the sum of w * alpha is not above 0.
 *
 * A work-item makes BLOCK_X samples, whole pixels, of BLOCK_Y rows. It goes down its source rows;
 * each is loaded and converted once for all rows of the block. Only this loop is not unrolled; the
 * same taps lie in the circle for all work-items at once, so that the branches cost little. The
 * exponentials bound its speed: a multiprocessor makes 16 a cycle. */

#ifndef ALPHA
#define ALPHA 0
#endif

enum { PIXELS = BLOCK_X / BANDS, COLOURS = BANDS - ALPHA };

/* Sums of a pixel's window: the bands' differences, the weights, the weights times alpha. */
struct bilateral_sums {
	float band[BLOCK_Y][PIXELS * BANDS], weight[BLOCK_Y][PIXELS], alpha[BLOCK_Y][PIXELS];
};

/* Adds the tap i columns away, in a row with samples v, to the row of the block with samples c. */
FORCE_INLINE void bilateral_tap(float *band, float *weight, float *alpha, const float *c,
                                const float *v, int i, float space, float range)
{
#pragma unroll
	for (int p = 0; p < PIXELS; p++) {
		float difference[COLOURS], e2 = 0.0f, w;

#pragma unroll
		for (int b = 0; b < COLOURS; b++) {
			difference[b] = v[FIRST + (p + i) * BANDS + b] - c[p * BANDS + b];
			e2 = b == 0 ? difference[b] * difference[b]
			            : fma(difference[b], difference[b], e2);
		}
		w = fast_exp2(fma(e2, range, space));
		weight[p] += w;
		if (ALPHA) {
			w *= v[FIRST + (p + i) * BANDS + COLOURS];
			alpha[p] += w;
		}
#pragma unroll
		for (int b = 0; b < COLOURS; b++)
			band[p * BANDS + b] = fma(w, difference[b], band[p * BANDS + b]);
	}
}

FORCE_INLINE void bilateral_finish(float *result, const struct bilateral_sums *sums, int r,
                                   const float *c)
{
#pragma unroll
	for (int p = 0; p < PIXELS; p++) {
		const float total = ALPHA ? sums->alpha[r][p] : sums->weight[r][p];

#pragma unroll
		for (int b = 0; b < COLOURS; b++)
			result[p * BANDS + b] =
			    ALPHA && !(total > 0.0f)
			        ? 0.0f
			        : c[p * BANDS + b] + sums->band[r][p * BANDS + b] / total;
		if (ALPHA)
			result[p * BANDS + COLOURS] = total / sums->weight[r][p];
	}
}

FORCE_INLINE void bilateral_wide_block(const global uchar *in, uint src_pitch, global uchar *out,
                                       uint dst_pitch, uint x, uint width, uint height, float space,
                                       float range, const bool free)
{
	const int count = min((int)height, BLOCK_Y) + 2 * RADIUS_X;
	const global uchar *top = in - (long)RADIUS_X * (long)src_pitch;
	uint words[WINDOW];
	float centre[BLOCK_Y][BLOCK_X];
	struct bilateral_sums sums;

#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		if (free || (uint)r < height)
			window_load(words, in + (ulong)r * src_pitch, width, free);
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			centre[r][i] = window_float(words, FIRST + i);
			sums.band[r][i] = 0.0f;
			sums.weight[r][i / BANDS] = sums.alpha[r][i / BANDS] = 0.0f;
		}
	}
#pragma unroll 1
	for (int s = 0; s < count; s++) {
		float v[WINDOW * PER_WORD];

		window_load(words, top + (ulong)s * src_pitch, width, free);
#pragma unroll
		for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++)
			v[i] = window_float(words, i);
#pragma unroll
		for (int r = 0; r < BLOCK_Y; r++) {
			const int j = s - RADIUS_X - r;

#pragma unroll
			for (int i = -RADIUS_X; i <= RADIUS_X; i++)
				if (i * i + j * j <= RADIUS_X * RADIUS_X)
					bilateral_tap(sums.band[r], sums.weight[r], sums.alpha[r],
					              centre[r], v, i,
					              space * (float)(i * i + j * j), range);
		}
	}
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		float result[BLOCK_X];
		uint packed[MIDDLE];

		if (!free && (uint)r >= height)
			return;
		bilateral_finish(result, &sums, r, centre[r]);
		window_pack(packed, result);
		if (KEEP != 0) {
			window_load(words, in + (ulong)r * src_pitch, width, free);
			window_keep(packed, words, x);
		}
		window_store(packed, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL bilateral_wide(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha,
                          uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		bilateral_wide_block(in, src_pitch, out, dst_pitch, x, width, height, space, range,
		                     true);
	else
		bilateral_wide_block(in, src_pitch, out, dst_pitch, x, width, height, space, range,
		                     false);
}
