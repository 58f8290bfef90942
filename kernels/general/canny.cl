/* canny.cl: which pixels may be edges (Canny, "A Computational Approach to Edge Detection", 1986).
 *
 * canny: g, the gradient of Sobel's weights, is that of the colour with the largest |g|. out = full
 * scale where |g| > high, half where |g| > low, if |g| is a maximum across the edge; else 0. The
 * direction across is one of four: that of x if |gy| < tan(22.5°) |gx|, of y if |gy| > tan(67.5°)
 * |gx|, else a diagonal. |g| must be above the neighbour to the left (above) and not below that to
 * the right (below), or above both on a diagonal. OpenCV's Canny() with L2gradient does the same;
 * its tan(22.5°), 13573 / 32768, is used here. Integers are compared exactly: bytes by squares that
 * floats hold, others by 64-bit integers. NaN is no edge, nor are its neighbours.
 *
 * A work-item makes a block of CANNY_ROWS rows, in chunks of CANNY_PIXELS. It makes the gradients
 * of each row of a chunk once, at its pixels and those beside them, and a row of the result from
 * three rows of gradients in private memory. */

/* Rows of a block: 4 more are read. */
#ifndef CANNY_ROWS
#define CANNY_ROWS 8
#endif

enum {
	CANNY_PIXELS = 126,
	CANNY_SPAN = CANNY_PIXELS + 2, /* a multiple of VECTOR */
	CANNY_BANDS = 4
};

/* 16 numbers that hold squares of gradients exactly, or gradients; conditions on them. */
#define CANNY_NUMBERS_uchar    float16
#define CANNY_NUMBERS_ushort   long16
#define CANNY_NUMBERS_float    float16
#define CANNY_CONDITION_uchar  int16
#define CANNY_CONDITION_ushort long16
#define CANNY_CONDITION_float  int16
#define CANNY_CONVERT_uchar    convert_float16
#define CANNY_CONVERT_ushort   convert_long16
#define CANNY_CONVERT_float    convert_float16
#define CANNY_NUMBER_uchar     float
#define CANNY_NUMBER_ushort    long
#define CANNY_NUMBER_float     float
/* tan(22.5°) is TAN / ONE. */
#define CANNY_TAN_uchar  0.414215087890625f
#define CANNY_TAN_ushort 13573
#define CANNY_TAN_float  0.414215087890625f
#define CANNY_ONE_uchar  1.0f
#define CANNY_ONE_ushort 32768
#define CANNY_ONE_float  1.0f

typedef PASTE(CANNY_NUMBERS_, PIXEL, ) canny_numbers;
typedef PASTE(CANNY_CONDITION_, PIXEL, ) canny_condition;
typedef PASTE(CANNY_NUMBER_, PIXEL, ) canny_number;

#define CANNY_CONVERT PASTE(CANNY_CONVERT_, PIXEL, )
#define CANNY_TAN     ((canny_number)PASTE(CANNY_TAN_, PIXEL, ))
#define CANNY_ONE     ((canny_number)PASTE(CANNY_ONE_, PIXEL, ))

/* Gradients of a row, and the numbers that compare their lengths, from the pixel before a chunk's
 * first to the pixel after its last. */
struct slopes {
	canny_number length[CANNY_SPAN], x[CANNY_SPAN], y[CANNY_SPAN];
};

/* Loads the first `width` of 16 samples. */
FORCE_INLINE canny_numbers canny_load(source_row p, uint width)
{
	return CANNY_CONVERT(pixel_load(p, width));
}

FORCE_INLINE canny_numbers canny_magnitude(canny_numbers v)
{
	return select(v, -v, v < 0);
}

/* Integers compare by the square; floats are scaled so that their squares neither overflow nor
 * vanish. */
FORCE_INLINE canny_numbers canny_length(canny_numbers x, canny_numbers y)
{
#ifdef PIXEL_MAX
	return x * x + y * y;
#else
	const float16 a = fabs(x), b = fabs(y);
	const int16 swap = b > a;
	const float16 large = select(a, b, swap);
	const float16 share = select(b, a, swap) / fmax(large, (float16)(FLT_MIN));

	return large * sqrt(fma(share, share, (float16)(1.0f)));
#endif
}

/* Makes the gradients of samples in a row, each band by itself. */
FORCE_INLINE void canny_slopes(source_row p, uint pitch, uint bands, uint count, canny_number *length,
                               canny_number *x, canny_number *y)
{
	const source_row above = (source_row)((const global uchar *)p - pitch);
	const source_row below = (source_row)((const global uchar *)p + pitch);
	const uint width = min(count, (uint)VECTOR);

	for (uint i = 0; i < count; i += VECTOR) {
		const uint at = min(i, count - width);
		const canny_numbers nw = canny_load(above + at - bands, width);
		const canny_numbers ne = canny_load(above + at + bands, width);
		const canny_numbers sw = canny_load(below + at - bands, width);
		const canny_numbers se = canny_load(below + at + bands, width);
		const canny_numbers across =
		    canny_load(p + at + bands, width) - canny_load(p + at - bands, width);
		const canny_numbers down =
		    canny_load(below + at, width) - canny_load(above + at, width);
		const canny_numbers gx = ne - nw + (across + across) + (se - sw);
		const canny_numbers gy = sw - nw + (down + down) + (se - ne);

		vstore16(canny_length(gx, gy), 0, length + at);
		vstore16(gx, 0, x + at);
		vstore16(gy, 0, y + at);
	}
}

