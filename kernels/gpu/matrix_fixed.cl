/* gpu/matrix_fixed.cl: any matrix of odd sides, gray bytes and fixed-point weights on NVIDIA's
 * matrix units.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * A warp makes 128 samples of BLOCK_Y rows, each row as 16 blocks of 8 samples, by mma.m16n8k32 of
 * bytes into integers ("PTX ISA", section 9.7.14, has its layouts; lane = 4 g + t):
 *
 * E(16 blocks, 8 samples) += bytes(16 blocks, 32 of their windows) * weights(32, 8 samples)
 *
 * A block's window is its samples and SPAN more to each side: 4 words if SPAN is 4, and then the 32
 * bytes are those of two source rows; else 6 words of one row, and two more of weight 0. A lane
 * holds a quad of words, of blocks g and g + 8: word t of the two rows, or words t and t + 4 of the
 * row. The quads of two rows serve even and odd results: the weights of the odd ones are a row
 * lower. Quads stay in registers, in a ring whose places are known to the compiler.
 *
 * Weights are integers of 16 bits, times 2^shift (STRIPS). Their upper bytes, signed, and lower
 * bytes make products of their own, exactly; a lane gets two samples each of blocks g and g + 8,
 * and trades with its neighbour for a word. BANDS is 1, BLOCK_X 4, BLOCK_Y even, GROUP_X a multiple
 * of 32. The error before the rounding to bytes is at most the sum of
 *
 *   - 255 * the larger of the sums of the weights' positive and of their negative rounding errors
 *   - 2^-shift + 2^-24 * the offset's magnitude, for the offset
 *
 * If it is less than 1, no result is wrong by more than 1. */

#ifdef HAS_WARPS

/* Quads whose loads are issued before they are needed. */
#ifndef QUADS_AHEAD
#define QUADS_AHEAD 1
#endif

enum {
	ACROSS = 128,
	SPAN = MATRIX_FIXED_SPAN(REACH),
	WORD_LOW = (SPAN - REACH) / 4, /* the window's words that contain the block's reach */
	WORD_HIGH = (SPAN + 7 + REACH) / 4,
	QUAD_ROWS = SPAN == 4 ? 2 : 1,
	QUADS = QUAD_ROWS == 2 ? RADIUS_Y + 1 : TAPS_Y, /* for a row of results */
	QUADS_HELD = QUADS + QUADS_AHEAD,
	STRIP = MATRIX_FIXED_STRIP(REACH), /* words of a row of weights */
	STRIP_ROWS = TAPS_Y + 2            /* zeros above and below */
};

/* Saturates a and b to bytes; above them the lower half of c. */
FORCE_INLINE uint saturate_pair(int a, int b, uint c)
{
#ifdef __NV_CL_C_VERSION
	uint d;

	asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(b), "r"(a), "r"(c));
	return d;
#else
	return c << 16 | (uint)clamp(b, 0, 255) << 8 | (uint)clamp(a, 0, 255);
#endif
}

/* permute() with a selector that only the lane knows. */
FORCE_INLINE uint permute_by(uint a, uint b, uint s)
{
#ifdef __NV_CL_C_VERSION
	uint d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(s));
	return d;
#else
	return permute(a, b, s);
#endif
}

/* A warp's view of its tile. */
struct tile {
	const global uchar *in; /* the first result's sample */
	uint pitch;
	int width, last_row; /* inside the region; the last that is needed */
	int word[2];         /* the lane's places in a row: of block g, word t, and t + 4 */
	int shift, bias;
	uint halves; /* the sample, its own or its neighbour's, that the lane keeps */
};

/* A lane's shares of the weights, for even and for odd rows. */
struct shares {
	uint upper[QUAD_ROWS][QUADS][2], lower[QUAD_ROWS][QUADS][2];
};

FORCE_INLINE void shares_load(struct shares *shares, const global uint *strips, int g, int t)
{
#pragma unroll
	for (int odd = 0; odd < QUAD_ROWS; odd++)
#pragma unroll
		for (int k = 0; k < QUADS; k++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				const int row = QUAD_ROWS == 2 ? 2 * k + i - odd : k;
				const int at = (row + 1) * STRIP + 7 + 4 * t - g +
				               (QUAD_ROWS == 2 ? 0 : 16 * i);

				shares->upper[odd][k][i] = strips[at];
				shares->lower[odd][k][i] = strips[STRIP_ROWS * STRIP + at];
			}
}

/* Returns the word `at` bytes from p; for one that is not aligned, its part in [-REACH, last]. */
FORCE_INLINE uint word_load(const global uchar *p, int at, int last, const bool free)
{
	if (free)
		return word_near(p + at);

	const int shift = (int)((uint)(size_t)p & 3), low = shift - REACH, high = shift + last;
	const uint first = *(const global uint *)(p - shift + (clamp(at, low, high) & ~3));
	const uint next = *(const global uint *)(p - shift + (clamp(at + 4, low, high) & ~3));

	return (uint)(((ulong)next << 32 | first) >> (8 * shift));
}

/* Loads a quad: source row `row`, the first that the tile needs being 0, or rows `row` and row + 1.
 */
