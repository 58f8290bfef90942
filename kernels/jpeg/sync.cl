/* jpeg/sync.cl: finds the starts of blocks in the stream, in parallel.
 *
 * A Huffman-coded stream can only be read from its start, since nothing else tells where a code
 * begins. But a decoder that starts anywhere soon falls into step with the right one (S. T. Klein,
 * Y. Wiseman: Parallel Huffman Decoding with Applications to JPEG Files, The Computer Journal 46,
 * 2003). So (A. Weissenberger, B. Schmidt: Massively Parallel Huffman Decoding on GPUs, ICPP 2018;
 * Accelerating JPEG Decompression on GPUs, HiPC 2021) the stream is cut into subsequences, each
 * read from a guess, and read again for as long as its predecessor ends in another state than it
 * began in. No coefficient is written here; only states, and blocks that end, are kept.
 *
 * A state is a decoder's place in the stream and in an MCU, packed to 32 bits: bits that the last
 * code reaches beyond the subsequence (5), place in the block (6), block in the MCU (4).
 *
 * sync_divide   cuts intervals into subsequences of equal length, the last being shorter
 * sync_first    reads each, having read the one before it from an arbitrary state
 * sync_again    repairs what is not in step; several launches
 * sync_prefix   sums blocks over subsequences
 *
 * write.cl then checks that all are in step. */

/* The state before the first bit of an interval is known. */
#define STATE_FIRST 0x80000000u

struct state {
	uint place, block, ended; /* in the block, in the MCU; blocks ended so far */
};

FORCE_INLINE uint state_pack(const struct state *s, int left)
{
	return (uint)-left | s->place << 5 | s->block << 11;
}

/* Reads codes that begin within `left` bits; returns the number left, 0 or less. */
FORCE_INLINE int skim(const global struct jpeg_image *image, const struct tables *tables,
                      const global uint *stream, struct bits *bits, struct state *s, int left)
{
	uint pair = block_tables(image, s->block);

	while (left > 0) {
		const uint entry = table_entry(tables, pair + (s->place != 0), bits_peek(bits));
		const uint length = entry & 31;

		left -= (int)length;
		bits_skip(bits, stream, length);
		s->place += entry >> 5 & 127;
		if (s->place >= 64) {
			s->place = 0;
			s->ended++;
			s->block = s->block + 1 == image->mcu_blocks ? 0 : s->block + 1;
			pair = block_tables(image, s->block);
		}
	}
	return left;
}

/* One group an image. firsts: each interval's first subsequence, and their number behind the last.
 * An image with flags has none: its intervals are not known. */
JPEG_KERNEL(JPEG_GROUP) sync_divide(JPEG_ARGUMENT, const global uint *interval_starts,
                                    global uint *interval_firsts, global uint *subsequences,
                                    global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const global uint *starts = interval_starts + image->intervals.first;
	global uint *firsts = interval_firsts + image->intervals.first;
	global uint *flags = &results[image->image.first].flags;
	const uint2 share = item_share(*flags ? 0 : image->intervals.count);
	const uint length = image->subsequence;
	local uint sums[JPEG_GROUP];
	uint before = 0, total;

	for (uint i = share.x; i < share.y; i++)
		before += max(1u, (starts[i + 1] - starts[i] + length - 1) / length);
	before = group_prefix(before, sums, &total);
	for (uint i = share.x; i < share.y; i++) {
		firsts[i] = before;
		before += max(1u, (starts[i + 1] - starts[i] + length - 1) / length);
	}
	if (get_local_id(0) == 0) {
		if (total > image->subsequences.count) {
			*flags |= JPEG_FLAG_ROOM;
			total = 0;
		}
		firsts[image->intervals.count] = total;
		subsequences[image->image.first] = total;
	}
}

