/* gpu/canny_ring.cl: which pixels of a gray image may be edges, from registers; see
 * general/canny.cl for the definition.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows, in one pass over rows: it makes each row's
 * difference across and smoothed row, from three of these the gradients of the middle one, and from
 * three rows of gradients the result; each at one more sample to both sides. All rows but the last
 * three are forgotten.
 *
 * Up to the gradients a part of a row is the bits of a float; or two byte samples, as halves in
 * units of 2^-24, with exact sums. */

#define CANNY_LENGTH_uchar  float
#define CANNY_LENGTH_ushort long
#define CANNY_LENGTH_float  float

typedef PASTE(CANNY_LENGTH_, PIXEL, ) canny_length;

enum { CANNY_WIDTH = BLOCK_X + 2, CANNY_PARTS = SIZE == 1 ? BLOCK_X / 2 + 2 : CANNY_WIDTH };

/* The unit of the squares of gradients of bytes. */
#define CANNY_UNIT (SIZE == 1 ? 0x1p-48f : 1.0f)

FORCE_INLINE uint part_subtract(uint a, uint b)
{
	return SIZE == 1 ? half2_sub(a, b) : as_uint(as_float(a) - as_float(b));
}

/* a + 2 b + c */
FORCE_INLINE uint part_smooth(uint a, uint b, uint c)
{
	if (SIZE == 1)
		return half2_fma(b, HALF2_SCALE(1), half2_add(a, c));
	return as_uint(fma(as_float(b), 2.0f, as_float(a) + as_float(c)));
}

/* Makes the differences and the smoothed row of a row of samples. */
FORCE_INLINE void canny_across(uint *difference, uint *line, const uint *words)
{
	uint pair[2 * WINDOW];

	if (SIZE == 1)
		window_pairs(pair, words);
#pragma unroll
	for (int k = 0; k < CANNY_PARTS; k++) {
		uint v[3];

#pragma unroll
		for (int i = 0; i < 3; i++)
			v[i] = SIZE == 1 ? window_pair(pair, FIRST + 2 * k - 3 + i)
			                 : as_uint(window_float(words, FIRST + k - 2 + i));
		difference[k] = part_subtract(v[2], v[0]);
		line[k] = part_smooth(v[0], v[1], v[2]);
	}
}

/* Makes the gradients of parts, the first at the sample before the block. */
FORCE_INLINE void canny_floats(float *v, const uint *parts)
{
#pragma unroll
	for (int k = 0; k < CANNY_PARTS; k++) {
		if (SIZE != 1) {
			v[k] = as_float(parts[k]);
			continue;
		}

		const float2 both = half2_float(parts[k]);

		if (k > 0)
			v[2 * k - 1] = both.x;
		if (k < CANNY_PARTS - 1)
			v[2 * k] = both.y;
	}
}

/* Integers compare by the square, which a float holds for bytes; floats are scaled so that their
 * squares neither overflow nor vanish. */
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

/* Tells whether a is less than tan(22.5°) b, which is 13573 / 32768: exactly, for integers. */
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

/* Tells whether a length is a maximum across the edge; the rows of lengths begin at its left
 * neighbour. Lengths of bytes are integers; an equal one is half below. */
FORCE_INLINE bool canny_is_peak(const canny_length *above, const canny_length *row,
                                const canny_length *below, float x, float y)
{
	const float ax = fabs(x), ay = fabs(y);
	const bool flat = canny_is_below(ay, ax), steep = canny_is_above(ay - 2.0f * ax, ax);
	const bool rising = SIZE == 1 ? x * y < 0.0f : (x < 0.0f) != (y < 0.0f);
	const canny_length nudge = (canny_length)(SIZE == 1 ? 0.5f * CANNY_UNIT : 0.0f);
	const canny_length up[3] = {above[0], above[1], above[2]};
	const canny_length down[3] = {below[0], below[1] - nudge, below[2]};
	const canny_length left = row[0], here = row[1], right = row[2] - nudge;
	const canny_length up_side = rising ? up[2] : up[0], down_side = rising ? down[0] : down[2];
	const canny_length up_any = steep ? up[1] : up_side, down_any = steep ? down[1] : down_side;
	const canny_length first = flat ? left : up_any, second = flat ? right : down_any;

	if (SIZE == 1)
		return here > fmax((float)first, (float)second);
	return here > first && (here > second || ((flat || steep) && here == second));
}

FORCE_INLINE void canny_ring_block(const global uchar *in, uint src_pitch, global uchar *out,
                                   uint dst_pitch, uint width, uint height, canny_length low,
                                   canny_length high, float full, const bool free)
{
	uint difference[3][CANNY_PARTS], line[3][CANNY_PARTS];
	float gx[2][CANNY_WIDTH], gy[2][CANNY_WIDTH];
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
		uint x[CANNY_PARTS], y[CANNY_PARTS], result[MIDDLE];
		float v[BLOCK_X];

		if (s >= count)
			return;
		rows_load(&rows, s + AHEAD, count, top, src_pitch, width, free);
		canny_across(difference[last], line[last], rows.words[s % (AHEAD + 1)]);
		if (s < 2)
			continue;
#pragma unroll
		for (int k = 0; k < CANNY_PARTS; k++) {
			x[k] = part_smooth(difference[first][k], difference[middle][k],
			                   difference[last][k]);
			y[k] = part_subtract(line[last][k], line[first][k]);
		}
		canny_floats(gx[s % 2], x);
		canny_floats(gy[s % 2], y);
#pragma unroll
		for (int i = 0; i < CANNY_WIDTH; i++)
			length[last][i] = canny_length_of(gx[s % 2][i], gy[s % 2][i]);
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
	if (SIZE == 1)
		low *= CANNY_UNIT, high *= CANNY_UNIT;
	if (window_free(in, src_pitch, out, dst_pitch, width, height))
		canny_ring_block(in, src_pitch, out, dst_pitch, width, height, low, high, full,
		                 true);
	else
		canny_ring_block(in, src_pitch, out, dst_pitch, width, height, low, high, full,
		                 false);
}
