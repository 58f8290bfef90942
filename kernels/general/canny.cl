/* canny.cl: which pixels may be edges (Canny, "A Computational Approach to Edge Detection", 1986).
 *
 * canny: g, the gradient of Sobel's weights, is that of the colour with the largest |g|. out = full
 * scale where |g| > high, half where |g| > low, if |g| is a maximum across the edge; else 0. The
 * direction across is one of four: that of x if |gy| < tan(22.5°) |gx|, of y if |gy| > tan(67.5°) |gx|,
 * else a diagonal. |g| must be above the neighbour to the left (above) and not below that to the right
 * (below), or above both on a diagonal. So does OpenCV's Canny() with L2gradient, whose tan(22.5°), which
 * is 13573 / 32768, this is. Integers are compared exactly: bytes by squares that floats hold, others
 * by 64-bit integers. NaN is no edge, nor is what is beside it.
 *
 * A work-item makes a block of CANNY_ROWS rows. Down a column of vectors it makes the gradients of
 * each row once, at the 16 pixels and at their neighbours to both sides, and keeps those of three rows
 * in registers. */

/* Rows of a block: 4 more are read. */
#ifndef CANNY_ROWS
#define CANNY_ROWS 8
#endif

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
#define CANNY_LIMIT_uchar      float
#define CANNY_LIMIT_ushort     long
#define CANNY_LIMIT_float      float
/* tan(22.5°) is TAN / ONE. */
#define CANNY_TAN_uchar  0.414215087890625f
#define CANNY_TAN_ushort 13573
#define CANNY_TAN_float  0.414215087890625f
#define CANNY_ONE_uchar  1.0f
#define CANNY_ONE_ushort 32768
#define CANNY_ONE_float  1.0f

typedef PASTE(CANNY_NUMBERS_, PIXEL, ) canny_numbers;
typedef PASTE(CANNY_CONDITION_, PIXEL, ) canny_condition;
typedef PASTE(CANNY_LIMIT_, PIXEL, ) canny_limit;

#define CANNY_CONVERT PASTE(CANNY_CONVERT_, PIXEL, )
#define CANNY_TAN     ((canny_limit)PASTE(CANNY_TAN_, PIXEL, ))
#define CANNY_ONE     ((canny_limit)PASTE(CANNY_ONE_, PIXEL, ))

/* Gradients, and what their lengths are compared by. */
struct slopes {
	canny_numbers length, x, y;
};

/* Of one row: the slopes of 16 pixels, and the lengths beside them. */
struct slope_row {
	struct slopes here;
	canny_numbers left, right;
};

/* The first `width` of 16 samples of a band. */
FORCE_INLINE canny_numbers canny_load(source_row p, uint bands, uint width)
{
	PIXEL part[VECTOR];

	if (bands == 1 && width == VECTOR)
		return CANNY_CONVERT(vload16(0, p));
	for (uint i = 0; i < VECTOR; i++)
		part[i] = p[min(i, width - 1) * bands];
	return CANNY_CONVERT(vload16(0, part));
}

FORCE_INLINE canny_numbers canny_magnitude(canny_numbers v)
{
	return select(v, -v, v < 0);
}

/* Integers by the square; floats are scaled so that their squares neither overflow nor vanish. */
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

/* Of one band; p: the first pixel's sample. */
FORCE_INLINE struct slopes canny_slopes(source_row p, uint pitch, uint bands, uint width)
{
	const source_row above = (source_row)((const global uchar *)p - pitch);
	const source_row below = (source_row)((const global uchar *)p + pitch);
	const canny_numbers nw = canny_load(above - bands, bands, width);
	const canny_numbers ne = canny_load(above + bands, bands, width);
	const canny_numbers sw = canny_load(below - bands, bands, width);
	const canny_numbers se = canny_load(below + bands, bands, width);
	const canny_numbers across =
	    canny_load(p + bands, bands, width) - canny_load(p - bands, bands, width);
	const canny_numbers down =
	    canny_load(below, bands, width) - canny_load(above, bands, width);
	struct slopes s;

	s.x = ne - nw + (across + across) + (se - sw);
	s.y = sw - nw + (down + down) + (se - ne);
	s.length = canny_length(s.x, s.y);
	return s;
}

