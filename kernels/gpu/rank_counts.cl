/* gpu/rank_counts.cl: the value at a place in the order of the bytes in a window, by counting them.
 *
 * A work-item makes one sample of each of BLOCK_Y rows. It holds the number of samples of each value in
 * its window; from row to row one sample of each column of the window leaves it and one enters (Huang,
 * Yang and Tang, "A fast two-dimensional median filtering algorithm", 1979). So the cost grows with
 * the window's side, not with its area.
 *
 * Numbers of values that follow each other share a word of local memory: four where the window has
 * fewer than 256 samples, else two. The words of a group's items lie side by side, each in a bank of
 * its own. An item also knows how many samples are below the values of one word; the search for the
 * result begins there, and so ends soon where neighbours are alike. */

enum {
	PER = RANK_COUNTS_PER(RADIUS_X),
	WORDS = 256 / PER,
	BITS = 32 / PER,
};

#if RADIUS_X < 8
typedef uchar number;
typedef uchar4 numbers; /* a word */
#else
typedef ushort number;
typedef ushort2 numbers;
#endif

/* counts: an item's; those of its word i begin at i * PER * GROUP_X. */
FORCE_INLINE void count(local number *counts, uint v, int change)
{
	counts[v / PER * PER * GROUP_X + v % PER] += change;
}

FORCE_INLINE uint word_of(const local number *counts, uint i)
{
	return as_uint(*(const local numbers *)(counts + i * PER * GROUP_X));
}

/* Returns the sum of a word's numbers. */
FORCE_INLINE uint word_total(uint word)
{
	return PER == 4 ? word * 0x01010101u >> 24 : word * 0x00010001u >> 16;
}

GPU_KERNEL rank_counts(REGION_ARGUMENTS, uint radius, uint element, uint rank, uint keep)
{
	local numbers words[WORDS * GROUP_X];
	local number *const counts = (local number *)(words + get_local_id(0));
	const uint x = get_global_id(0), y = get_global_id(1) * BLOCK_Y;
	const uint height = min(rows - min(y, rows), (uint)BLOCK_Y);
	const global uchar *in = src + src_offset + (ulong)y * src_pitch + x;
	global uchar *out = dst + dst_offset + (ulong)y * dst_pitch + x;
	const bool kept = KEEP != 0 && KEEP >> x % BANDS & 1;
	uint at = 128 / PER, below = 0; /* the word, and how many samples are below its values */
	int sides[RADIUS_X + 1];

	if (x >= samples || height == 0)
		return;
	for (uint i = 0; i < WORDS; i++)
		words[i * GROUP_X + get_local_id(0)] = 0;
#pragma unroll
	for (int i = 0; i <= RADIUS_X; i++)
		sides[i] = element_half_width(i, RADIUS_X, (int)element);
#pragma unroll
	for (int i = -RADIUS_X; i <= RADIUS_X; i++)
		for (int j = -sides[abs(i)]; j <= sides[abs(i)]; j++) {
			const uint v = in[(long)j * (long)src_pitch + i * BANDS];

			count(counts, v, 1);
			below += v < at * PER;
		}
	for (uint r = 0;; in += src_pitch, out += dst_pitch) {
		uint word, sum, found;

		while (below > rank)
			below -= word_total(word_of(counts, --at));
		word = word_of(counts, at);
		while (below + word_total(word) <= rank) {
			below += word_total(word);
			word = word_of(counts, ++at);
		}
		found = at * PER;
		sum = below;
#pragma unroll
		for (int i = 0; i < PER - 1; i++) {
			sum += word >> i * BITS & ((1u << BITS) - 1);
			found += sum <= rank;
		}
		*out = kept ? *in : (uchar)found;
		if (++r >= height)
			return;
#pragma unroll
		for (int i = -RADIUS_X; i <= RADIUS_X; i++) {
			const long side = sides[abs(i)];
			const uint leaves = in[-side * (long)src_pitch + i * BANDS];
			const uint enters = in[(side + 1) * (long)src_pitch + i * BANDS];

			count(counts, leaves, -1);
			count(counts, enters, 1);
			below += (enters < at * PER) - (leaves < at * PER);
		}
	}
}
