/* canny_packed.cl: which pixels of bytes may be edges, for CPUs; see general/canny.cl for the
 * definition.
 *
 * A work-item makes a block of BLOCK_Y rows, in chunks of CANNY_PIXELS. It makes each source row's
 * differences across and smoothed samples once, in 16-bit lanes, bands interleaved. Gradients come
 * from three of these rows; they are separated into bands, and each pixel keeps the steepest. Three
 * rows of gradients make a row of the result. All rows are in private memory, and all is exact:
 * squares are of 32 bits.
 *
 * At least 16 pixels a row. */

enum {
	CANNY_PIXELS = 128,
	CANNY_STEP = 16,
	CANNY_SPAN = CANNY_PIXELS + 2,
	CANNY_SAMPLES = CANNY_SPAN * BANDS
};

/* The samples of half a step; these and other vectors anywhere in memory. */
typedef short half_step __attribute__((ext_vector_type(8 * BANDS)));
typedef half_step half_anywhere __attribute__((aligned(2)));
typedef short16 shorts_anywhere __attribute__((aligned(2)));
typedef int16 ints_anywhere __attribute__((aligned(4)));
typedef uchar16 bytes_anywhere __attribute__((aligned(1)));

/* One source row's contribution, from the pixel before a chunk's first to the pixel after its
 * last. */
struct line {
	short across[CANNY_SAMPLES], smooth[CANNY_SAMPLES];
};

/* Gradients of a row of pixels, and the squares of their lengths. */
struct slopes {
	int square[CANNY_SPAN];
	short x[CANNY_SPAN], y[CANNY_SPAN];
};

#define AT(type, p)     (*(const private type *)(p))
#define PUT(type, v, p) (*(private type *)(p) = (v))

FORCE_INLINE short16 canny_load(const global uchar *p)
{
	return convert_short16(*(const global bytes_anywhere *)p);
}

FORCE_INLINE void canny_line(struct line *line, const global uchar *p, uint count)
{
	for (uint i = 0; i < count; i += CANNY_STEP) {
		const uint at = min(i, count - CANNY_STEP);
		const short16 left = canny_load(p + at - BANDS), centre = canny_load(p + at),
		              right = canny_load(p + at + BANDS);

		PUT(shorts_anywhere, right - left, line->across + at);
		PUT(shorts_anywhere, left + centre + centre + right, line->smooth + at);
	}
}

#define CANNY_BAND(v, b)                                                                           \
	__builtin_shufflevector((v)[0], (v)[1], b, b + BANDS, b + 2 * BANDS, b + 3 * BANDS,        \
	                        b + 4 * BANDS, b + 5 * BANDS, b + 6 * BANDS, b + 7 * BANDS,        \
	                        b + 8 * BANDS, b + 9 * BANDS, b + 10 * BANDS, b + 11 * BANDS,      \
	                        b + 12 * BANDS, b + 13 * BANDS, b + 14 * BANDS, b + 15 * BANDS)

FORCE_INLINE int16 canny_square(short16 x, short16 y)
{
	const int16 a = convert_int16(x), b = convert_int16(y);

	return a * a + b * b;
}

/* The steepest so far of 16 pixels. */
struct steepest {
	int16 square;
	short16 x, y;
};

FORCE_INLINE void canny_compare(struct steepest *best, short16 x, short16 y)
{
	const int16 square = canny_square(x, y), more = square > best->square;
	const short16 take = convert_short16(more);

	best->square = select(best->square, square, more);
	best->x = select(best->x, x, take);
	best->y = select(best->y, y, take);
}

/* Each band that is not kept, in order: a flat first one counts, too. */
#define CANNY_TAKE(b)                                                                              \
	if (b < BANDS && !(KEEP >> b & 1))                                                         \
	canny_compare(&best, CANNY_BAND(gx, b % BANDS), CANNY_BAND(gy, b % BANDS))

FORCE_INLINE void canny_slopes(struct slopes *row, const struct line *above,
                               const struct line *here, const struct line *below, uint count)
{
	for (uint i = 0; i < count; i += CANNY_STEP) {
		const uint at = min(i, count - CANNY_STEP);
		struct steepest best = {(int16)(-1), (short16)(0), (short16)(0)};
		half_step gx[2], gy[2];

#pragma unroll
		for (uint h = 0; h < 2; h++) {
			const uint from = (at + h * (CANNY_STEP / 2)) * BANDS;
			const half_step middle = AT(half_anywhere, here->across + from);

			gx[h] = AT(half_anywhere, above->across + from) + middle + middle +
			        AT(half_anywhere, below->across + from);
			gy[h] = AT(half_anywhere, below->smooth + from) -
			        AT(half_anywhere, above->smooth + from);
		}
		CANNY_TAKE(0);
		CANNY_TAKE(1);
		CANNY_TAKE(2);
		CANNY_TAKE(3);
		PUT(ints_anywhere, best.square, row->square + at);
		PUT(shorts_anywhere, best.x, row->x + at);
		PUT(shorts_anywhere, best.y, row->y + at);
	}
}

