/* gpu/samples.cl: each sample by itself, by a comparison, a formula or a table.
 *
 * threshold_wide, curve_wide, lut_wide: the results of general/threshold.cl, curve.cl and lut.cl,
 * with loads and stores as wide as can be (window.cl). A work-item makes BLOCK_X samples of BLOCK_Y
 * rows.
 *
 * A byte has but 256 values. So a group first makes a table of their results: a word, whose bytes
 * are for as many bands. Local memory holds a copy for each of the work-items across, in words that
 * lie as far apart as those are many: 32 lanes look up in 32 banks. */

enum { VALUES = 256, TOGETHER = BLOCK_Y < 4 ? BLOCK_Y : 4 /* rows whose loads are issued at once */ };

enum samples_kind { THRESHOLD, CURVE, LUT };

/* Parameters of samples: the arguments of all three kernels. */
struct samples_how {
	float4 limits, gain, bias;
	float full, low, high, exponent, scale, shift;
	uint by_band;
	const global PIXEL *tables;
	uint count, entries;
};

FORCE_INLINE float band_value(float4 values, uint by_band, uint band)
{
	if (!by_band || band == 0)
		return values.s0;
	return band == 1 ? values.s1 : band == 2 ? values.s2 : values.s3;
}

/* Maps the bits of a sample to those of its result. */
FORCE_INLINE uint sample_make(const struct samples_how *how, const enum samples_kind kind, uint bits,
                              uint band)
{
	const float v = SIZE == 4 ? as_float(bits) : (float)bits;
	float t;

	if (KEEP >> band & 1)
		return bits;
	if (kind == LUT)
		return (uint)how->tables[min(band, how->count - 1) * how->entries + bits];
	if (kind == THRESHOLD) {
		t = v > band_value(how->limits, how->by_band, band) ? how->full : 0.0f;
	} else {
		t = fma(v, band_value(how->gain, how->by_band, band),
		        band_value(how->bias, how->by_band, band));
		t = WITHIN(t, how->low, how->high);
		if (how->exponent != 1.0f)
			t = powr(t, how->exponent);
		t = fma(t, how->scale, how->shift);
	}
#ifdef PIXEL_MAX
	return (uint)PIXEL_ROUND_1(t);
#else
	return as_uint(t);
#endif
}

/* Returns the band of a block's sample i; the block begins with one of band `first`. */
FORCE_INLINE uint samples_band(uint first, int i)
{
	return BLOCK_X % BANDS == 0 ? (uint)i % BANDS : (first + i) % BANDS;
}

FORCE_INLINE void samples_direct(uint *made, const uint *words, const struct samples_how *how,
                                 const enum samples_kind kind, uint first)
{
#pragma unroll
	for (int k = 0; k < MIDDLE; k++) {
		made[k] = 0;
#pragma unroll
		for (int i = 0; i < PER_WORD; i++)
			made[k] |= sample_make(how, kind,
			                       SIZE == 4 ? words[k] : words[k] >> 16 * i % 32 & 0xffff,
			                       samples_band(first, k * PER_WORD + i))
			           << 16 * i % 32;
	}
}

/* Joins a byte of a and one of b, of bands that follow each other: selector as PTX's prmt. */
FORCE_INLINE uint bytes_select(uint a, uint b, uint selector)
{
#ifdef __NV_CL_C_VERSION
	uint d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
	return d;
#else
	return permute(a, b, selector);
#endif
}

