/* gpu/matrix_mma.cl: any matrix of odd sides, bytes on NVIDIA's matrix units.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * Each row of the matrix is a product with a banded matrix, made by mma.m16n8k16 of halves into
 * floats
 * ("PTX ISA", section 9.7.14, has its layouts; lane = 4 g + t):
 *
 * E(16 rows, 8 samples) += bytes(16 rows from row j on, K samples) * row j's weights(K samples, 8
 * samples)
 *
 * A warp makes 32 rows by 32 * BLOCK_X samples, in steps of 32 samples, from the group's tile in
 * local memory, whose stride keeps lanes out of each other's banks. A step is two halves of 16
 * samples; of each half product p makes the samples 4 t + 2 p + (0, 1), so that a lane has a word
 * of neighbours. Of the 16 samples of a left-hand side, k = 2 t, 2 t + 1, 2 t + 8, 2 t + 9 are the
 * samples 4 t .. 4 t + 3, a word too. The halves' weights are the same, 16 samples apart.
 *
 * Bytes are the halves with the same bits (see half2_ in window.cl), weights are times 2^12. For
 * weights of magnitude below 15.9, each as a half float, twice in a word (HALF2); any offset.
 * GROUP_X is 32, BLOCK_Y 32. Local memory: see local.h. The error before the rounding to bytes is at most the sum of
 *
 *   - 255 * the larger of the sums of the weights' positive and of their negative rounding errors
 *   - 255 * sum of the weights' magnitudes * (weights + 2) * 2^-23 (sums in floats)
 *
 * If it is less than 1, no result is wrong by more than 1. */

#ifdef HAS_WARPS

enum {
	LANES = GROUP_X * GROUP_Y,
	SPAN = MATRIX_MMA_SPAN(REACH),            /* samples from a step's first to the first it reads */
	PRODUCTS = 1 + SPAN / 8,                  /* of 16 samples, for 16 results */
	WORDS = MATRIX_MMA_WORDS(BLOCK_X, REACH), /* of a row of the tile */
	STRIDE = MATRIX_MMA_STRIDE(BLOCK_X, REACH),
	TILE_ROWS = MATRIX_MMA_ROWS(GROUP_Y, RADIUS_Y),
	PAD = MATRIX_MMA_PAD(REACH), /* zeros on both sides of a row's weights */
	PAIRS_STRIDE = MATRIX_MMA_PAIRS(REACH)
};

/* Loads the tile whose first result is at `in`, of which `width` samples and `height` rows are
 * inside the region. */
FORCE_INLINE void tile_load(local uint *tile, const global uchar *in, uint pitch, uint width,
                            uint height, uint item)
{
	const global uchar *top = in - (long)RADIUS_Y * (long)pitch;
	const uint last_row = min(height, 32u * GROUP_Y) - 1 + 2 * RADIUS_Y;
	const int last = (int)min(width, 32u * BLOCK_X) - 1 + REACH;

#pragma unroll 4
	for (uint i = item; i < TILE_ROWS * WORDS; i += LANES) {
		const uint row = i / WORDS, word = i % WORDS;
		const global uchar *p = top + (ulong)min(row, last_row) * pitch;
		const int shift = (int)((uint)(size_t)p & 3), at = (int)(4 * word) - SPAN;
		const int low = shift - REACH, high = shift + last;
		uint v = *(const global uint *)(p - shift + (clamp(at, low, high) & ~3));

		if (shift != 0) {
			const uint next =
			    *(const global uint *)(p - shift + (clamp(at + 4, low, high) & ~3));

			v = (uint)(((ulong)next << 32 | v) >> (8 * shift));
		}
		tile[row * STRIDE + word] = v;
	}
}

/* Lays out the weights: pairs of neighbours in a row, BANDS - 1 zeros between any two, zeros
 * around. */
FORCE_INLINE void pairs_load(local uint *pairs, constant uint *weights, uint item)
{
	for (uint i = item; i < TAPS_Y * PAIRS_STRIDE; i += LANES) {
		const uint row = i / PAIRS_STRIDE;
		uint pair[2];

#pragma unroll
		for (int k = 0; k < 2; k++) {
			const int d = (int)(i % PAIRS_STRIDE) - PAD + k;

			pair[k] =
			    d >= 0 && d <= 2 * REACH && d % BANDS == 0
			        ? half2_mul(weights[row * TAPS_X + d / BANDS], HALF2_SCALE(12))
			        : 0;
		}
		pairs[i] = permute(pair[0], pair[1], 0x5410);
	}
}