/* Tells whether a length is a maximum across the edge, for pixels from one on: tan(22.5°) is 13573
 * / 32768. */
FORCE_INLINE int16 canny_is_peak(const struct slopes *above, const struct slopes *row,
                                 const struct slopes *below, uint at)
{
	const int *up = above->square + at, *here = row->square + at, *down = below->square + at;
	const short16 gx = AT(shorts_anywhere, row->x + at + 1),
	              gy = AT(shorts_anywhere, row->y + at + 1);
	const int16 square = AT(ints_anywhere, here + 1);
	const int16 x = convert_int16(select(gx, -gx, gx < (short)0)),
	            y = convert_int16(select(gy, -gy, gy < (short)0)) << 15, tangent = x * 13573;
	const int16 flat = y < tangent, steep = y > tangent + (x << 16);
	const int16 rising = convert_int16(gx ^ gy) < 0;
	int16 first = select(AT(ints_anywhere, up), AT(ints_anywhere, up + 2), rising);
	int16 second = select(AT(ints_anywhere, down + 2), AT(ints_anywhere, down), rising);

	first = select(first, AT(ints_anywhere, up + 1), steep);
	first = select(first, AT(ints_anywhere, here), flat);
	second = select(second, AT(ints_anywhere, down + 1), steep);
	second = select(second, AT(ints_anywhere, here + 2), flat);
	return (square > first) & ((square > second) | ((flat | steep) & (square == second)));
}

/* Writes the results of 16 pixels. */
FORCE_INLINE void canny_store(uchar16 v, const global uchar *in, global uchar *out)
{
	uchar each[CANNY_STEP];

	if (!KEEP && BANDS > 1) {
		pixel_spread(v, out, BANDS);
		return;
	}
	if (BANDS == 1) {
		*(global bytes_anywhere *)out = v;
		return;
	}
	PUT(bytes_anywhere, v, each);
#pragma unroll
	for (uint i = 0; i < CANNY_STEP * BANDS; i++)
		out[i] = KEEP >> i % BANDS & 1 ? in[i] : each[i / BANDS];
}

FORCE_INLINE void canny_result(const struct slopes *above, const struct slopes *row,
                               const struct slopes *below, const global uchar *in,
                               global uchar *out, uint pixels, int low, int high, uchar some,
                               uchar sure)
{
	for (uint i = 0; i < pixels; i += CANNY_STEP) {
		const uint at = min(i, pixels - CANNY_STEP);
		const int16 square = AT(ints_anywhere, row->square + at + 1);
		const int16 may_be = canny_is_peak(above, row, below, at) & (square > low);
		const int16 is = may_be & (square > high);
		const uchar16 v = convert_uchar16((may_be & (int)some) ^ (is & (int)(some ^ sure)));

		canny_store(v, in + at * BANDS, out + at * BANDS);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
canny_packed(REGION_ARGUMENTS, float low, float high, float full, uint keep)
{
	const uint2 span = block_span(samples / BANDS, blocks, get_global_id(0));
	const uint y = get_global_id(1) * BLOCK_Y, end = min(rows, y + BLOCK_Y);
	const uchar some = PIXEL_ROUND_1(0.5f * full), sure = PIXEL_ROUND_1(full);
	struct slopes slopes[3];
	struct line lines[3];

	for (uint x = span.x; x < span.y; x += CANNY_PIXELS) {
		const uint first = min(x, span.y - CANNY_STEP);
		const uint pixels = min(span.y - first, (uint)CANNY_PIXELS), count = pixels + 2;
		const long at = (long)first * BANDS, before = at - BANDS;

		for (uint r = 0; r < 2; r++)
			canny_line(&lines[r], SOURCE_ROW((long)y - 2 + r) + before, count * BANDS);
		/* Row y - 1 + r of the gradients ends at line r + 2, and completes row y - 2 + r.
		 */
		for (uint r = 0; r < end - y + 2; r++) {
			const uint oldest = r % 3, middle = (r + 1) % 3, newest = (r + 2) % 3;

			canny_line(&lines[newest], SOURCE_ROW((long)y + r) + before, count * BANDS);
			canny_slopes(&slopes[newest], &lines[oldest], &lines[middle],
			             &lines[newest], count);
			if (r >= 2)
				canny_result(&slopes[oldest], &slopes[middle], &slopes[newest],
				             SOURCE_ROW(y + r - 2) + at, TARGET_ROW(y + r - 2) + at,
				             pixels, (int)low, (int)high, some, sure);
		}
	}
}
