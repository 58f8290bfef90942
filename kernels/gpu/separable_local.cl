/* gpu/separable_local.cl: a column filter and a row filter in one kernel, through local memory.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry)) + offset
 *
 * A group makes a tile of GROUP_X * BLOCK_X samples and GROUP_Y * BLOCK_Y rows. First down: its items
 * take turns at chunks of neighbouring samples of the tile and its reach, BLOCK_Y rows each, whose
 * sums go to local memory; each source sample is converted once for these rows. After the barrier
 * across: an item makes its BLOCK_X samples, two rows at a time. Any type, any weights (PLAIN);
 * for radii too large for registers. Local memory: GROUP_Y * BLOCK_Y rows of
 * GROUP_X * BLOCK_X + 2 * LEFT floats. BLOCK_Y is even, BLOCK_X a multiple of 4.
 *
 * Sums of many terms are taken in parts of at most SEPARABLE_TERMS, so that their rounding errors do
 * not grow with the radius. */

/* Terms of a sum that are added directly. */
#ifndef SEPARABLE_TERMS
#define SEPARABLE_TERMS 64
#endif

enum {
	CHUNK = 8,
	CHUNK_WORDS = CHUNK / PER_WORD,
	LEFT = (REACH + 7) / 8 * 8, /* a row's samples before the tile's first */
	ACROSS = GROUP_X * BLOCK_X,
	STRIDE = ACROSS + 2 * LEFT,
	CHUNKS = STRIDE / CHUNK,
	WINDOW_START = (LEFT - REACH) & ~3, /* the aligned place of an item's first tap */
	WINDOW_SKIP = (LEFT - REACH) & 3
};

/* Loads the chunk `at` bytes from p, of which those in [low, high] are needed. `free`: p is aligned to
 * chunks, or to 16 bytes. */
FORCE_INLINE void chunk_load(uint *words, const global uchar *p, int at, int low, int high,
                             const bool free)
{
	const uint shift = free ? 0 : (uint)(size_t)p & 3;
	const global uchar *base = p - shift;

	if (free && at >= low && at + CHUNK * SIZE - 1 <= high) {
		p += at;
		if (CHUNK_WORDS == 2) {
			const uint2 v = *(const global uint2 *)p;

			words[0] = v.x, words[1] = v.y;
			return;
		}
#pragma unroll
		for (int i = 0; i + 4 <= CHUNK_WORDS; i += 4) {
			const uint4 v = *(const global uint4 *)(p + 4 * i);

			words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
		}
		return;
	}
	low += (int)shift, high += (int)shift;
#pragma unroll
	for (int i = 0; i < CHUNK_WORDS; i++) {
		words[i] = *(const global uint *)(base + (clamp(at + 4 * i, low, high) & ~3));
		if (!free) {
			const uint next =
			    *(const global uint *)(base + (clamp(at + 4 * i + 4, low, high) & ~3));

			words[i] = (uint)(((ulong)next << 32 | words[i]) >> (8 * shift));
		}
	}
}

/* Adds source row s of a chunk to its sums; `checked`: only to those whose windows it is in. */
FORCE_INLINE void down_add(float sum[BLOCK_Y][CHUNK], int s, const uint *words, constant float *column,
                           const bool checked)
{
	float v[CHUNK];

#pragma unroll
	for (int i = 0; i < CHUNK; i++)
		v[i] = window_float(words, i);
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
		if (!checked || (uint)(s - r) < TAPS_Y) {
			const float weight = column[s - r];

#pragma unroll
			for (int i = 0; i < CHUNK; i++)
				sum[r][i] = fma(v[i], weight, sum[r][i]);
		}
}

/* Issues the load of the next row, then adds row s. */
#define DOWN_STEP(checked)                                                                         \
	for (int i = 0; i < CHUNK_WORDS; i++)                                                      \
		words[i] = next[i];                                                                \
	chunk_load(next, top + (ulong)min(s + 1, count - 1) * pitch, at, low, high, free);         \
	down_add(sum, s, words, column, checked);

