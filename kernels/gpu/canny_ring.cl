/* gpu/canny_ring.cl: which pixels of a gray image may be edges, from registers; see general/canny.cl for
 * what it computes.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows, in one pass over rows: of each row it makes the
 * difference across and the smoothed row, of three of these the gradients of the middle one, and of
 * three rows of gradients the result; each at one more sample to both sides. All rows but the last three
 * are forgotten. */

#define CANNY_LENGTH_uchar  float
#define CANNY_LENGTH_ushort long
#define CANNY_LENGTH_float  float

typedef PASTE(CANNY_LENGTH_, PIXEL, ) canny_length;

enum { CANNY_WIDTH = BLOCK_X + 2 };

/* Integers by the square, which a float holds of bytes; floats are scaled so that their squares neither
 * overflow nor vanish. */
FORCE_INLINE canny_length canny_length_of(float x, float y)
{
#ifdef PIXEL_MAX
	if (SIZE == 1)
		return fma(x, x, y * y);
	return (canny_length)x * (canny_length)x + (canny_length)y * (canny_length)y;
#else
	const bool swap = fabs(y) > fabs(x);
	const float large = fabs(swap ? y : x);
	const float share = fabs(swap ? x : y) / fmax(large, FLT_MIN);

	return large * sqrt(fma(share, share, 1.0f));
#endif
}

/* Whether a is less than tan(22.5°) b, which is 13573 / 32768: exactly, for integers. */
FORCE_INLINE bool canny_is_below(float a, float b)
{
	if (SIZE == 2)
		return (long)a * 32768 < (long)b * 13573;
	return a < b * 0.414215087890625f;
}

FORCE_INLINE bool canny_is_above(float a, float b)
{
	if (SIZE == 2)
		return (long)a * 32768 > (long)b * 13573;
	return a > b * 0.414215087890625f;
}

/* Whether a length is a maximum across the edge; the rows of lengths begin at its left neighbour. */
FORCE_INLINE bool canny_is_peak(const canny_length *above, const canny_length *row,
                                const canny_length *below, float x, float y)
{
	const float ax = fabs(x), ay = fabs(y);
	const bool flat = canny_is_below(ay, ax), steep = canny_is_above(ay - 2.0f * ax, ax);
	const bool rising = (x < 0.0f) != (y < 0.0f);
	const canny_length first = flat     ? row[0]
	                           : steep  ? above[1]
	                           : rising ? above[2]
	                                    : above[0];
	const canny_length second = flat     ? row[2]
	                            : steep  ? below[1]
	                            : rising ? below[0]
	                                     : below[2];

	return row[1] > first && (row[1] > second || ((flat || steep) && row[1] == second));
}

FORCE_INLINE void canny_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                   uint dst_pitch, uint width, uint height, canny_length low,
                                   canny_length high, float full, const bool free)
{
	float difference[3][CANNY_WIDTH], line[3][CANNY_WIDTH], gx[2][CANNY_WIDTH],
	    gy[2][CANNY_WIDTH];
	canny_length length[3][CANNY_WIDTH];
	const int count = free ? ROWS_IN : min((int)height + 4, (int)ROWS_IN);
	const global uchar *top = in - 2 * (long)src_pitch;
	struct rows rows;

#pragma unroll
	for (int s = 0; s < AHEAD; s++)
		rows_load(&rows, s, count, top, src_pitch, width, free);

#pragma unroll
	for (int s = 0; s < ROWS_IN; s++) {
		const int last = s % 3, middle = (s + 2) % 3, first = (s + 1) % 3;
		const uint *words;
		uint result[MIDDLE];
		float v[BLOCK_X];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
		words = rows.words[s % (AHEAD + 1)];
#pragma unroll
		for (int i = 0; i < CANNY_WIDTH; i++) {
			const float left = window_float(words, FIRST + i - 2);
			const float right = window_float(words, FIRST + i);

			difference[last][i] = right - left;
			line[last][i] =
			    fma(window_float(words, FIRST + i - 1), 2.0f, left + right);
		}
		if (s < 2)
			continue;
#pragma unroll
		for (int i = 0; i < CANNY_WIDTH; i++) {
			gx[s % 2][i] = fma(difference[middle][i], 2.0f,
			                   difference[first][i] + difference[last][i]);
			gy[s % 2][i] = line[last][i] - line[first][i];
			length[last][i] = canny_length_of(gx[s % 2][i], gy[s % 2][i]);
		}
		if (s < 4)
			continue;
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++) {
			const bool peak =
			    canny_is_peak(length[first] + i, length[middle] + i, length[last] + i,
			                  gx[(s + 1) % 2][i + 1], gy[(s + 1) % 2][i + 1]);
			const canny_length here = length[middle][i + 1];

			v[i] = !(peak && here > low) ? 0.0f : here > high ? full : 0.5f * full;
		}
		window_pack(result, v);
		window_store(result, out + (ulong)(s - 4) * dst_pitch, width, free);
	}
}

GPU_KERNEL canny_ring(REGION_ARGUMENTS, canny_length low, canny_length high, float full, uint keep)
{
	BLOCK_PLACE
	if (width == 0 || height == 0)
		return;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		canny_ring_block(in, src_pitch, out, dst_pitch, width, height, low, high, full,
		                 true);
	else
		canny_ring_block(in, src_pitch, out, dst_pitch, width, height, low, high, full,
		                 false);
}
