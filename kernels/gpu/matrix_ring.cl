/* gpu/matrix_ring.cl: any matrix of odd sides, in floats, from registers.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows. Each source row's window is converted to
 * floats once, for all rows of the block whose windows it is in. Small matrices are unrolled; of
 * others only the rows of the block and the columns of the matrix are. Any type, any weights
 * (PLAIN). */

/* Matrices of more weights than this are not unrolled; each of their rows is summed by itself, so
 * that rounding errors grow with width + height and not with their product. */
#ifndef MATRIX_UNROLLED
#define MATRIX_UNROLLED 81
#endif

enum { LARGE = (2 * RADIUS_X + 1) * (2 * RADIUS_Y + 1) > MATRIX_UNROLLED };

/* Adds source row s of the block's, the first being 0, to the block's rows. */
FORCE_INLINE void matrix_ring_row(float sum[BLOCK_Y][BLOCK_X], int s, const global uchar *p,
                                  uint width, constant float *weights, const bool free)
{
	uint words[WINDOW];
	float v[WINDOW * PER_WORD];

	window_load(words, p, width, free);
#pragma unroll
	for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++)
		v[i] = window_float(words, i);
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		if ((uint)(s - r) >= TAPS_Y)
			continue;

		constant float *row = weights + (s - r) * TAPS_X;
		float part[BLOCK_X];

#pragma unroll
		for (int k = 0; k < TAPS_X; k++) {
			const float weight = row[k];

#pragma unroll
			for (int i = 0; i < BLOCK_X; i++) {
				const float sample = v[FIRST - REACH + i + k * BANDS];

				if (!LARGE)
					sum[r][i] = fma(sample, weight, sum[r][i]);
				else
					part[i] =
					    k == 0 ? sample * weight : fma(sample, weight, part[i]);
			}
		}
		if (LARGE) {
#pragma unroll
			for (int i = 0; i < BLOCK_X; i++)
				sum[r][i] += part[i];
		}
	}
}

FORCE_INLINE void matrix_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                    uint dst_pitch, uint x, uint width, uint height,
                                    constant float *weights, float offset, const bool free)
{
	const int count = min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const global uchar *p = in - (long)RADIUS_Y * (long)src_pitch;
	float sum[BLOCK_Y][BLOCK_X];

#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++)
			sum[r][i] = offset;
	if (LARGE) {
#pragma unroll 1
		for (int s = 0; s < count; s++)
			matrix_ring_row(sum, s, p + (ulong)s * src_pitch, width, weights, free);
	} else {
#pragma unroll
		for (int s = 0; s < BLOCK_Y + 2 * RADIUS_Y; s++)
			if (free || s < count)
				matrix_ring_row(sum, s, p + (ulong)s * src_pitch, width, weights,
				                free);
	}
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++) {
		uint result[MIDDLE], words[WINDOW];

		if (!free && (uint)r >= height)
			return;
		window_pack(result, sum[r]);
		if (KEEP != 0) {
			window_load(words, in + (ulong)r * src_pitch, width, free);
			window_keep(result, words, x);
		}
		window_store(result, out + (ulong)r * dst_pitch, width, free);
	}
}

GPU_KERNEL matrix_ring(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                       uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		matrix_ring_block(in, src_pitch, out, dst_pitch, x, width, height, weights, offset,
		                  true);
	else
		matrix_ring_block(in, src_pitch, out, dst_pitch, x, width, height, weights, offset,
		                  false);
}