/* entries, exits: states; ended: blocks; begins, ends: bytes of the stream. */
JPEG_KERNEL(JPEG_SYNC_GROUP) sync_first(JPEG_ARGUMENT, const global ushort *all_tables,
                                        const global uint *streams,
                                        const global uint *interval_starts,
                                        const global uint *interval_firsts,
                                        const global uint *subsequences, global uint *entries,
                                        global uint *exits, global uint *ended,
                                        global uint *begins, global uint *ends,
                                        global uint *borders)
{
	const global struct jpeg_image *image = IMAGE;
	const global uint *stream = streams + image->stream.first;
	const global uint *starts = interval_starts + image->intervals.first;
	const global uint *firsts = interval_firsts + image->intervals.first;
	const uint i = get_global_id(0), to = image->subsequences.first + i;
	const uint count = subsequences[image->image.first];
	local ushort near[JPEG_TABLES * JPEG_NEAR] __attribute__((aligned(16)));
	local uint far_code[JPEG_TABLES];
	struct tables tables;

	tables_load(&tables, image, all_tables, near, far_code);
	barrier(CLK_LOCAL_MEM_FENCE);
	if (i < count) {
		const uint interval = interval_of(firsts, image->intervals.count, i);
		const uint length = image->subsequence, number = i - firsts[interval];
		const uint begin = starts[interval] + number * length;
		const uint end = min(begin + length, starts[interval + 1]);
		const uint start = number ? begin - length : begin;
		struct state s = {0, 0, 0};
		struct bits bits;
		int left;

		bits_open(&bits, stream, start * 8);
		left = skim(image, &tables, stream, &bits, &s, (int)(begin - start) * 8);
		entries[to] = number ? state_pack(&s, left) : STATE_FIRST;
		s.ended = 0;
		left = skim(image, &tables, stream, &bits, &s, (int)(end - begin) * 8 + left);
		exits[to] = state_pack(&s, left);
		ended[to] = s.ended;
		begins[to] = begin;
		ends[to] = end;
		if (i % JPEG_SYNC_WINDOW == JPEG_SYNC_WINDOW - 1)
			borders[image->subsequences.first + i / JPEG_SYNC_WINDOW] = exits[to];
	} else if (i < (count + 3) / 4 * 4) {
		ended[to] = 0; /* sync_prefix takes four at a time */
	}
}

enum {
	ROUNDS = 48,           /* most rounds of a launch */
	FORETELL_EVERY = 4,    /* rounds */
	PERIOD_MAX = 32,       /* subsequences */
	IN_STEP = 255,         /* see `period` */
	FORETOLD = 0x8000      /* in `list` */
};

/* Returns the state before subsequence i by the period before the mismatch that it follows. */
FORCE_INLINE uint foretell(const local uint *from, const local uchar *period, uint i)
{
	uint mismatch = i;

	while (period[mismatch] == IN_STEP)
		mismatch--;
	return from[mismatch - period[mismatch] + (i - mismatch) % period[mismatch]];
}

/* Returns the period of the states before mismatch i; three in a row must be equal; or 0. */
FORCE_INLINE uint period_before(const local uint *from, uint i)
{
	for (uint p = 1; p <= PERIOD_MAX && p + 2 < i && from[i - p] != STATE_FIRST; p++)
		if (from[i - p] == from[i] && from[i - p - 1] == from[i - 1] &&
		    from[i - p - 2] == from[i - 2])
			return p;
	return 0;
}

/* Tells whether an in-step subsequence follows a mismatch with a period. */
FORCE_INLINE bool foretellable(const local uint *from, const local uchar *period, uint i)
{
	uint mismatch = i;

	while (mismatch && period[mismatch] == IN_STEP && from[mismatch] != STATE_FIRST)
		mismatch--;
	return mismatch < i && period[mismatch] && period[mismatch] != IN_STEP;
}

/* A group brings JPEG_SYNC_WINDOW subsequences into step with each other, in rounds: those whose
 * predecessor ends otherwise than they began are listed, and read again from there. The state
 * before the window is its predecessor's latest in `borders`; later changes there are for the next
 * launch.
 *
 * If a picture is flat, codes repeat, nothing ever falls into step, and the truth would advance by
 * one subsequence a round. So in every fourth round, if the states before a mismatch repeat with a
 * period, all that follow it up to the next mismatch are read again too, from the state that the
 * period foretells. A wrong prophecy does no harm: its mismatch is found in the next round. */
