/* keys.cl: samples as integers of the same order, in vectors; stands before the kernels that only
 * compare. Keys of floats are their bits, turned so that NaN is the largest and all NaN are one. */

#ifdef PIXEL_MAX
typedef PIXEL key;
#else
typedef int key;
#endif

#define MASK_OF_uchar  char
#define MASK_OF_ushort short
#define MASK_OF_float  int
#define MASK           PASTE(MASK_OF_, PIXEL, )

/* A vector is 64 bytes if that is a register's size. masks: results of comparisons. */
#ifdef __x86_64__
enum { LANES = 64 / sizeof(PIXEL) };
typedef key keys __attribute__((ext_vector_type(LANES)));
typedef MASK masks __attribute__((ext_vector_type(LANES)));
typedef key keys_anywhere __attribute__((ext_vector_type(LANES), aligned(sizeof(key))));
#define KEYS_LOAD(space, p)     ((keys)(*(const space keys_anywhere *)(p)))
#define KEYS_STORE(space, v, p) (*(space keys_anywhere *)(p) = (v))
#else
enum { LANES = 16 };
#ifdef PIXEL_MAX
typedef PASTE(PIXEL, 16, ) keys;
#else
typedef int16 keys;
#endif
typedef PASTE(MASK, 16, ) masks;
#define KEYS_LOAD(space, p)     vload16(0, (const space key *)(p))
#define KEYS_STORE(space, v, p) vstore16(v, 0, (space key *)(p))
#endif

/* Turn the bits of floats into integers in the same order, and back. KEYS_OF_BITS: the key with as
 * many keys below it as the bits say as a number. */
#ifdef PIXEL_MAX
#define KEYS_ORDER(bits) (bits)
#define KEYS_BITS(v)     (v)
#define KEYS_OF_BITS(v)  (v)
#else
#define KEYS_BITS(v)    ((v) ^ (((v) >> 31) & 0x7fffffff))
#define KEYS_OF_BITS(v) ((v) ^ (keys)((int)0x80000000))
FORCE_INLINE keys KEYS_ORDER(keys bits)
{
	bits = (bits & 0x7fffffff) > 0x7f800000 ? (keys)(0x7fc00000) : bits;
	return KEYS_BITS(bits);
}
#endif

/* Loads the bits of the first `width` of LANES samples; the others are 0. */
FORCE_INLINE keys bits_load(source_row p, uint width)
{
	key part[LANES];

	if (width == LANES)
		return KEYS_LOAD(global, p);
	for (uint i = 0; i < LANES; i++)
		part[i] = i < width ? ((const global key *)p)[i] : 0;
	return KEYS_LOAD(private, part);
}

FORCE_INLINE keys keys_load(source_row p, uint width)
{
	return KEYS_ORDER(bits_load(p, width));
}

FORCE_INLINE void keys_store(keys v, target_row p, uint width)
{
	key part[LANES];

	if (width == LANES) {
		KEYS_STORE(global, KEYS_BITS(v), p);
		return;
	}
	KEYS_STORE(private, KEYS_BITS(v), part);
	for (uint i = 0; i < width; i++)
		((global key *)p)[i] = part[i];
}

/* Stores the bits of LANES samples, past a CPU's cache if possible. lines: see stream_lines(). */
FORCE_INLINE void bits_stream(keys bits, target_row p, ulong2 lines)
{
#ifdef __x86_64__
	if (streams(lines, p, sizeof(keys))) {
		__builtin_nontemporal_store(bits, (global keys *)p);
		return;
	}
#endif
	KEYS_STORE(global, bits, p);
}

FORCE_INLINE keys keys_extreme(keys a, keys b, const bool largest)
{
	if (largest)
		return a > b ? a : b;
	return a < b ? a : b;
}

/* Returns the lines of `width` samples of a row that bits_stream() writes, and not keys_keep()
 * afterwards. */
FORCE_INLINE ulong2 bits_lines(target_row p, uint width)
{
	return KEEP ? (ulong2)(0) : stream_lines(p, p + width, sizeof(keys));
}

/* Copies the samples [span.x, span.y) of a row whose bands are in `keep`. */
FORCE_INLINE void keys_keep(source_row in, target_row out, uint2 span, uint bands, uint keep)
{
	for (uint b = 0; keep >> b; b++)
		if (keep >> b & 1)
			for (uint x = span.x + (b + bands - span.x % bands) % bands; x < span.y;
			     x += bands)
				out[x] = in[x];
}

/* For median.cl and median_shared.cl. */
typedef keys cell;

FORCE_INLINE cell cell_min(cell a, cell b)
{
	return keys_extreme(a, b, false);
}

FORCE_INLINE cell cell_max(cell a, cell b)
{
	return keys_extreme(a, b, true);
}

/* Returns the third of three values, given the smallest and the largest; not by sums, as int may
 * overflow. */
FORCE_INLINE cell rest_3(cell a, cell b, cell c, cell least, cell most)
{
	return cell_max(cell_min(a, b), cell_min(cell_max(a, b), c));
}