FORCE_INLINE void quad_load(uint *quad, const struct tile *tile, int row, const bool free)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		const int wanted = row + (QUAD_ROWS == 2 ? i : 0);
		const int down = (free ? wanted : min(wanted, tile->last_row)) - RADIUS_Y;
		const global uchar *p = tile->in + (long)down * (long)tile->pitch;
		const int at = tile->word[QUAD_ROWS == 2 ? 0 : i];

		quad[2 * i] = word_load(p, at, tile->width - 1 + REACH, free);
		quad[2 * i + 1] = word_load(p, at + ACROSS / 2, tile->width - 1 + REACH, free);
	}
}

/* Returns the lane's word of a row whose first quad is in place m of the ring. */
FORCE_INLINE uint row_make(uint ring[QUADS_HELD][4], const int m, const int held,
                           uint upper[QUADS][2], uint lower[QUADS][2], const struct tile *tile)
{
	int sum[4] = {0, 0, 0, 0};
	uint own;

#pragma unroll
	for (int k = 0; k < QUADS; k++)
		mma_signed(sum, ring[(m + k) % held], upper[k]);
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum[i] = sum[i] * 256 + tile->bias;
#pragma unroll
	for (int k = 0; k < QUADS; k++)
		mma_bytes(sum, ring[(m + k) % held], lower[k]);
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum[i] >>= tile->shift;
	own = saturate_pair(sum[0], sum[1], saturate_pair(sum[2], sum[3], 0));
	return permute_by(own, neighbour_get(own), tile->halves);
}

/* Stores the lane's word of a row at sample `at`; `width` of its samples are inside the region. */
FORCE_INLINE void word_store(uint v, global uchar *out, int at, int width, const bool free)
{
	if (free) {
		*(global uint *)(out + at) = v;
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (at + i < width)
			out[at + i] = (uchar)(v >> 8 * i);
}

FORCE_INLINE void tile_filter(const struct tile *tile, const global uint *strips, int g, int t,
                              global uchar *out, uint dst_pitch, int height, int at,
                              const bool free)
{
	const int count = free ? BLOCK_Y : height;
	const int held = QUADS + (free ? QUADS_AHEAD : 0);
	uint ring[QUADS_HELD][4];
	struct shares shares;

#pragma unroll
	for (int i = 0; i < held - 1; i++)
		quad_load(ring[i], tile, QUAD_ROWS * i, free);
	shares_load(&shares, strips, g, t);
#pragma unroll 1
	for (int s = 0; s < count; s += QUAD_ROWS * held)
#pragma unroll
		for (int m = 0; m < held; m++) {
			const int first = s + QUAD_ROWS * m;

			if (first >= count)
				return;
			if (!free || first + QUAD_ROWS * (held - 1) < BLOCK_Y + 2 * RADIUS_Y)
				quad_load(ring[(m + held - 1) % held], tile,
				          first + QUAD_ROWS * (held - 1), free);
#pragma unroll
			for (int odd = 0; odd < QUAD_ROWS; odd++) {
				const ulong r = (ulong)(first + odd);
				const uint v = row_make(ring, m, held, shares.upper[odd],
				                        shares.lower[odd], tile);

				if (first + odd < count)
					word_store(v, out + r * dst_pitch, at, tile->width,
					           free);
			}
		}
}

GPU_KERNEL matrix_fixed(REGION_ARGUMENTS, const global int *weights, uint rx, uint ry, float offset,
                        uint keep)
{
	typedef char shape_check[GROUP_X % 32 == 0 && BLOCK_X == 4 && BLOCK_Y % 2 == 0 &&
	                                 REACH <= 8 && SIZE == 1 && BANDS == 1
	                             ? 1
	                             : -1];
	const int lane = get_local_id(0) % 32, g = lane / 4, t = lane % 4;
	const uint x = (get_global_id(0) - lane) * BLOCK_X, y = get_global_id(1) * BLOCK_Y;
	const int at = 8 * g + (t % 2 ? ACROSS / 2 + 2 * (t - 1) : 2 * t);
	struct tile tile;

	if (x >= samples || y >= rows)
		return;

	global uchar *out = dst + dst_offset + (ulong)y * dst_pitch + x;
	const int height = (int)min(rows - y, (uint)BLOCK_Y);

	tile.in = src + src_offset + (ulong)y * src_pitch + x;
	tile.pitch = src_pitch;
	tile.width = (int)min(samples - x, (uint)ACROSS);
	tile.last_row = height - 1 + 2 * RADIUS_Y;
#pragma unroll
	for (int i = 0; i < 2; i++)
		tile.word[i] = 8 * g + 4 * clamp(t + 4 * i, (int)WORD_LOW, (int)WORD_HIGH) - SPAN;
	tile.shift = weights[0];
	tile.bias = convert_int_rte(offset * (float)(1 << tile.shift)) + (1 << (tile.shift - 1));
	tile.halves = t % 2 ? 0x3276 : 0x5410;
	if ((((uint)(size_t)tile.in | (uint)(size_t)out | src_pitch | dst_pitch) & 3) == 0 &&
	    tile.width == ACROSS && height == BLOCK_Y)
		tile_filter(&tile, (const global uint *)weights + 1, g, t, out, dst_pitch,
		            height, at, true);
	else
		tile_filter(&tile, (const global uint *)weights + 1, g, t, out, dst_pitch,
		            height, at, false);
}

#endif
