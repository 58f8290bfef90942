/* gpu/separable_local.cl: a column filter and a row filter in one kernel, through local memory.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry)) +
 * offset
 *
 * A group makes a tile of GROUP_X * BLOCK_X samples and GROUP_Y * BLOCK_Y rows. First down: its
 * items take turns at chunks of neighbouring samples of the tile and its reach, BLOCK_Y rows each,
 * whose sums go to local memory; each source sample is converted once for these rows. After the
 * barrier across: an item makes its BLOCK_X samples, two rows at a time. Any type, any weights
 * (PLAIN); for radii too large for registers. Local memory: see local.h. BLOCK_Y is even, BLOCK_X a
 * multiple of 4.
 *
 * Sums of many terms are taken in parts of at most SEPARABLE_TERMS, so that their rounding errors
 * do not grow with the radius. */

/* Terms of a sum that are added directly. */
#ifndef SEPARABLE_TERMS
#define SEPARABLE_TERMS 64
#endif

/* Column filters of up to this many taps are unrolled. */
#ifndef SEPARABLE_UNROLLED
#define SEPARABLE_UNROLLED 33
#endif

enum {
	LEFT = SEPARABLE_LOCAL_LEFT(REACH), /* a row's samples before the tile's first */
	ACROSS = GROUP_X * BLOCK_X,
	STRIDE = SEPARABLE_LOCAL_STRIDE(GROUP_X, BLOCK_X, REACH),
	CHUNKS = STRIDE / CHUNK,
	WINDOW_START = (LEFT - REACH) & ~3, /* the aligned place of an item's first tap */
	WINDOW_SKIP = (LEFT - REACH) & 3
};

/* Adds source row s of a chunk to its sums; `checked`: only to those whose windows it is in. */
FORCE_INLINE void down_add(float sum[BLOCK_Y][CHUNK], int s, const uint *words,
                           constant float *column, const bool checked)
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

FORCE_INLINE void down_store(local float *to, float sum[BLOCK_Y][CHUNK])
{
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
		*(local float4 *)(to + r * STRIDE) =
		    (float4)(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
}

/* Issues the load of the next row, then adds row s. */
#define DOWN_STEP(checked)                                                                         \
	for (int i = 0; i < CHUNK_WORDS; i++)                                                      \
		words[i] = next[i];                                                                \
	if (free)                                                                                  \
		chunk_load(next, top + (ulong)min(s + 1, count - 1) * pitch + at);                 \
	else                                                                                       \
		chunk_gather(next, top + (ulong)min(s + 1, count - 1) * pitch, at, low, high);     \
	down_add(sum, s, words, column, checked);

/* Sums a chunk down, BLOCK_Y rows of it, into local memory. `free`: it is aligned, and all of it
 * may be read. */
FORCE_INLINE void down(local float *to, const global uchar *top, uint pitch, int at, int low,
                       int high, int count, constant float *column, const bool free)
{
	float total[BLOCK_Y][CHUNK], sum[BLOCK_Y][CHUNK];
	uint words[CHUNK_WORDS], next[CHUNK_WORDS];

#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
		for (int i = 0; i < CHUNK; i++)
			total[r][i] = sum[r][i] = 0.0f;
	if (free && TAPS_Y <= SEPARABLE_UNROLLED) {
#pragma unroll
		for (int s = 0; s < ROWS_IN; s++) {
			chunk_load(words, top + (ulong)s * pitch + at);
			down_add(sum, s, words, column, true);
		}
		down_store(to, sum);
		return;
	}
	if (free)
		chunk_load(next, top + at);
	else
		chunk_gather(next, top, at, low, high);
#pragma unroll 1
	for (int first = 0; first < count; first += SEPARABLE_TERMS) {
		const int end =
		    TAPS_Y <= SEPARABLE_TERMS ? count : min(count, first + SEPARABLE_TERMS);
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
	down_store(to, TAPS_Y <= SEPARABLE_TERMS ? sum : total);
}

/* Sums BLOCK_X samples of two rows across; p is the aligned place of the first one's first tap. */
FORCE_INLINE void across(float result[2][BLOCK_X], const local float *p, constant float *row,
                         float offset)
{
	float v[2][BLOCK_X + 2 * REACH + 8], part[2][BLOCK_X];

#pragma unroll
	for (int j = 0; j < 2; j++) {
#pragma unroll
		for (int i = 0; i < BLOCK_X + 2 * REACH + WINDOW_SKIP; i += 4) {
			const float4 four = *(const local float4 *)(p + j * STRIDE + i);

			v[j][i] = four.x, v[j][i + 1] = four.y, v[j][i + 2] = four.z,
			v[j][i + 3] = four.w;
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
				part[j][i] =
				    fma(v[j][WINDOW_SKIP + i + k * BANDS], weight, part[j][i]);
				if (k == TAPS_X - 1 || k % SEPARABLE_TERMS == SEPARABLE_TERMS - 1) {
					result[j][i] += part[j][i];
					part[j][i] = 0.0f;
				}
			}
	}
}

GPU_KERNEL separable_local(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                           float offset, uint keep)
{
	typedef char shape_check[BLOCK_X % 4 == 0 && BLOCK_Y % 2 == 0 ? 1 : -1];
	local float tile[GROUP_Y * BLOCK_Y * STRIDE] __attribute__((aligned(16)));
	local float *const mine = tile + get_local_id(1) * BLOCK_Y * STRIDE;
	const uint left = get_group_id(0) * ACROSS;

	BLOCK_PLACE
	const global uchar *const top =
	    in - (long)(x - left) * SIZE - (long)RADIUS_Y * (long)src_pitch;
	const int low = max(-(int)left, -64 * 1024) * SIZE - REACH * SIZE;
	const int high = (int)(min(samples - left, 64u * 1024u) + REACH) * SIZE - 1;
	const int count = (int)min(height, (uint)BLOCK_Y) + 2 * RADIUS_Y;
	const bool wide =
	    (((uint)(size_t)top | src_pitch) & (CHUNK * SIZE - 1)) == 0 && height >= BLOCK_Y;

	if (height != 0)
		for (int c = get_local_id(0); c < CHUNKS; c += GROUP_X) {
			const int at = (c * CHUNK - LEFT) * SIZE;

			if (wide && at >= low && at + CHUNK * SIZE - 1 <= high)
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

		across(v, mine + r * STRIDE + get_local_id(0) * BLOCK_X + WINDOW_START, weights,
		       offset);
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
				window_store(result, out + (ulong)(r + j) * dst_pitch, width,
				             false);
		}
	}
}
