/* gpu/extreme_local.cl: the smallest or the largest value in a rectangle, through local memory.
 *
 * A group makes a tile of GROUP_X * BLOCK_X samples and GROUP_Y * BLOCK_Y rows. First down: its items
 * take turns at chunks of the tile and its reach, BLOCK_Y rows each. Windows of at least BLOCK_Y rows
 * share those from the last one's first to the first one's last, and differ in the few above and
 * below (van Herk; Gil and Werman: see general/extreme.cl). After the barrier across: an item makes
 * BLOCK_X samples of each row, from a window in registers: of two widths side by side one of twice
 * the width, as general/extreme.cl does.
 *
 * OUTPUT: 1 for the largest. Samples are cells: see gpu/cells.cl. Local memory holds them packed. */

enum {
	LEFT = EXTREME_LOCAL_LEFT(REACH), /* a row's samples before the tile's first */
	STRIDE = EXTREME_LOCAL_STRIDE(GROUP_X, BLOCK_X, REACH, SIZE), /* words */
	CHUNKS = STRIDE / CHUNK_WORDS,
	CHUNK_CELLS = CHUNK / CELL_SAMPLES,
	WINDOW_FIRST = (LEFT - REACH) / PER_WORD, /* of an item's window, its first word */
	WINDOW_SKIP = (LEFT - REACH) % PER_WORD,
	WINDOW_SAMPLES = BLOCK_X + 2 * REACH,
	WINDOW_WORDS = (WINDOW_SKIP + WINDOW_SAMPLES + PER_WORD - 1) / PER_WORD,
	WINDOW_CELLS = (WINDOW_SAMPLES + CELL_SAMPLES - 1) / CELL_SAMPLES,
	WIDEST = TAPS_X >= 64   ? 64 /* the largest power of two in a window */
	         : TAPS_X >= 32 ? 32
	         : TAPS_X >= 16 ? 16
	         : TAPS_X >= 8  ? 8
	         : TAPS_X >= 4  ? 4
	         : TAPS_X >= 2  ? 2
	                        : 1
};

FORCE_INLINE cell extreme_of(cell a, cell b)
{
	return OUTPUT ? cell_max(a, b) : cell_min(a, b);
}

FORCE_INLINE void extremes_of(cell *a, const cell *b)
{
#pragma unroll
	for (int i = 0; i < CHUNK_CELLS; i++)
		a[i] = extreme_of(a[i], b[i]);
}

/* Cells of a chunk of row s. `free`: it is aligned, and all of it may be read. */
FORCE_INLINE void row_load(cell *v, const global uchar *top, uint pitch, int s, int at, int low,
                           int high, int count, const bool free)
{
	const global uchar *const row = top + (ulong)min(s, count - 1) * pitch;
	uint words[CHUNK_WORDS + 1];

	if (free)
		chunk_load(words, row + at);
	else
		chunk_gather(words, row, at, low, high);
#pragma unroll
	for (int i = 0; i < CHUNK_CELLS; i++)
		v[i] = words_cell(words, i * CELL_SAMPLES);
}