/* The sums down of a chunk, BLOCK_Y rows of them, to local memory. */
FORCE_INLINE void down(local float *to, const global uchar *top, uint pitch, int at, int low, int high,
                       int count, constant float *column, const bool free)
{
	float total[BLOCK_Y][CHUNK], sum[BLOCK_Y][CHUNK];
	uint words[CHUNK_WORDS], next[CHUNK_WORDS];

#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
		for (int i = 0; i < CHUNK; i++)
			total[r][i] = sum[r][i] = 0.0f;
	chunk_load(next, top, at, low, high, free);
#pragma unroll 1
	for (int first = 0; first < count; first += SEPARABLE_TERMS) {
		const int end = TAPS_Y <= SEPARABLE_TERMS ? count : min(count, first + SEPARABLE_TERMS);
		const int inner = max(first, BLOCK_Y - 1), outer = min(end, (int)TAPS_Y);
		int s = first;

#pragma unroll 1
		for (; s < min(end, inner); s++) {
			DOWN_STEP(true)
		}
#pragma unroll 2
		for (; s < outer; s++) {
			DOWN_STEP(false)
		}
#pragma unroll 1
		for (; s < end; s++) {
			DOWN_STEP(true)
		}
		if (TAPS_Y <= SEPARABLE_TERMS)
			break;
#pragma unroll
		for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
			for (int i = 0; i < CHUNK; i++) {
				total[r][i] += sum[r][i];
				sum[r][i] = 0.0f;
			}
	}
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
		for (int i = 0; i < CHUNK; i += 4) {
			const float *part = TAPS_Y <= SEPARABLE_TERMS ? sum[r] + i : total[r] + i;

			*(local float4 *)(to + r * STRIDE + i) =
			    (float4)(part[0], part[1], part[2], part[3]);
		}
}

/* The sums across of BLOCK_X samples of two rows, p being the aligned place of the first one's first tap. */
FORCE_INLINE void across(float result[2][BLOCK_X], const local float *p, constant float *row,
                         float offset)
{
	float v[2][BLOCK_X + 2 * REACH + 8], part[2][BLOCK_X];

#pragma unroll
	for (int j = 0; j < 2; j++) {
#pragma unroll
		for (int i = 0; i < BLOCK_X + 2 * REACH + WINDOW_SKIP; i += 4) {
			const float4 four = *(const local float4 *)(p + j * STRIDE + i);

			v[j][i] = four.x, v[j][i + 1] = four.y, v[j][i + 2] = four.z, v[j][i + 3] = four.w;
		}
#pragma unroll
		for (int i = 0; i < BLOCK_X; i++)
			result[j][i] = offset, part[j][i] = 0.0f;
	}
#pragma unroll
	for (int k = 0; k < TAPS_X; k++) {
		const float weight = row[k];

#pragma unroll
		for (int j = 0; j < 2; j++)
#pragma unroll
			for (int i = 0; i < BLOCK_X; i++) {
				part[j][i] = fma(v[j][WINDOW_SKIP + i + k * BANDS], weight, part[j][i]);
				if (k == TAPS_X - 1 || k % SEPARABLE_TERMS == SEPARABLE_TERMS - 1) {
					result[j][i] += part[j][i];
					part[j][i] = 0.0f;
				}
			}
	}
}

GPU_KERNEL separable_local(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                           uint keep)
{
	local float tile[GROUP_Y * BLOCK_Y * STRIDE] __attribute__((aligned(16)));
	local float *const mine = tile + get_local_id(1) * BLOCK_Y * STRIDE;
	const uint left = get_group_id(0) * ACROSS;

	BLOCK_PLACE
	const global uchar *const top = in - (long)(x - left) * SIZE - (long)RADIUS_Y * (long)src_pitch;
	const int low = -REACH * SIZE;
	const int high = (int)(min(samples - left, (uint)ACROSS) + REACH) * SIZE - 1;
	const int count = (int)min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const bool wide = (((uint)(size_t)top | src_pitch) & (SIZE == 1 ? 7 : 15)) == 0;

	if (height != 0)
		for (int c = get_local_id(0); c < CHUNKS; c += GROUP_X) {
			const int at = (c * CHUNK - LEFT) * SIZE;

			if (wide)
				down(mine + c * CHUNK, top, src_pitch, at, low, high, count,
				     weights + TAPS_X, true);
			else
				down(mine + c * CHUNK, top, src_pitch, at, low, high, count,
				     weights + TAPS_X, false);
		}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (width == 0 || height == 0)
		return;

	const bool free = window_free(in, src_pitch, out, dst_pitch, width, height);

#pragma unroll 1
	for (int r = 0; r < BLOCK_Y; r += 2) {
		float v[2][BLOCK_X];

		across(v, mine + r * STRIDE + get_local_id(0) * BLOCK_X + WINDOW_START, weights, offset);
#pragma unroll
		for (int j = 0; j < 2; j++) {
			uint result[MIDDLE], words[WINDOW];

			if ((uint)(r + j) >= height)
				return;
			window_pack(result, v[j]);
			if (KEEP != 0) {
				window_load(words, in + (ulong)(r + j) * src_pitch, width, false);
				window_keep(result, words, x);
			}
			if (free)
				window_store(result, out + (ulong)(r + j) * dst_pitch, width, true);
			else
				window_store(result, out + (ulong)(r + j) * dst_pitch, width, false);
		}
	}
}