/* Picks the steepest of the bands that are not kept. p: the first pixel's first sample. */
FORCE_INLINE void canny_row(struct slopes *row, source_row p, uint pitch, uint bands, uint keep,
                            uint count)
{
	canny_number length[CANNY_SPAN * CANNY_BANDS], x[CANNY_SPAN * CANNY_BANDS],
	    y[CANNY_SPAN * CANNY_BANDS];
	const bool one = bands == 1;
	uint first = 0;

	canny_slopes(p, pitch, bands, count * bands, one ? row->length : length, one ? row->x : x,
	             one ? row->y : y);
	if (one)
		return;
	while (keep >> first & 1)
		first++;
	for (uint i = 0; i < count; i++) {
		uint best = i * bands + first;

		for (uint b = first + 1; b < bands; b++) {
			const uint next = i * bands + b;

			best = (length[next] > length[best]) & ~(keep >> b) & 1 ? next : best;
		}
		row->length[i] = length[best];
		row->x[i] = x[best];
		row->y[i] = y[best];
	}
}

/* Tells whether a length is a maximum across the edge, for pixels from one on. */
FORCE_INLINE canny_condition canny_is_peak(const struct slopes *above, const struct slopes *row,
                                           const struct slopes *below, uint at)
{
	const canny_number *up = above->length + at, *here = row->length + at,
			   *down = below->length + at;
	const canny_numbers gx = vload16(0, row->x + at + 1), gy = vload16(0, row->y + at + 1);
	const canny_numbers length = vload16(0, here + 1);
	const canny_numbers x = canny_magnitude(gx), y = canny_magnitude(gy);
	const canny_condition flat = y * CANNY_ONE < x * CANNY_TAN;
	const canny_condition steep = (y - (x + x)) * CANNY_ONE > x * CANNY_TAN;
	const canny_condition rising = (gx < 0) ^ (gy < 0);
	canny_numbers first = select(vload16(0, up), vload16(0, up + 2), rising);
	canny_numbers second = select(vload16(0, down + 2), vload16(0, down), rising);

	first = select(select(first, vload16(0, up + 1), steep), vload16(0, here), flat);
	second = select(select(second, vload16(0, down + 1), steep), vload16(0, here + 2), flat);
	return (length > first) & ((length > second) | ((flat | steep) & (length == second)));
}

/* Writes a result for each pixel to all bands that are not kept. */
FORCE_INLINE void canny_store(float16 v, source_row in, target_row out, uint bands, uint keep,
                              uint width)
{
	PIXEL each[VECTOR];

	if (bands == 1) {
		pixel_store(v, out, width);
		return;
	}
	if (!keep && width == VECTOR) {
		pixel_spread(PIXEL_ROUND(v), out, bands);
		return;
	}
	vstore16(PIXEL_ROUND(v), 0, each);
	for (uint b = 0; b < bands; b++)
		for (uint i = 0; i < width; i++)
			out[i * bands + b] = keep >> b & 1 ? in[i * bands + b] : each[i];
}

/* Makes `count` pixels of a row. */
FORCE_INLINE void canny_result(const struct slopes *above, const struct slopes *row,
                               const struct slopes *below, source_row in, target_row out, uint bands,
                               uint pixels, canny_number low, canny_number high, float full, uint keep)
{
	const uint width = min(pixels, (uint)VECTOR);

	for (uint i = 0; i < pixels; i += VECTOR) {
		const uint at = min(i, pixels - width);
		const canny_numbers length = vload16(0, row->length + at + 1);
		const canny_condition some = canny_is_peak(above, row, below, at) & (length > low);
		float16 v = select((float16)(0.0f), (float16)(0.5f * full), convert_int16(some));

		v = select(v, (float16)(full), convert_int16(some & (length > high)));
		canny_store(v, in + at * bands, out + at * bands, bands, keep, width);
	}
}

/* For narrow rows more is loaded than there is. */
FORCE_INLINE void canny_clear(struct slopes ring[3])
{
	for (uint r = 0; r < 3; r++)
		for (uint i = 0; i < VECTOR + 2; i++)
			ring[r].length[i] = ring[r].x[i] = ring[r].y[i] = 0;
}

kernel void canny(REGION_ARGUMENTS, canny_number low, canny_number high, float full, uint keep)
{
	const uint2 span =
	    block_span(samples / bands, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1) * CANNY_ROWS, end = min(rows, y + CANNY_ROWS);
	struct slopes ring[3];

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	if (samples / bands < VECTOR)
		canny_clear(ring);
	for (uint x = span.x; x < span.y; x += CANNY_PIXELS) {
		const uint pixels = min(span.y - x, (uint)CANNY_PIXELS), at = x * bands;

		/* The first two rows only begin. */
		for (uint r = 0; r < end - y + 2; r++) {
			const uint done = y + r - 2;

			canny_row(&ring[r % 3], SOURCE_ROW((long)y + r - 1) + at - bands, src_pitch,
			          bands, keep, pixels + 2);
			if (r >= 2)
				canny_result(&ring[(r + 1) % 3], &ring[(r + 2) % 3], &ring[r % 3],
				             SOURCE_ROW(done) + at, TARGET_ROW(done) + at, bands,
				             pixels, low, high, full, keep);
		}
	}
}
