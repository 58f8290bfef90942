/* window.cl: rows of samples in registers; stands between common.cl and the kernels of gpu/.
 *
 * These kernels are compiled for one set of BANDS, RADIUS_X, RADIUS_Y, KEEP. A work-item makes
 * BLOCK_X samples of BLOCK_Y rows, and holds the part of a source row that it needs, its window, as
 * 32-bit words: SIDE words that contain the radius to the left, MIDDLE words of its own samples,
 * SIDE words to the right. Each sample's word and byte are known at compile time.
 *
 * A block is `free` if it lies inside the region, and its samples and target are aligned to
 * 16 bytes: then the loads and stores are as wide as can be. Any other block reads the aligned
 * words that contain needed samples, shifts them into place, and writes no more than its share. */

/* Samples and rows of a work-item; BLOCK_X samples fill a multiple of 8 bytes. */
#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

/* The work-group. */
#ifndef GROUP_X
#define GROUP_X 128
#endif
#ifndef GROUP_Y
#define GROUP_Y 1
#endif

/* Rows loaded ahead of the row that is worked on: otherwise a row's store would hold up the loads
 * after it. */
#ifndef AHEAD
#ifdef KERNEL_gradient_half
#define AHEAD 4
#else
#define AHEAD (RADIUS_Y < 2 ? 3 : 4)
#endif
#endif

#define GPU_KERNEL kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, 1))) void

enum {
	SIZE = sizeof(PIXEL),
	PER_WORD = 4 / SIZE,
	REACH = RADIUS_X * BANDS, /* samples to either side */
	SIDE = (REACH * SIZE + 3) / 4,
	MIDDLE = BLOCK_X * SIZE / 4,
	WINDOW = SIDE + MIDDLE + SIDE,
	PAIRS = 2 * MIDDLE,      /* bytes */
	FIRST = SIDE * PER_WORD, /* the window's sample that is the block's first */
	WIDE = MIDDLE % 4 == 0,
	TAPS_X = 2 * RADIUS_X + 1,
	TAPS_Y = 2 * RADIUS_Y + 1,
	ROWS_IN = BLOCK_Y + 2 * RADIUS_Y
};

/* Loads that have the second-level cache fetch the whole line: 1 to 2 % of the time. FOR_NVIDIA is
 * defined for kernels that need compute capability 8.0. */
