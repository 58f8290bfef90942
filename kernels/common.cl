/* common.cl: pixels, blocks and arguments; stands before every kernel.
 *
 * A program is compiled once for each pixel type: PIXEL is uchar, ushort or float, and PIXEL_MAX is
 * full scale for the integers (undefined for float).
 *
 * An interleaved row is a row of width * bands samples whose neighbours lie `bands` apart, so kernels
 * work on samples and never on pixels. Every kernel is given a source and a target region: offsets
 * are the bytes from a buffer's start to the target region's first sample in it, pitches the bytes
 * from row to row. It reads the region, and as many samples around it as its radius says, and
 * writes the region. Two work-items never write the same sample.
 *
 * A work-item makes a block: one of `blocks` parts of the row, some rows high. It goes along its
 * block in vectors of 16 samples; the last vector is moved back so that it ends where the block
 * ends. Only rows of fewer than 16 samples have a path of their own: the same code with narrower
 * loads and stores. On a CPU a group is one work-item, and only these explicit vectors become
 * 512-bit code.
 *
 * Pointers are not `restrict`: it changes nothing measurable on a CPU, and Oclgrind, which checks
 * kernels for stray accesses, cannot run the compiler's code for it once functions are inlined. */

#define REGION_ARGUMENTS                                                                           \
	global const uchar *src, ulong src_offset, uint src_pitch,                        \
	    global uchar *dst, ulong dst_offset, uint dst_pitch, uint samples, uint rows, \
	    uint bands, uint blocks

/* Arguments that follow the regions of a kernel which must know its place in the image: the place
 * of the target's first pixel (x0, and y0 of each tile of a stack, which the third dimension
 * counts), rows from one tile of the stack to the next, and the size of the image. */
#define PLACE_ARGUMENTS                                                                            \
	int x0, int16 y0s, int16 more_y0s, uint distance, int image_width, int image_height

#define FORCE_INLINE static inline __attribute__((always_inline))

/* Constants of a special program: bands and radii, the mask of bands that are kept as they are,
 * whether a CPU writes results past its cache, and (BLOCK_X, BLOCK_Y, in special programs only) the
 * samples and rows that a work-item makes. */
#ifndef BANDS
#define BANDS 1
#endif
#ifndef RADIUS_X
#define RADIUS_X 1
#endif
#ifndef RADIUS_Y
#define RADIUS_Y 1
#endif
#ifndef KEEP
#define KEEP 0u
#endif
#ifndef STREAM
#define STREAM 1
#endif

enum { VECTOR = 16 };

/* Rows of samples of the source and the target. */
typedef const global PIXEL *source_row;
typedef global PIXEL *target_row;

/* Returns the row `y` rows below the start of the region; y may be negative. */
#define SOURCE_ROW(y) ((source_row)(src + src_offset + (long)(y) * (long)src_pitch))
#define TARGET_ROW(y) ((target_row)(dst + dst_offset + (long)(y) * (long)dst_pitch))

/* Returns the work-item's tile of a stack. The launch may count from another number. */
FORCE_INLINE uint stack_tile(void)
{
	return get_global_id(2) - get_global_offset(2);
}

/* Returns the first row, in the image, of the tile of a stack that a work-item makes. */
FORCE_INLINE int place_y0(int16 y0s, int16 more_y0s)
{
	union {
		int16 all[2];
		int each[32];
	} first_rows;

	first_rows.all[0] = y0s;
	first_rows.all[1] = more_y0s;
	return first_rows.each[stack_tile()];
}

/* Returns the samples [x, y) of a row that block i of `blocks` makes. All but the last begin and
 * end at multiples of 16; none is smaller than 16 if samples / blocks is at least 32. */
FORCE_INLINE uint2 block_span(uint samples, uint blocks, uint i)
{
	uint start = (uint)((ulong)samples * i / blocks) & ~15u;
	uint end = (uint)((ulong)samples * (i + 1) / blocks) & ~15u;

	return (uint2)(start, i + 1 == blocks ? samples : end);
}

