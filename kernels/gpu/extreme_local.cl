/* gpu/extreme_local.cl: the smallest or the largest value in a rectangle, through local memory.
 *
 * A group makes a tile of GROUP_X * BLOCK_X samples and GROUP_Y * BLOCK_Y rows. First down: its
 * items take turns at chunks of the tile and its reach, BLOCK_Y rows each; local memory holds the
 * results, packed. After the barrier across: an item makes BLOCK_X samples of each row.
 *
 * Both ways as many windows as one is long share the samples from the last one's first to the first
 * one's last, and differ in the few before and after, which running extremes cover (van Herk; Gil
 * and Werman: see general/extreme.cl).
 *
 * OUTPUT: 1 for the largest. Samples are cells: see gpu/cells.cl; across, cells of bytes have two
 * rows. */

/* Windows that are made together: about the same number each time. */
#define RUNS(outputs, taps) (((outputs) + (taps)-1) / (taps))
#define RUN(outputs, taps)  (((outputs) + RUNS(outputs, taps) - 1) / RUNS(outputs, taps))

enum {
	LEFT = EXTREME_LOCAL_LEFT(REACH), /* a row's samples before the tile's first */
	STRIDE = EXTREME_LOCAL_STRIDE(GROUP_X, BLOCK_X, REACH, SIZE), /* words */
	CHUNKS = STRIDE / CHUNK_WORDS,
	CHUNK_CELLS = CHUNK / CELL_SAMPLES,
	LOAD = WIDE ? 4 : 2, /* words of a load from local memory */
	/* its first word in an item's window */
	WINDOW_FIRST = (LEFT - REACH) / PER_WORD / LOAD * LOAD,
	WINDOW_SKIP = LEFT - REACH - WINDOW_FIRST * PER_WORD,
	WINDOW_SAMPLES = BLOCK_X + 2 * REACH,
	WINDOW_WORDS = (WINDOW_SKIP + WINDOW_SAMPLES + PER_WORD * LOAD - 1) / (PER_WORD * LOAD) * LOAD,
	ACROSS = (BLOCK_X + BANDS - 1) / BANDS, /* a band's samples, at most */
	RUN_X = RUN(ACROSS, TAPS_X),
	RUN_Y = RUN(BLOCK_Y, TAPS_Y)
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

/* Loads the cells of a chunk at p; its part from `low` to `high` may be read; p goes on to the next
 * row, unless this is the last. `free`: it is aligned, and all of it may be read. */
FORCE_INLINE void row_load(cell *v, const global uchar **p, uint pitch, bool last, int low, int high,
                           const bool free)
{
	uint words[CHUNK_WORDS + 1];

	if (free)
		chunk_load(words, *p);
	else
		chunk_gather(words, *p, 0, low, high);
#pragma unroll
	for (int i = 0; i < CHUNK_CELLS; i++)
		v[i] = words_cell(words, i * CELL_SAMPLES);
	*p += last ? 0 : pitch;
}

/* Makes the extremes down of a chunk, into local memory. */
FORCE_INLINE void down(local uint *to, const global uchar *top, uint pitch, int low, int high,
                       int count, const bool free)
{
#define ROW_LOAD(to, s)                                                                            \
	row_load(to, &p, pitch, first + (s) >= (free ? (int)ROWS_IN : count) - 1, low, high, free)
#pragma unroll 1
	for (int first = 0; first < BLOCK_Y; first += RUN_Y) {
		const global uchar *p = top + (ulong)(uint)min(first, count - 1) * pitch;
		cell made[RUN_Y][CHUNK_CELLS], run[CHUNK_CELLS], v[CHUNK_CELLS];

#pragma unroll
		for (int r = 0; r < RUN_Y; r++)
			ROW_LOAD(made[r], r);
#pragma unroll 4
		for (int s = RUN_Y; s < TAPS_Y; s++) {
			ROW_LOAD(v, s);
			extremes_of(made[RUN_Y - 1], v);
		}
#pragma unroll
		for (int r = RUN_Y - 2; r >= 0; r--)
			extremes_of(made[r], made[r + 1]);
#pragma unroll
		for (int r = 1; r < RUN_Y; r++) {
			ROW_LOAD(v, TAPS_Y + r - 1);
			if (r > 1)
				extremes_of(v, run);
#pragma unroll
			for (int i = 0; i < CHUNK_CELLS; i++)
				run[i] = v[i];
			extremes_of(made[r], run);
		}
#pragma unroll
		for (int r = 0; r < RUN_Y; r++)
#pragma unroll
			for (int k = 0; k < CHUNK_WORDS; k++)
				if (BLOCK_Y % RUN_Y == 0 || first + r < BLOCK_Y)
					to[(first + r) * STRIDE + k] = cells_word(made[r], k);
	}
#undef ROW_LOAD
}

/* Loads the words of an item's window of a row. */
FORCE_INLINE void window_words(uint *words, const local uint *p)
{
#pragma unroll
	for (int i = 0; i < WINDOW_WORDS; i += LOAD) {
		if (WIDE) {
			const uint4 v = *(const local uint4 *)(p + i);

			words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
		} else {
			const uint2 v = *(const local uint2 *)(p + i);

			words[i] = v.x, words[i + 1] = v.y;
		}
	}
}

/* Makes the extremes across of BLOCK_X cells for the rows that are in a cell; p: the first word of
 * their window in the first of these. */
FORCE_INLINE void across(cell *made, const local uint *p)
{
	uint words[CELL_SAMPLES][WINDOW_WORDS];
	cell v[WINDOW_SAMPLES];

#pragma unroll
	for (int t = 0; t < CELL_SAMPLES; t++)
		window_words(words[t], p + t * STRIDE);
#pragma unroll
	for (int i = 0; i < WINDOW_SAMPLES; i++)
		v[i] = cell_of_two(words[0], words[CELL_SAMPLES - 1], WINDOW_SKIP + i);
#pragma unroll
	for (int first = 0; first < BLOCK_X; first += first % BANDS < BANDS - 1 ? 1 : (RUN_X - 1) * BANDS + 1) {
		const int most = min((int)RUN_X, (BLOCK_X - first + BANDS - 1) / BANDS);
		cell run;

		made[first + (most - 1) * BANDS] = v[first + (most - 1) * BANDS];
#pragma unroll
		for (int k = most; k < TAPS_X; k++)
			made[first + (most - 1) * BANDS] =
			    extreme_of(made[first + (most - 1) * BANDS], v[first + k * BANDS]);
#pragma unroll
		for (int k = most - 2; k >= 0; k--)
			made[first + k * BANDS] =
			    extreme_of(v[first + k * BANDS], made[first + (k + 1) * BANDS]);
#pragma unroll
		for (int k = 1; k < most; k++) {
			const cell next = v[first + (TAPS_X + k - 1) * BANDS];

			run = k == 1 ? next : extreme_of(run, next);
			made[first + k * BANDS] = extreme_of(made[first + k * BANDS], run);
		}
	}
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
				down(mine + c * CHUNK_WORDS, top + at, src_pitch, low - at,
				     high - at, count, true);
			else
				down(mine + c * CHUNK_WORDS, top + at, src_pitch, low - at,
				     high - at, count, false);
		}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (width == 0 || height == 0)
		return;

	const bool free = window_free(in, src_pitch, out, dst_pitch, width, height);

#pragma unroll 1
	for (int r = 0; r < BLOCK_Y; r += CELL_SAMPLES) {
		cell made[BLOCK_X];
		uint result[CELL_SAMPLES][MIDDLE], words[WINDOW];

		across(made, mine + r * STRIDE + get_local_id(0) * MIDDLE + WINDOW_FIRST);
#pragma unroll
		for (int k = 0; k < MIDDLE; k++)
			cells_split(&result[0][k], &result[CELL_SAMPLES - 1][k], made, k);
#pragma unroll
		for (int t = 0; t < CELL_SAMPLES; t++) {
			if ((uint)(r + t) >= height)
				return;
			if (KEEP != 0) {
				window_load(words, in + (ulong)(r + t) * src_pitch, width, false);
				window_keep(result[t], words, x);
			}
			if (free)
				window_store(result[t], out + (ulong)(r + t) * dst_pitch, width, true);
			else
				window_store(result[t], out + (ulong)(r + t) * dst_pitch, width, false);
		}
	}
}
