/* gpu/bilateral_table.cl: the bilateral filter of gray bytes, with weights from a table.
 *
 * out = c + sum of w * (p - c) / sum of w, over the p within RADIUS_X of c, with
 * w = exp2(space * (i² + j²)) * exp2(range * (p - c)²)
 *
 * A group's table, in local memory, has for each difference d = p - c from -D_MAX to D_MAX the pair
 * of halves exp2(range * d²) and d times it, in COPIES copies, one for each bank, so that lanes
 * never wait for each other. A tap is an address (one instruction, as bytes come times the table's
 * stride), a load and a sum of pairs. Farther differences weigh nothing.
 *
 * A work-item makes BLOCK_X samples of BLOCK_Y rows, one after another; the group's items of one
 * place across take the rows in turns. Taps of a source row are summed in halves, the pairs at
 * equal distance first, and rows in floats.
 *
 * With u = 2^-11, each weight and each product has a relative error of at most (RADIUS_X + 4) * u
 * when it is in its row's sum. With M the largest possible mean of |d|, the error before the
 * rounding to bytes is at most
 *
 *   2.01 * (RADIUS_X + 4) * u * M + taps * (2^-16 + exp2(range * D_MAX²) * 255)
 *
 * If it is less than 1, no result is wrong by more than 1. */

/* Windows of small radii are unrolled: 0.56 ms instead of 0.69 on an H200, radius 4, 8192². */
#if RADIUS_X <= 4
#define ROWS_UNROLLED (2 * RADIUS_X + 1)
#else
#define ROWS_UNROLLED 1
#endif

enum {
	COPIES = 32,
	D_MAX = BILATERAL_TABLE_DISTANCE,
	ENTRIES = 2 * D_MAX + 1, /* the first and the last are 0 */
	STRIDE = 4 * COPIES      /* bytes */
};

/* Returns the entry at `at` bytes, or the last one. */
FORCE_INLINE uint table_get(const local uint *table, uint at, uint last)
{
	at = min(at, last);
#ifdef __NV_CL_C_VERSION
	uint v;

	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"((uint)(size_t)table + at));
	return v;
#else
	return table[at / 4];
#endif
}

FORCE_INLINE void table_make(local uint *table, float range, uint item)
{
	for (uint i = item; i < ENTRIES; i += GROUP_X * GROUP_Y) {
		const float d = (float)((int)i - D_MAX);
		const float w = i == 0 || i == ENTRIES - 1 ? 0.0f : fast_exp2(d * d * range);
		const uint pair = float_half2((float2)(w, w * d));

#pragma unroll
		for (int k = 0; k < COPIES; k++)
			table[i * COPIES + (k + i) % COPIES] = pair;
	}
}

/* Returns byte i of a window times STRIDE. */
FORCE_INLINE uint window_scaled(const uint *w, int i)
{
	const int place = 8 * (i % 4);
#ifdef __NV_CL_C_VERSION
	uint d;

	asm("dp4a.u32.u32 %0, %1, %2, 0;" : "=r"(d) : "r"(w[i / 4]), "r"((uint)STRIDE << place));
	return d;
#else
	return (w[i / 4] >> place & 255) * STRIDE;
#endif
}

/* A row of results: its centres' distance from the bytes' places in the table, and the sums of its
 * taps. */
struct row {
	uint from[BLOCK_X];
	float weight[BLOCK_X], product[BLOCK_X];
};

/* Adds the source row j below the row of results. */
FORCE_INLINE void row_add(struct row *row, const uint *words, int j, const local uint *table,
                          uint last, const uint *across, float down)
{
	uint at[WINDOW * 4], part[BLOCK_X];

#pragma unroll
	for (int i = FIRST - REACH; i < FIRST + BLOCK_X + REACH; i++)
		at[i] = window_scaled(words, i);
#pragma unroll
	for (int i = 0; i < BLOCK_X; i++)
		part[i] = table_get(table, at[FIRST + i] + row->from[i], last);
#pragma unroll
	for (int k = 1; k <= RADIUS_X; k++)
		if (k * k + j * j <= RADIUS_X * RADIUS_X) {
#pragma unroll
			for (int i = 0; i < BLOCK_X; i++)
				part[i] = half2_fma(
				    half2_add(
				        table_get(table, at[FIRST + i - k] + row->from[i], last),
				        table_get(table, at[FIRST + i + k] + row->from[i], last)),
				    across[k], part[i]);
		}
#pragma unroll
	for (int i = 0; i < BLOCK_X; i++) {
		const float2 sum = half2_float(part[i]);

		row->weight[i] = fma(sum.x, down, row->weight[i]);
		row->product[i] = fma(sum.y, down, row->product[i]);
	}
}

/* Makes one row of a block. */
FORCE_INLINE void row_filter(const global uchar *in, uint src_pitch, global uchar *out, uint width,
                             const local uint *table, uint lane, float space, const uint *across,
                             const bool free)
{
	const uint last = (ENTRIES - 1) * STRIDE + 4 * lane;
	uint words[WINDOW], result[MIDDLE];
	float v[BLOCK_X];
	struct row row;

	window_load(words, in, width, free);
#pragma unroll
	for (int i = 0; i < BLOCK_X; i++) {
		row.from[i] = D_MAX * STRIDE + 4 * lane - window_scaled(words, FIRST + i);
		row.weight[i] = row.product[i] = 0.0f;
	}
#pragma unroll ROWS_UNROLLED
	for (int j = -RADIUS_X; j <= RADIUS_X; j++) {
		window_load(words, in + (long)j * (long)src_pitch, width, free);
		row_add(&row, words, j, table, last, across, fast_exp2(space * (float)(j * j)));
	}
	window_load(words, in, width, free);
#pragma unroll
	for (int i = 0; i < BLOCK_X; i++)
		v[i] = window_float(words, FIRST + i) + row.product[i] / row.weight[i];
	window_pack(result, v);
	window_store(result, out, width, free);
}

GPU_KERNEL bilateral_table(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha,
                           uint keep)
{
	local uint table[BILATERAL_TABLE_WORDS];
	const uint item = get_local_id(1) * GROUP_X + get_local_id(0);
	const uint x = get_global_id(0) * BLOCK_X;
	uint across[RADIUS_X + 1];

	table_make(table, range, item);
	barrier(CLK_LOCAL_MEM_FENCE);
	if (x >= samples)
		return;
#pragma unroll
	for (int k = 1; k <= RADIUS_X; k++)
		across[k] = float_half2((float2)(fast_exp2(space * (float)(k * k))));
#pragma unroll 1
	for (uint r = 0; r < BLOCK_Y; r++) {
		const uint y = (get_group_id(1) * BLOCK_Y + r) * GROUP_Y + get_local_id(1);
		const global uchar *in = src + src_offset + (ulong)y * src_pitch + x;
		global uchar *out = dst + dst_offset + (ulong)y * dst_pitch + x;
		const uint places = (uint)(size_t)in | (uint)(size_t)out;

		if (y >= rows)
			return;
		if ((places & (WIDE ? 15 : 7)) == 0 && samples - x >= BLOCK_X)
			row_filter(in, src_pitch, out, samples - x, table, item % COPIES, space,
			           across, true);
		else
			row_filter(in, src_pitch, out, samples - x, table, item % COPIES, space,
			           across, false);
	}
}