/* The sums of a step: of two times 16 rows, two halves, two products. */
struct sums {
	float of[2][2][2][4];
};

/* Adds a row of the matrix. p: the lane's first word of the tile, pairs: its place among the row's.
 */
FORCE_INLINE void step_add(struct sums *sums, const local uint *p, const local uint *pairs)
{
	uint right[PRODUCTS][2][2];

#pragma unroll
	for (int k = 0; k < PRODUCTS; k++)
#pragma unroll
		for (int q = 0; q < 2; q++)
#pragma unroll
			for (int i = 0; i < 2; i++)
				right[k][q][i] = pairs[16 * k + 2 * i - 2 * q];
#pragma unroll
	for (int k = 0; k <= PRODUCTS; k++)
#pragma unroll
		for (int r = 0; r < 2; r++) {
			uint left[4];

#pragma unroll
			for (int i = 0; i < 2; i++) {
				const uint word = p[(16 * r + 8 * i) * STRIDE + 4 * k];

				left[i] = permute(word, 0, 0x4140);
				left[2 + i] = permute(word, 0, 0x4342);
			}
#pragma unroll
			for (int q = 0; q < 2; q++) {
				if (k < PRODUCTS)
					mma_halves(sums->of[r][0][q], left, right[k][q]);
				if (k > 0)
					mma_halves(sums->of[r][1][q], left, right[k - 1][q]);
			}
		}
}

/* Stores a lane's word from sample x on, of which `width` samples are inside the region. */
FORCE_INLINE void word_store(uint v, global uchar *p, int width)
{
	if (width >= 4 && ((size_t)p & 3) == 0) {
		*(global uint *)p = v;
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (i < width)
			p[i] = (uchar)(v >> 8 * i);
}

GPU_KERNEL matrix_mma(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                      uint keep)
{
	typedef char shape_check[GROUP_X == 32 && BLOCK_Y == 32 && SIZE == 1 ? 1 : -1];
	local uint tile[TILE_ROWS * STRIDE], pairs[TAPS_Y * PAIRS_STRIDE];
	const uint item = get_local_id(1) * GROUP_X + get_local_id(0);
	const uint x = get_group_id(0) * 32 * BLOCK_X, top = get_group_id(1) * GROUP_Y * 32;
	const uint down = get_local_id(1) * 32, y = top + down;
	const int g = get_local_id(0) / 4, t = get_local_id(0) % 4;
	const local uint *first = tile + (down + g) * STRIDE + t;
	const local uint *lane_pairs = pairs + PAD - SPAN + REACH + 4 * t - (4 * (g / 2) + g % 2);

	tile_load(tile, src + src_offset + (ulong)top * src_pitch + x, src_pitch, samples - x,
	          rows - top, item);
	pairs_load(pairs, weights, item);
	barrier(CLK_LOCAL_MEM_FENCE);
	if (y >= rows)
		return;
#pragma unroll 1
	for (uint s = 0; s < min((uint)BLOCK_X, (samples - x + 31) / 32); s++) {
		struct sums sums;

#pragma unroll
		for (int i = 0; i < 32; i++)
			sums.of[i / 16][i / 8 % 2][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll 1
		for (int j = 0; j < TAPS_Y; j++)
			step_add(&sums, first + j * STRIDE + 8 * s, lane_pairs + j * PAIRS_STRIDE);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			const int r = i / 4, half_row = i / 2 % 2, h = i % 2;
			const uint row = y + 16 * r + 8 * half_row + g,
			           at = x + 32 * s + 16 * h + 4 * t;
			const uint own = first[(16 * r + 8 * half_row + RADIUS_Y) * STRIDE + 8 * s +
			                       SPAN / 4 + 4 * h];
			uint v[4];

#pragma unroll
			for (int k = 0; k < 4; k++) {
				const float sum = sums.of[r][h][k / 2][2 * half_row + k % 2];

				v[k] = SAMPLE_ROUND(fma(sum, 4096.0f, offset));
				if (KEEP != 0 && (KEEP >> ((at + k) % BANDS) & 1) != 0)
					v[k] = own >> 8 * k;
			}
			if (row < rows && at < samples)
				word_store(permute(permute(v[0], v[1], 0x0040),
				                   permute(v[2], v[3], 0x0040), 0x5410),
				           dst + dst_offset + (ulong)row * dst_pitch + at,
				           (int)(samples - at));
		}
	}
}

#endif