#if defined(__NV_CL_C_VERSION) && defined(FOR_NVIDIA)
FORCE_INLINE uint word_near(const global uchar *p)
{
	uint v;

	asm volatile("ld.global.L2::128B.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}

FORCE_INLINE uint2 words2_near(const global uchar *p)
{
	uint2 v;

	asm volatile("ld.global.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
	return v;
}

FORCE_INLINE uint4 words4_near(const global uchar *p)
{
	uint4 v;

	asm volatile("ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
	             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
	             : "l"(p));
	return v;
}
#else
#define word_near(p)   (*(const global uint *)(p))
#define words2_near(p) (*(const global uint2 *)(p))
#define words4_near(p) (*(const global uint4 *)(p))
#endif

/* Loads n words, as wide as n and the blocks' alignment, 16 or 8 bytes, allow. */
FORCE_INLINE void words_load(uint *w, const global uchar *p, const int n)
{
	if (WIDE && n % 4 == 0) {
#pragma unroll
		for (int i = 0; i < n; i += 4) {
			const uint4 v = words4_near(p + 4 * i);

			w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
		}
	} else if (n % 2 == 0) {
#pragma unroll
		for (int i = 0; i < n; i += 2) {
			const uint2 v = words2_near(p + 4 * i);

			w[i] = v.x, w[i + 1] = v.y;
		}
	} else {
#pragma unroll
		for (int i = 0; i < n; i++)
			w[i] = word_near(p + 4 * i);
	}
}

FORCE_INLINE void words_store(const uint *w, global uchar *p, const int n)
{
	if (WIDE) {
#pragma unroll
		for (int i = 0; i < n; i += 4)
			*(global uint4 *)(p + 4 * i) = (uint4)(w[i], w[i + 1], w[i + 2], w[i + 3]);
	} else {
#pragma unroll
		for (int i = 0; i < n; i += 2)
			*(global uint2 *)(p + 4 * i) = (uint2)(w[i], w[i + 1]);
	}
}

/* Tells whether the block of `width` samples and `height` rows at these places is free. */
FORCE_INLINE bool window_free(const global uchar *in, uint src_pitch, global uchar *out,
                              uint dst_pitch, uint width, uint height)
{
	const uint places = (uint)(size_t)in | (uint)(size_t)out | src_pitch | dst_pitch;

	return (places & (WIDE ? 15 : 7)) == 0 && width >= BLOCK_X && height >= BLOCK_Y;
}

/* Loads the window of the block whose first sample is at p; `width` of its samples are inside the
 * region. */
FORCE_INLINE void window_load(uint *w, const global uchar *p, uint width, const bool free)
{
	if (free) {
		words_load(w, p - 4 * SIDE, SIDE);
		words_load(w + SIDE, p, MIDDLE);
		words_load(w + SIDE + MIDDLE, p + 4 * MIDDLE, SIDE);
		return;
	}

	const uint inside = min(width, (uint)BLOCK_X);
	const uint shift = (uint)(size_t)p & 3;
	const global uchar *base = p - shift; /* the words' places are counted from here */
	const int low = (int)shift - REACH * SIZE,
	          high = (int)(shift + (inside + REACH) * SIZE) - 1;
	uint last = *(const global uint *)(base + (max(-4 * SIDE, low) & ~3));

#pragma unroll
	for (int i = 0; i < WINDOW; i++) {
		const uint next =
		    *(const global uint *)(base + (clamp(4 * (i + 1 - SIDE), low, high) & ~3));

		w[i] = (uint)(((ulong)next << 32 | last) >> (8 * shift));
		last = next;
	}
}

/* Windows of the block's row s and of the next rows, in a ring. */
struct rows {
	uint words[AHEAD + 1][WINDOW];
};

/* Loads row s of the `count` that the block needs, if it does; the first is at p. */
FORCE_INLINE void rows_load(struct rows *rows, int s, int count, const global uchar *p, uint pitch,
                            uint width, const bool free)
{
	if (s < count)
		window_load(rows->words[s % (AHEAD + 1)], p + (ulong)s * pitch, width, free);
}

/* True where the result's sample i, of a block that begins at sample x, is the source's. */
FORCE_INLINE bool window_keeps(uint x, int i)
{
	const uint phase = BLOCK_X % BANDS == 0 ? 0 : x % BANDS;

	return (KEEP >> ((phase + i) % BANDS) & 1) != 0;
}

/* Replaces the samples of the result that are to be kept by those of the source's window. */
FORCE_INLINE void window_keep(uint *result, const uint *window, uint x)
{
	if (KEEP == 0)
		return;
#pragma unroll
	for (int k = 0; k < MIDDLE; k++) {
		uint mask = 0;

#pragma unroll
		for (int i = 0; i < PER_WORD; i++)
			if (window_keeps(x, k * PER_WORD + i))
				mask |= (SIZE == 4 ? ~0u : (1u << 8 * SIZE % 32) - 1)
				        << 8 * SIZE * i;
		result[k] = (window[SIDE + k] & mask) | (result[k] & ~mask);
	}
}

/* Stores a block's row; `width` of its samples are inside the region. */
FORCE_INLINE void window_store(const uint *w, global uchar *p, uint width, const bool free)
{
	if (free) {
		words_store(w, p, MIDDLE);
		return;
	}
	if (((size_t)p & 3) == 0 && width >= BLOCK_X) {
#pragma unroll
		for (int i = 0; i < MIDDLE; i++)
			*(global uint *)(p + 4 * i) = w[i];
		return;
	}
#pragma unroll
	for (int i = 0; i < BLOCK_X; i++)
		if ((uint)i < width) {
			const uint part = w[i / PER_WORD] >> (8 * SIZE * (i % PER_WORD));

			if (SIZE == 1)
				p[i] = (uchar)part;
			else if (SIZE == 2)
				((global ushort *)p)[i] = (ushort)part;
			else
				((global uint *)p)[i] = part;
		}
}

/* Permutes bytes as PTX's prmt: result byte i is byte (s >> 4 * i & 7) of b:a. */
FORCE_INLINE uint permute(uint a, uint b, const uint s)
{
#ifdef __NV_CL_C_VERSION
	uint d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "n"(s));
	return d;
#else
	const ulong all = (ulong)b << 32 | a;

	return (uint)(all >> 8 * (s & 7) & 255) | (uint)(all >> 8 * (s >> 4 & 7) & 255) << 8 |
	       (uint)(all >> 8 * (s >> 8 & 7) & 255) << 16 |
	       (uint)(all >> 8 * (s >> 12 & 7) & 255) << 24;
#endif
}

/* Returns sample i of a window as a float. Integers become floats by their place in the mantissa of
 * 2^23, as conversions are slow on GPUs. */
FORCE_INLINE float window_float(const uint *w, int i)
{
	const uint word = w[i / PER_WORD];

	if (SIZE == 4)
		return as_float(word);
	if (SIZE == 2)
		return as_float(permute(word, 0x4B000000, i % 2 ? 0x7432 : 0x7410)) - 8388608.0f;
	return as_float(permute(word, 0x4B000000, 0x7440 + i % 4)) - 8388608.0f;
}

#ifdef PIXEL_MAX
#define SAMPLE_ROUND(v) as_uint(clamp(v, 0.0f, PIXEL_MAX) + 8388608.0f)
#else
#define SAMPLE_ROUND(v) as_uint(v)
#endif

/* Makes the block's words of floats: rounds to nearest even, saturates. */
FORCE_INLINE void window_pack(uint *result, const float *v)
{
#pragma unroll
	for (int k = 0; k < MIDDLE; k++) {
		const float *s = v + k * PER_WORD;

		if (SIZE == 4)
			result[k] = SAMPLE_ROUND(s[0]);
		else if (SIZE == 2)
			result[k] =
			    permute(SAMPLE_ROUND(s[0]), SAMPLE_ROUND(s[1 % PER_WORD]), 0x5410);
		else
			result[k] = permute(
			    permute(SAMPLE_ROUND(s[0]), SAMPLE_ROUND(s[1 % PER_WORD]), 0x0040),
			    permute(SAMPLE_ROUND(s[2 % PER_WORD]), SAMPLE_ROUND(s[3 % PER_WORD]),
			            0x0040),
			    0x5410);
	}
}

/* Root and power of two: NVIDIA's instructions, with relative errors below 2^-21 ("PTX ISA"; its
 * native functions take care of denormals); elsewhere native ones, with unknown errors, for bytes
 * only. */
#ifdef __NV_CL_C_VERSION
#define FLOAT_FUNCTION(name, instruction)                                                          \
	FORCE_INLINE float name(float v)                                                           \
	{                                                                                          \
		float d;                                                                           \
                                                                                                   \
		asm(instruction " %0, %1;" : "=f"(d) : "f"(v));                                    \
		return d;                                                                          \
	}
FLOAT_FUNCTION(fast_sqrt, "sqrt.approx.ftz.f32")
FLOAT_FUNCTION(fast_exp2, "ex2.approx.ftz.f32")
#else
#define fast_sqrt(v) (SIZE == 1 ? native_sqrt(v) : sqrt(v))
#define fast_exp2(v) (SIZE == 1 ? native_exp2(v) : exp2(v))
#endif

/* Pairs of half floats in a word, NVIDIA's by PTX, as its OpenCL C has no half arithmetic. The
 * substitute elsewhere is slow, and only for tests.
 *
 * A byte v as the half with the bits of v is the denormal v * 2^-24: sums of them, up to 2048 of
 * these units, are exact, and a product with a weight of up to 2^15 is a normal number. So bytes
 * need no conversion but the permutation that spreads them. */
#ifdef __NV_CL_C_VERSION
#define HALF2_FUNCTION(name, instruction)                                                          \
	FORCE_INLINE uint name(uint a, uint b)                                                     \
	{                                                                                          \
		uint d;                                                                            \
                                                                                                   \
		asm(instruction " %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));                        \
		return d;                                                                          \
	}
HALF2_FUNCTION(half2_add, "add.rn.f16x2")
HALF2_FUNCTION(half2_sub, "sub.rn.f16x2")
HALF2_FUNCTION(half2_mul, "mul.rn.f16x2")
HALF2_FUNCTION(half2_min, "min.f16x2")
HALF2_FUNCTION(half2_max, "max.f16x2")

FORCE_INLINE uint half2_fma(uint a, uint b, uint c)
{
	uint d;

	asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
}

/* Returns how much a is above b, or 0. */
FORCE_INLINE uint half2_above(uint a, uint b)
{
	uint d;

	asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(b), "r"(0xBC00BC00u), "r"(a));
	return d;
}

FORCE_INLINE float2 half2_float(uint a)
{
	float2 d;

	asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
	    : "=f"(d.x), "=f"(d.y)
	    : "r"(a));
	return d;
}

FORCE_INLINE uint float_half2(float2 a)
{
	uint d;

	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(a.y), "f"(a.x));
	return d;
}
#else
/* Not inlined: PoCL's conversions are long, and a kernel has hundreds of them to compile. */
static inline __attribute__((noinline)) float2 half2_float(uint a)
{
	const ushort2 part = as_ushort2(a);
	const ushort low = part.x, high = part.y;

	return (float2)(vload_half(0, (const half *)&low), vload_half(0, (const half *)&high));
}

static inline __attribute__((noinline)) uint float_half2(float2 a)
{
	ushort2 part;
	ushort low, high;

	vstore_half_rte(a.x, 0, (half *)&low);
	vstore_half_rte(a.y, 0, (half *)&high);
	part.x = low, part.y = high;
	return as_uint(part);
}

#define HALF2_FUNCTION(name, result)                                                               \
	FORCE_INLINE uint name(uint c, uint d)                                                     \
	{                                                                                          \
		const float2 a = half2_float(c), b = half2_float(d);                               \
                                                                                                   \
		return float_half2(result);                                                        \
	}
HALF2_FUNCTION(half2_add, a + b)
HALF2_FUNCTION(half2_sub, a - b)
HALF2_FUNCTION(half2_mul, a *b)
HALF2_FUNCTION(half2_min, fmin(a, b))
HALF2_FUNCTION(half2_max, fmax(a, b))

FORCE_INLINE uint half2_fma(uint a, uint b, uint c)
{
	return float_half2(fma(half2_float(a), half2_float(b), half2_float(c)));
}
#endif

/* Powers of two, and 1024 and 1024 + 255, as pairs of halves. */
#define HALF2_SCALE(e) ((uint)((e) + 15) << 10 | (uint)((e) + 15) << 26)
#define HALF2_1024     0x64006400u
#define HALF2_1279     0x64FF64FFu

/* The bytes of the window's words, as pairs of v * 2^-24. */
FORCE_INLINE void window_pairs(uint *pair, const uint *w)
{
#pragma unroll
	for (int i = 0; i < WINDOW; i++) {
		pair[2 * i] = permute(w[i], 0, 0x4140);
		pair[2 * i + 1] = permute(w[i], 0, 0x4342);
	}
}

/* Returns the pair of samples i and i + 1 of a window. */
FORCE_INLINE uint window_pair(const uint *pair, int i)
{
	return i % 2 ? permute(pair[i / 2], pair[i / 2 + 1], 0x5432) : pair[i / 2];
}

/* Makes the block's words of pairs of values in [0, 255.5): rounds to nearest even. */
FORCE_INLINE void window_pack_pairs(uint *result, const uint *v)
{
#pragma unroll
	for (int k = 0; k < MIDDLE; k++)
		result[k] =
		    permute(half2_min(half2_add(v[2 * k], HALF2_1024), HALF2_1279),
		            half2_min(half2_add(v[2 * k + 1], HALF2_1024), HALF2_1279), 0x6420);
}

/* The order of taps: first, last, second, last but one ..., so that sums grow late. */
#define TAP(k, taps) ((k) % 2 ? (taps)-1 - (k) / 2 : (k) / 2)

/* A work-item's place: its block's first sample and row, and the number left in the region. Fails
 * to compile for a BLOCK_X too small. */
#define BLOCK_PLACE                                                                                \
	typedef char block_check[MIDDLE % 2 == 0 ? 1 : -1];                                        \
	const uint x = get_global_id(0) * BLOCK_X, y = get_global_id(1) * BLOCK_Y;                 \
	const uint width = samples - min(x, samples), height = rows - min(y, rows);                \
	const global uchar *in = src + src_offset + (long)(y * (ulong)src_pitch + x * SIZE);       \
	global uchar *out = dst + dst_offset + (ulong)y * dst_pitch + x * SIZE;