/* The extremes down of a chunk, to local memory. */
FORCE_INLINE void down(local uint *to, const global uchar *top, uint pitch, int at, int low, int high,
                       int count, const bool free)
{
	cell made[BLOCK_Y][CHUNK_CELLS], run[CHUNK_CELLS], v[CHUNK_CELLS];

#define ROW_LOAD(to, s) row_load(to, top, pitch, s, at, low, high, count, free)
	if (TAPS_Y < BLOCK_Y) {
#pragma unroll
		for (int s = 0; s < ROWS_IN; s++) {
			ROW_LOAD(v, s);
#pragma unroll
			for (int r = max(0, s - TAPS_Y + 1); r < min(s, BLOCK_Y); r++)
				extremes_of(made[r], v);
			if (s < BLOCK_Y) {
#pragma unroll
				for (int i = 0; i < CHUNK_CELLS; i++)
					made[s][i] = v[i];
			}
		}
	} else {
#pragma unroll
		for (int s = 0; s < BLOCK_Y - 1; s++) {
			ROW_LOAD(made[s], s);
#pragma unroll
			for (int r = 0; r < s; r++)
				extremes_of(made[r], made[s]);
		}
		ROW_LOAD(run, BLOCK_Y - 1);
#pragma unroll 4
		for (int s = BLOCK_Y; s < TAPS_Y; s++) {
			ROW_LOAD(v, s);
			extremes_of(run, v);
		}
#pragma unroll
		for (int i = 0; i < CHUNK_CELLS; i++)
			made[BLOCK_Y - 1][i] = run[i];
#pragma unroll
		for (int r = 0; r < BLOCK_Y - 1; r++)
			extremes_of(made[r], run);
#pragma unroll
		for (int r = 1; r < BLOCK_Y; r++) {
			if (r == 1) {
				ROW_LOAD(run, TAPS_Y);
			} else {
				ROW_LOAD(v, TAPS_Y + r - 1);
				extremes_of(run, v);
			}
			extremes_of(made[r], run);
		}
	}
#undef ROW_LOAD
#pragma unroll
	for (int r = 0; r < BLOCK_Y; r++)
#pragma unroll
		for (int k = 0; k < CHUNK_WORDS; k++)
			to[r * STRIDE + k] = cells_word(made[r], k);
}

/* The extremes across of BLOCK_X samples; p: the first word of their window. */
FORCE_INLINE void across(uint *result, const local uint *p)
{
	uint words[WINDOW_WORDS + 1];
	cell v[WINDOW_CELLS + 2], made[CELLS];

#pragma unroll
	for (int i = 0; i < WINDOW_WORDS; i++)
		words[i] = p[i];
	words[WINDOW_WORDS] = 0;
#pragma unroll
	for (int i = 0; i < WINDOW_CELLS; i++)
		v[i] = words_cell(words, WINDOW_SKIP + i * CELL_SAMPLES);
	v[WINDOW_CELLS] = v[WINDOW_CELLS + 1] = 0;
#pragma unroll
	for (int wide = 1; wide < WIDEST; wide *= 2)
#pragma unroll
		for (int i = 0; i < WINDOW_CELLS; i++)
			if (i * CELL_SAMPLES + wide * BANDS < WINDOW_SAMPLES)
				v[i] = extreme_of(v[i], cells_at(v, i * CELL_SAMPLES + wide * BANDS));
#pragma unroll
	for (int c = 0; c < CELLS; c++)
		made[c] = extreme_of(
		    v[c], cells_at(v, c * CELL_SAMPLES + (TAPS_X - WIDEST) * BANDS));
#pragma unroll
	for (int k = 0; k < MIDDLE; k++)
		result[k] = cells_word(made, k);
}

GPU_KERNEL extreme_local(REGION_ARGUMENTS, uint radius, uint element, uint largest, uint keep)
{
	local uint tile[GROUP_Y * BLOCK_Y * STRIDE] __attribute__((aligned(16)));
	local uint *const mine = tile + get_local_id(1) * BLOCK_Y * STRIDE;
	const uint left = get_group_id(0) * GROUP_X * BLOCK_X;

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
				down(mine + c * CHUNK_WORDS, top, src_pitch, at, low, high, count,
				     true);
			else
				down(mine + c * CHUNK_WORDS, top, src_pitch, at, low, high, count,
				     false);
		}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (width == 0 || height == 0)
		return;

	const bool free = window_free(in, src_pitch, out, dst_pitch, width, height);

#pragma unroll 1
	for (int r = 0; r < BLOCK_Y; r++) {
		uint result[MIDDLE], words[WINDOW];

		if ((uint)r >= height)
			return;
		across(result, mine + r * STRIDE + get_local_id(0) * MIDDLE + WINDOW_FIRST);
		if (KEEP != 0) {
			window_load(words, in + (ulong)r * src_pitch, width, false);
			window_keep(result, words, x);
		}
		if (free)
			window_store(result, out + (ulong)r * dst_pitch, width, true);
		else
			window_store(result, out + (ulong)r * dst_pitch, width, false);
	}
}