JPEG_KERNEL(JPEG_SYNC_GROUP) sync_again(JPEG_ARGUMENT, const global ushort *all_tables,
                                        const global uint *streams,
                                        const global uint *subsequences, global uint *entries,
                                        global uint *exits, global uint *ended,
                                        const global uint *begins, const global uint *ends,
                                        global uint *borders)
{
	const global struct jpeg_image *image = IMAGE;
	const global uint *stream = streams + image->stream.first;
	const uint count = subsequences[image->image.first], item = get_local_id(0);
	const uint window = get_group_id(0), first = window * JPEG_SYNC_WINDOW;
	const uint live = first < count ? min((uint)JPEG_SYNC_WINDOW, count - first) : 0;
	const uint at = image->subsequences.first + first;
	global uint *border = borders + image->subsequences.first + window;
	local ushort near[JPEG_TABLES * JPEG_NEAR] __attribute__((aligned(16)));
	local uint far_code[JPEG_TABLES], listed, before;
	local uint entry[JPEG_SYNC_WINDOW], exit[JPEG_SYNC_WINDOW], from[JPEG_SYNC_WINDOW];
	local ushort list[JPEG_SYNC_WINDOW], blocks[JPEG_SYNC_WINDOW]; /* blocks ended */
	/* IN_STEP; for a mismatch: the period before it, or 0 */
	local uchar period[JPEG_SYNC_WINDOW];
	struct tables tables;

	tables_load(&tables, image, all_tables, near, far_code);
	for (uint i = item; i < live; i += JPEG_SYNC_GROUP) {
		entry[i] = entries[at + i];
		exit[i] = exits[at + i];
		blocks[i] = (ushort)ended[at + i];
	}
	for (uint round = 0; round < ROUNDS; round++) {
		uint todo;

		barrier(CLK_LOCAL_MEM_FENCE);
		if (item == 0) {
			listed = 0;
			before = live && window ? atomic_or(border - 1, 0) : 0;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint i = item; i < live; i += JPEG_SYNC_GROUP) {
			const uint right = entry[i] == STATE_FIRST ? STATE_FIRST
			                   : i                     ? exit[i - 1]
			                                           : before;

			from[i] = right;
			period[i] = entry[i] == right ? IN_STEP : 0;
			if (entry[i] != right)
				list[atomic_inc(&listed)] = (ushort)i;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		todo = listed;
		if (todo == 0)
			break;
		if (round % FORETELL_EVERY == FORETELL_EVERY - 1) {
			for (uint t = item; t < todo; t += JPEG_SYNC_GROUP)
				period[list[t]] = (uchar)period_before(from, list[t]);
			barrier(CLK_LOCAL_MEM_FENCE);
			for (uint i = item; i < live; i += JPEG_SYNC_GROUP)
				if (foretellable(from, period, i))
					list[atomic_inc(&listed)] = (ushort)(i | FORETOLD);
			barrier(CLK_LOCAL_MEM_FENCE);
			todo = listed;
		}
		for (uint t = item; t < todo; t += JPEG_SYNC_GROUP) {
			const uint i = list[t] & (FORETOLD - 1);
			const uint state = list[t] & FORETOLD ? foretell(from, period, i) : from[i];
			const uint bit = begins[at + i] * 8 + (state & 31);
			struct state s = {state >> 5 & 63, state >> 11 & 15, 0};
			struct bits bits;
			int left;

			bits_open(&bits, stream, bit);
			left = skim(image, &tables, stream, &bits, &s,
			            (int)(ends[at + i] * 8 - bit));
			entry[i] = state;
			exit[i] = state_pack(&s, left);
			blocks[i] = (ushort)s.ended;
			if (i == JPEG_SYNC_WINDOW - 1)
				atomic_xchg(border, exit[i]);
		}
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint i = item; i < live; i += JPEG_SYNC_GROUP) {
		entries[at + i] = entry[i];
		exits[at + i] = exit[i];
		ended[at + i] = blocks[i];
	}
}

/* One group an image. before: blocks that end in all subsequences before each. Four at a time:
 * spans begin at multiples of 4, and sync_first clears those behind the last. */
JPEG_KERNEL(JPEG_GROUP) sync_prefix(JPEG_ARGUMENT, const global uint *subsequences,
                                    const global uint *all_ended, global uint *all_before)
{
	const global struct jpeg_image *image = IMAGE;
	const uint2 share = item_share((subsequences[image->image.first] + 3) / 4);
	const global uint4 *ended =
	    (const global uint4 *)(all_ended + image->subsequences.first);
	global uint4 *before = (global uint4 *)(all_before + image->subsequences.first);
	local uint sums[JPEG_GROUP];
	uint sum = 0, total;

	for (uint i = share.x; i < share.y; i++) {
		const uint4 e = ended[i];

		sum += e.x + e.y + e.z + e.w;
	}
	sum = group_prefix(sum, sums, &total);
	for (uint i = share.x; i < share.y; i++) {
		const uint4 e = ended[i];

		before[i] = (uint4)(sum, sum + e.x, sum + e.x + e.y, sum + e.x + e.y + e.z);
		sum += e.x + e.y + e.z + e.w;
	}
}