/* Maps bytes by a work-item's copy of the table. */
FORCE_INLINE void samples_look_up(uint *made, const uint *words, const local uint *table,
                                  const uint *selectors)
{
#pragma unroll
	for (int k = 0; k < MIDDLE; k++) {
		uint found[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
			found[i] = table[(words[k] >> 8 * i & 255) * GROUP_X];
		made[k] = permute(bytes_select(found[0], found[1], selectors[4 * k % BANDS]),
		                  bytes_select(found[2], found[3], selectors[(4 * k + 2) % BANDS]),
		                  0x5410);
	}
}

/* Makes the table, and a copy of it for each work-item across. */
FORCE_INLINE void samples_tabulate(local uint *copies, local uint *table,
                                   const struct samples_how *how, const enum samples_kind kind)
{
	for (uint v = get_local_id(1) * GROUP_X + get_local_id(0); v < VALUES;
	     v += GROUP_X * GROUP_Y) {
		uint word = 0;

#pragma unroll
		for (uint b = 0; b < BANDS; b++)
			word |= sample_make(how, kind, v, b) << 8 * b;
		table[v] = word;
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint v = get_local_id(1); v < VALUES; v += GROUP_Y)
		copies[v * GROUP_X + get_local_id(0)] = table[v];
	barrier(CLK_LOCAL_MEM_FENCE);
}

FORCE_INLINE void samples_block(const global uchar *in, uint src_pitch, global uchar *out,
                                uint dst_pitch, uint width, uint height, uint first,
                                const struct samples_how *how, const enum samples_kind kind,
                                const local uint *table, const bool free)
{
	uint selectors[BANDS];

#pragma unroll
	for (int i = 0; i < BANDS; i++)
		selectors[i] = samples_band(first, i) | (4 + samples_band(first, i + 1)) << 4;
#pragma unroll 1
	for (uint r = 0; r < BLOCK_Y; r += TOGETHER) {
		uint words[TOGETHER][WINDOW], made[MIDDLE];

#pragma unroll
		for (uint i = 0; i < TOGETHER; i++)
			if (free || r + i < height)
				window_load(words[i], in + (ulong)(r + i) * src_pitch, width, free);
#pragma unroll
		for (uint i = 0; i < TOGETHER; i++) {
			if (!free && r + i >= height)
				return;
			if (SIZE == 1)
				samples_look_up(made, words[i], table, selectors);
			else
				samples_direct(made, words[i], how, kind, first);
			window_store(made, out + (ulong)(r + i) * dst_pitch, width, free);
		}
	}
}

#define SAMPLES_TABLES_uchar                                                                       \
	local uint copies[VALUES * GROUP_X];                                                       \
	local uint table[VALUES];
#define SAMPLES_TABLES_ushort local uint *const copies = 0, *const table = 0;
#define SAMPLES_TABLES_float  SAMPLES_TABLES_ushort

/* Runs any of the three kernels. */
#define SAMPLES_MAKE(how, kind)                                                                    \
	PASTE(SAMPLES_TABLES_, PIXEL, )                                                            \
	BLOCK_PLACE                                                                                \
	if (SIZE == 1)                                                                             \
		samples_tabulate(copies, table, &how, kind);                                       \
	if (width == 0 || height == 0)                                                             \
		return;                                                                            \
	if (window_free(in, src_pitch, out, dst_pitch, width, height))                             \
		samples_block(in, src_pitch, out, dst_pitch, width, height, x % BANDS, &how, kind, \
		              copies + get_local_id(0), true);                                     \
	else                                                                                       \
		samples_block(in, src_pitch, out, dst_pitch, width, height, x % BANDS, &how, kind, \
		              copies + get_local_id(0), false);

GPU_KERNEL threshold_wide(REGION_ARGUMENTS, float4 limits, float full, uint by_band, uint keep)
{
	const struct samples_how how = {.limits = limits, .full = full, .by_band = by_band};

	SAMPLES_MAKE(how, THRESHOLD)
}

GPU_KERNEL curve_wide(REGION_ARGUMENTS, float4 gain, float4 bias, float low, float high,
                      float exponent, float scale, float shift, uint by_band, uint keep)
{
	const struct samples_how how = {.gain = gain,
	                                .bias = bias,
	                                .low = low,
	                                .high = high,
	                                .exponent = exponent,
	                                .scale = scale,
	                                .shift = shift,
	                                .by_band = by_band};

	SAMPLES_MAKE(how, CURVE)
}

/* Not for floats, whose tables are interpolated. */
GPU_KERNEL lut_wide(REGION_ARGUMENTS, const global PIXEL *tables, uint count, uint entries,
                    float places, uint keep)
{
	const struct samples_how how = {.tables = tables, .count = count, .entries = entries};

	SAMPLES_MAKE(how, LUT)
}