/* Of the bands that are not kept, the steepest. */
FORCE_INLINE struct slopes canny_steepest(source_row p, uint pitch, uint bands, uint keep, uint width)
{
	struct slopes best;
	bool first = true;

	if (bands == 1)
		return canny_slopes(p, pitch, 1, width);
	for (uint b = 0; b < bands; b++) {
		struct slopes s;

		if (keep >> b & 1)
			continue;
		s = canny_slopes(p + b, pitch, bands, width);
		if (first) {
			best = s;
			first = false;
			continue;
		}

		const canny_condition more = s.length > best.length;

		best.length = select(best.length, s.length, more);
		best.x = select(best.x, s.x, more);
		best.y = select(best.y, s.y, more);
	}
	return best;
}

FORCE_INLINE struct slope_row canny_row(source_row p, uint pitch, uint bands, uint keep, uint width)
{
	struct slope_row row;

	row.left = canny_steepest(p - bands, pitch, bands, keep, width).length;
	row.here = canny_steepest(p, pitch, bands, keep, width);
	row.right = canny_steepest(p + bands, pitch, bands, keep, width).length;
	return row;
}

/* Where the length is a maximum across the edge. */
FORCE_INLINE canny_condition canny_is_peak(const struct slope_row *above,
                                           const struct slope_row *row,
                                           const struct slope_row *below)
{
	const canny_numbers length = row->here.length;
	const canny_numbers x = canny_magnitude(row->here.x), y = canny_magnitude(row->here.y);
	const canny_condition flat = y * CANNY_ONE < x * CANNY_TAN;
	const canny_condition steep = (y - (x + x)) * CANNY_ONE > x * CANNY_TAN;
	const canny_condition rising = (row->here.x < 0) ^ (row->here.y < 0);
	canny_numbers first = select(above->left, above->right, rising);
	canny_numbers second = select(below->right, below->left, rising);

	first = select(select(first, above->here.length, steep), row->left, flat);
	second = select(select(second, below->here.length, steep), row->right, flat);
	return (length > first) & ((length > second) | ((flat | steep) & (length == second)));
}

/* Writes a result for each pixel to all bands that are not kept. */
FORCE_INLINE void canny_store(float16 v, source_row in, target_row out, uint bands, uint keep,
                              uint width)
{
	float each[VECTOR];

	if (bands == 1) {
		pixel_store(v, out, width);
		return;
	}
	vstore16(v, 0, each);
	for (uint i = 0; i < width; i++)
		for (uint b = 0; b < bands; b++)
			out[i * bands + b] =
			    keep >> b & 1 ? in[i * bands + b] : PIXEL_ROUND_1(each[i]);
}

kernel void canny(REGION_ARGUMENTS, canny_limit low, canny_limit high, float full, uint keep)
{
	const uint pixels = samples / bands, width = min(pixels, (uint)VECTOR);
	const uint2 span = block_span(pixels, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1) * CANNY_ROWS;
	const uint here = min(rows - y, (uint)CANNY_ROWS);

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width) * bands;
		struct slope_row above =
		    canny_row(SOURCE_ROW((long)y - 1) + at, src_pitch, bands, keep, width);
		struct slope_row row = canny_row(SOURCE_ROW(y) + at, src_pitch, bands, keep, width);

		for (uint r = y; r < y + here; r++) {
			const struct slope_row below =
			    canny_row(SOURCE_ROW(r + 1) + at, src_pitch, bands, keep, width);
			const canny_condition some =
			    canny_is_peak(&above, &row, &below) & (row.here.length > low);
			const canny_condition sure = some & (row.here.length > high);
			float16 v = select((float16)(0.0f), (float16)(0.5f * full),
			                   convert_int16(some));

			v = select(v, (float16)(full), convert_int16(sure));
			canny_store(v, SOURCE_ROW(r) + at, TARGET_ROW(r) + at, bands, keep, width);
			above = row;
			row = below;
		}
	}
}