/* Returns the pixels, or points, of a row that a work-item makes. */
FORCE_INLINE uint2 points_span(uint samples, uint bands, uint blocks)
{
	const uint i = get_global_id(0), all = samples / bands;

	return (uint2)((uint)((ulong)all * i / blocks), (uint)((ulong)all * (i + 1) / blocks));
}

/* Loads the first `width` of 16 samples; the rest of the vector is 0. */
FORCE_INLINE float16 pixel_load(source_row p, uint width)
{
	float part[VECTOR];

	if (width == VECTOR)
		return convert_float16(vload16(0, p));
	for (uint i = 0; i < VECTOR; i++)
		part[i] = i < width ? convert_float(p[i]) : 0.0f;
	return vload16(0, part);
}

/* Tells whether a row's window of `taps` rows has a j-th. Blocks add each source row to all of
 * their rows, with weight 0 outside the window; floats must leave it out, since 0 * NaN is NaN. */
#ifdef PIXEL_MAX
#define WINDOW_HAS(j, taps) true
#else
#define WINDOW_HAS(j, taps) ((uint)(j) < (taps))
#endif

#define PASTE_AGAIN(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_AGAIN(a, b, c)
#define CONVERT(type, suffix) PASTE(convert_, type, suffix)

/* Round sixteen samples, four or one to nearest even and saturate where pixels are integers: 1.5 * 2^23
 * + n ends with the bits of n. */
#ifdef PIXEL_MAX
#define PIXEL_ROUND_OF(v, count) \
	CONVERT(PIXEL, count)(PASTE(as_int, count, )(clamp(v, 0.0f, PIXEL_MAX) + 12582912.0f) & 0xffff)
#define PIXEL_ROUND(v)   PIXEL_ROUND_OF(v, 16)
#define PIXEL_ROUND_4(v) PIXEL_ROUND_OF(v, 4)
#define PIXEL_ROUND_1(v) PIXEL_ROUND_OF(v, )
#else
#define PIXEL_ROUND(v)   (v)
#define PIXEL_ROUND_4(v) (v)
#define PIXEL_ROUND_1(v) (v)
#endif

/* Limits v to low and high; NaN stays NaN, while fmin() and fmax() would return a limit. */
#define WITHIN(v, low, high) select(select(v, low, (v) < (low)), high, (v) > (high))

/* Stores 16 pixels anywhere. PoCL's vstore16() writes bytes one by one. */
#ifdef __x86_64__
typedef PASTE(PIXEL, 16, ) pixels_anywhere __attribute__((aligned(sizeof(PIXEL))));
#define PIXEL_VSTORE(v, p) (*(global pixels_anywhere *)(p) = (v))
#else
#define PIXEL_VSTORE(v, p) vstore16(v, 0, p)
#endif

/* Stores 16 pixels of 2 to 4 bands, all bands of a pixel alike. */
FORCE_INLINE void pixel_spread(PASTE(PIXEL, 16, ) v, target_row p, uint bands)
{
	if (bands == 2) {
		PIXEL_VSTORE(v.s0011223344556677, p);
		PIXEL_VSTORE(v.s8899aabbccddeeff, p + VECTOR);
	} else if (bands == 3) {
		PIXEL_VSTORE(v.s0001112223334445, p);
		PIXEL_VSTORE(v.s55666777888999aa, p + VECTOR);
		PIXEL_VSTORE(v.sabbbcccdddeeefff, p + 2 * VECTOR);
	} else {
		PIXEL_VSTORE(v.s0000111122223333, p);
		PIXEL_VSTORE(v.s4444555566667777, p + VECTOR);
		PIXEL_VSTORE(v.s88889999aaaabbbb, p + 2 * VECTOR);
		PIXEL_VSTORE(v.sccccddddeeeeffff, p + 3 * VECTOR);
	}
}

/* Stores the first `width` of 16 samples. */
FORCE_INLINE void pixel_store(float16 v, target_row p, uint width)
{
	PIXEL part[VECTOR];

	if (width == VECTOR) {
		PIXEL_VSTORE(PIXEL_ROUND(v), p);
		return;
	}
	vstore16(PIXEL_ROUND(v), 0, part);
	for (uint i = 0; i < width; i++)
		p[i] = part[i];
}

