/* jpeg/write.cl: coefficients, once all subsequences are in step (sync.cl).
 *
 * A block belongs to the subsequence in which it begins, whose item reads on to the block's end. It
 * gathers the block in local memory and then stores it as columns of 8 coefficients, of 16 bytes
 * each, up to the last that is not 0; columns behind these are left as they were. The DC
 * coefficient needs only the difference to its predecessor here (T.81 F.1.1.5.1), of 12 bits: it is
 * stored above the number of that last column, difference << 4 | column. */

enum { CATEGORY_MAX_DC = 11 };

/* Reads codes from a state on, as long as bits of the subsequence are left, or (more than `least`) of
 * a block that began in it, and stores these blocks. column, words: see the kernel. *block: the next
 * that ends. Adds to *flags. */
FORCE_INLINE void write_blocks(const global struct jpeg_image *image, const struct tables *tables,
                               const global uint *stream, const local uchar *column,
                               local uint *words, global uint4 *blocks, uint bit, uint state,
                               int least, uint end_block, uint *block, int *left, uint *flags)
{
	local ushort *halves = (local ushort *)words;
	uint place = state >> 5 & 63, in_mcu = state >> 11 & 15;
	uint pair = block_tables(image, in_mcu), last = 0, difference = 0;
	bool mine = place == 0; /* the block began here */
	struct bits bits;

	bits_open(&bits, stream, bit);
	while (*block < end_block && (*left > 0 || (place && mine && *left > least))) {
		const uint code = bits_peek(&bits);
		const uint entry = table_entry(tables, pair + (place != 0), code);
		const uint length = entry & 31, size = entry >> 12;
		const uint step = entry >> 5 & 127, to = place + step - 1;
		int value = 0;

		*left -= (int)length;
		bits_skip(&bits, stream, length);
		if (step == 127)
			*flags |= JPEG_FLAG_CODE;
		if (size) { /* T.81 F.2.2.1, EXTEND */
			value = (int)(code << (length - size) >> (32 - size));
			if (value < 1 << (size - 1))
				value += 1 - (1 << size);
		}
		if (place == 0) {
			difference = (uint)value;
			if (size > CATEGORY_MAX_DC)
				*flags |= JPEG_FLAG_CODE;
		} else if (size && to > 63) {
			*flags |= JPEG_FLAG_POSITION;
		} else if (size && mine) {
			const uint c = column[to];

			halves[c / 2 * (2 * JPEG_SYNC_GROUP) + c % 2] = (ushort)value;
			last = max(last, c / 8);
		}
		place += step;
		if (place < 64)
			continue;
		if (mine) {
			global uint4 *columns = blocks + (ulong)*block * 8;
			local uint *w = words;

			w[0] |= (difference << 4 | last) & 0xFFFF;
			for (uint c = 0; c <= last; c++, w += 4 * JPEG_SYNC_GROUP) {
				columns[c] = (uint4)(w[0], w[JPEG_SYNC_GROUP],
				                     w[2 * JPEG_SYNC_GROUP],
				                     w[3 * JPEG_SYNC_GROUP]);
				for (uint j = 0; j < 4; j++)
					w[j * JPEG_SYNC_GROUP] = 0;
			}
		}
		mine = true;
		place = last = 0;
		++*block;
		in_mcu = in_mcu + 1 == image->mcu_blocks ? 0 : in_mcu + 1;
		pair = block_tables(image, in_mcu);
	}
}

JPEG_KERNEL(JPEG_SYNC_GROUP) write_coefficients(JPEG_ARGUMENT, const global ushort *all_tables,
                                                const global uint *streams,
                                                const global uint *interval_firsts,
                                                const global uint *subsequences,
                                                const global uint *entries,
                                                const global uint *exits,
                                                const global uint *begins, const global uint *ends,
                                                const global uint *before,
                                                const global uint *interval_starts,
                                                global ushort *coefficients,
                                                global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const global uint *stream = streams + image->stream.first;
	const global uint *firsts = interval_firsts + image->intervals.first;
	const uint i = get_global_id(0), item = get_local_id(0);
	local ushort near[JPEG_TABLES * JPEG_NEAR] __attribute__((aligned(16)));
	local uint far_code[JPEG_TABLES];
	local uchar column[64];
	/* Each item's block, as 32 words that lie JPEG_SYNC_GROUP apart. */
	local uint gathered[32 * JPEG_SYNC_GROUP];
	local uint *words = gathered + item;
	struct tables tables;

	tables_load(&tables, image, all_tables, near, far_code);
	if (item < 64)
		column[item] = by_column[item];
	for (uint w = 0; w < 32; w++)
		words[w * JPEG_SYNC_GROUP] = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	if (i < subsequences[image->image.first]) {
		const uint at = image->subsequences.first + i;
		const uint interval = interval_of(firsts, image->intervals.count, i);
		const uint first = firsts[interval], next = firsts[interval + 1];
		const uint state = i == first ? 0 : exits[at - 1];
		const uint bit = begins[at] * 8 + (state & 31);
		/* Blocks of this interval, and the next that ends. */
		const uint first_block = interval * image->restart_interval * image->mcu_blocks;
		const uint end_block =
		    min(first_block + image->restart_interval * image->mcu_blocks,
		        image->blocks.count);
		uint block = first_block + before[at] - before[at - (i - first)];
		/* Bits up to the subsequence's end; below `least` the interval has ended. */
		const uint rest =
		    interval_starts[image->intervals.first + interval + 1] - ends[at];
		const int least = -(int)(rest * 8);
		int left = (int)(ends[at] * 8 - bit);
		uint flags = 0;
		global uint4 *blocks =
		    (global uint4 *)(coefficients + (ulong)image->blocks.first * 64);

		if (i != first && entries[at] != state)
			flags |= JPEG_FLAG_SYNC;
		write_blocks(image, &tables, stream, column, words, blocks, bit, state, least,
		             end_block, &block, &left, &flags);
		/* An interval's last subsequence must have made every block, from no more bits than
		 * there are. */
		if (i + 1 == next && (block < end_block || left < 0))
			flags |= JPEG_FLAG_LENGTH;
		if (flags)
			atomic_or(&results[image->image.first].flags, flags);
	}
}
