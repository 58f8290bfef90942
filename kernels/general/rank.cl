/* rank.cl: the value at a place in the order of those in a window: the median, or any other.
 *
 * A work-item makes RANK_ROWS rows of a block, a vector of samples at a time, compared as keys (see
 * keys.cl), so NaN is the largest. There are two ways:
 *
 * The median of 3x3 or 5x5, by a sorting network: see median.cl.
 *
 * All else by bisection: bit by bit from the highest, a value's bit is set if no more than `rank`
 * samples of the window are below the value that then results; it is NaN if that many are not. That
 * costs the same whatever the samples, and needs no memory. */

/* Rows of a block. */
#ifndef RANK_ROWS
#define RANK_ROWS 4
#endif

enum { RANK_RADIUS_MAX = 15 };

/* Results of comparisons of keys, -1 or 0, and their sums over a window. */
#ifdef PIXEL_MAX
#define TALLY short
#else
#define TALLY int
#endif
#ifdef __x86_64__
typedef TALLY tallies __attribute__((ext_vector_type(LANES)));
#define TALLIES_OF(v) __builtin_convertvector(v, tallies)
#define MASKS_OF(v)   __builtin_convertvector(v, masks)
#else
typedef PASTE(TALLY, 16, ) tallies;
#define TALLIES_OF(v) CONVERT(TALLY, 16)(v)
#define MASKS_OF(v)   CONVERT(MASK, 16)(v)
#endif

/* Returns the median of a square of `side` samples, 3 or 5; p: its first. */
FORCE_INLINE keys median_square(source_row p, uint pitch, uint bands, const int side, uint width)
{
	keys v[25];

#pragma unroll
	for (int j = 0; j < side; j++)
#pragma unroll
		for (int i = 0; i < side; i++)
			v[j * side + i] = keys_load(
			    (source_row)((const global uchar *)p + (ulong)j * pitch) + i * bands,
			    width);
	return median_of_square(v, side);
}

/* Compares samples with these bits: which are below others, and which are numbers. Floats are
 * compared as floats, which spares making keys of them. No number is below NaN, nor NaN below
 * any. */
#ifdef PIXEL_MAX
#define BITS_BELOW(a, b) ((a) < (b))
#else
#ifdef __x86_64__
typedef float floats __attribute__((ext_vector_type(LANES)));
#define FLOATS(bits) __builtin_astype(bits, floats)
#else
#define FLOATS(bits) as_float16(bits)
#endif
#define BITS_BELOW(a, b)   (FLOATS(a) < FLOATS(b))
#define BITS_NUMBERS(a, b) (FLOATS(a) == FLOATS(a))
#endif

/* Counts the samples of the window around p that compare so with those of these bits. */
#define RANK_COUNT(count, are, bits)                                                               \
	for (int j = -radius; j <= radius; j++) {                                                  \
		const source_row row =                                                             \
		    (source_row)((const global uchar *)p + (long)j * (long)pitch);                 \
		const int side = sides[abs(j)];                                                    \
		masks part = 0;                                                                    \
                                                                                                   \
		for (int i = -side; i <= side; i++)                                                \
			part += are(bits_load(row + i * (int)bands, width), bits);                 \
		count -= TALLIES_OF(part);                                                         \
	}

/* Returns the value of the window around p that has at most `rank` of its samples below it. */
FORCE_INLINE keys rank_bisect(source_row p, uint pitch, uint bands, int radius, const int *sides,
                              uint rank, uint width)
{
	keys found = 0;

	for (uint bit = 1u << (8 * sizeof(key) - 1); bit; bit >>= 1) {
		const keys guess = found | (key)bit, guess_key = KEYS_OF_BITS(guess);
		const keys guess_bits = KEYS_BITS(guess_key);
		tallies below = 0;
		masks fits;

		RANK_COUNT(below, BITS_BELOW, guess_bits)
		fits = MASKS_OF(below <= (TALLY)rank);
#ifndef PIXEL_MAX
		fits &= guess_key <= 0x7f800000;
#endif
		found = fits ? guess : found;
	}
#ifndef PIXEL_MAX
	tallies numbers = 0;

	RANK_COUNT(numbers, BITS_NUMBERS, found)
	found = numbers <= (TALLY)rank ? (keys)(as_int(0xffc00000)) : found;
#endif
	return KEYS_OF_BITS(found);
}

/* `square`: 3 or 5 for the median of a square of that side, else 0. */
FORCE_INLINE void rank_row(source_row in, target_row out, uint2 span, uint pitch, uint bands,
                           int radius, const int *sides, uint rank, const int square, uint width)
{
	const source_row corner =
	    (source_row)((const global uchar *)in - (ulong)(square / 2) * pitch) - square / 2 * bands;

	for (uint x = span.x; x < span.y; x += LANES) {
		const uint at = min(x, span.y - width);

		keys_store(square ? median_square(corner + at, pitch, bands, square, width)
		                  : rank_bisect(in + at, pitch, bands, radius, sides, rank, width),
		           out + at, width);
	}
}

/* element: a rectangle or a circle. */
kernel void rank(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	const uint2 span =
	    block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1) * RANK_ROWS, width = min(span.y - span.x, (uint)LANES);
	const uint end = min(rows, y + RANK_ROWS), side = 2 * radius + 1;
	const bool median = element == ELEMENT_IS_RECTANGLE && 2 * rank + 1 == side * side;
	int sides[RANK_RADIUS_MAX + 1];

	if (get_global_id(0) >= blocks)
		return;
	for (uint j = 0; j <= radius; j++)
		sides[j] = element_half_width((int)j, (int)radius, (int)element);
	for (uint r = y; r < end; r++) {
		const source_row in = SOURCE_ROW(r);
		const target_row out = TARGET_ROW(r);

		if (width != LANES)
			rank_row(in, out, span, src_pitch, bands, (int)radius, sides, rank, 0, width);
		else if (median && radius == 1)
			rank_row(in, out, span, src_pitch, bands, 1, sides, rank, 3, LANES);
		else if (median && radius == 2)
			rank_row(in, out, span, src_pitch, bands, 2, sides, rank, 5, LANES);
		else
			rank_row(in, out, span, src_pitch, bands, (int)radius, sides, rank, 0, LANES);
		keys_keep(in, out, span, bands, keep);
	}
}