/* The part of a row that a CPU writes past its cache: the lines [x, y), by address, of a row's part
 * [begin, end). Vectors go along the part; the first and the last of them, of `size` bytes, may
 * overlap others, and lines at its ends may be those of another work-item too. A line that is
 * written both ways would wait for memory in between: longer than the whole row takes. */
FORCE_INLINE ulong2 stream_lines(target_row begin, target_row end, uint size)
{
	const ulong first = (ulong)begin, last = (ulong)end, in_line = 63;

	return (ulong2)(first & in_line ? (first + size + in_line) & ~in_line : first,
	                last & in_line ? (last - size) & ~in_line : last);
}

/* Tells whether a vector of `size` bytes is to be written past the cache. */
FORCE_INLINE bool streams(ulong2 lines, const global void *p, uint size)
{
	return STREAM && ((ulong)p & (size - 1)) == 0 && (ulong)p >= lines.x && (ulong)p < lines.y;
}

/* Fetches a line into a CPU's second cache. Loads wait longer than the arithmetic takes if another
 * processor wrote the source. The address may be outside the buffer. PoCL's prefetch() does
 * nothing; Oclgrind does not know the builtin. */
#ifdef __x86_64__
#define CACHE_FETCH(p) __builtin_prefetch((const void *)(ulong)(p), 0, 2)
#else
#define CACHE_FETCH(p)
#endif

/* Defines load and store of the first `width` of 16 floats, whatever the pixels are, in an address
 * space: OpenCL C 1.2 has no pointers to any of them. */
#define FLOAT_ACCESS(load, store, space)                                                           \
	FORCE_INLINE float16 load(const space float *p, uint width)                                \
	{                                                                                          \
		float part[VECTOR];                                                                \
                                                                                                   \
		if (width == VECTOR)                                                               \
			return vload16(0, p);                                                      \
		for (uint i = 0; i < VECTOR; i++)                                                  \
			part[i] = i < width ? p[i] : 0.0f;                                         \
		return vload16(0, part);                                                           \
	}                                                                                          \
                                                                                                   \
	FORCE_INLINE void store(float16 v, space float *p, uint width)                             \
	{                                                                                          \
		float part[VECTOR];                                                                \
                                                                                                   \
		if (width == VECTOR) {                                                             \
			vstore16(v, 0, p);                                                         \
			return;                                                                    \
		}                                                                                  \
		vstore16(v, 0, part);                                                              \
		for (uint i = 0; i < width; i++)                                                   \
			p[i] = part[i];                                                            \
	}

FLOAT_ACCESS(float_load, float_store, global)

/* Returns the bands of 16 samples from sample x on. */
FORCE_INLINE int16 band_numbers(uint x, uint bands)
{
	const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const int16 third = (int16)(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0) + (int)(x % 3);
	int16 band = (lane + (int)x) & (int)(bands - 1);

	if (bands == 3)
		band = select(third, third - 3, third > 2);
	return band;
}

/* Returns True (-1) for each of 16 samples from sample x whose band is in the mask. */
FORCE_INLINE int16 band_lanes(uint x, uint bands, uint mask)
{
	return -(((int16)((int)mask) >> band_numbers(x, bands)) & 1);
}

/* Returns, for each of 16 samples from sample x on, the component of its band. */
FORCE_INLINE float16 band_values(float4 values, uint x, uint bands)
{
	const int16 band = band_numbers(x, bands);
	const float16 low = select((float16)(values.s0), (float16)(values.s1), band == 1);
	const float16 high = select((float16)(values.s2), (float16)(values.s3), band == 3);

	return select(low, high, band > 1);
}

/* Returns the alpha of each sample's pixel, in vectors that begin with a whole pixel. */
FORCE_INLINE float16 alpha_spread(float16 v, uint bands)
{
#ifdef __x86_64__
	return bands == 4 ? v.s33337777bbbbffff : v.s1133557799bbddff;
#else /* for Oclgrind, which takes element 11 of a swizzle for an undefined one */
	const ulong8 all = as_ulong8(v), alpha = (bands == 4 ? all.s11335577 : all) >> 32;

	return as_float16(alpha << 32 | alpha);
#endif
}
