/* jpeg/code.cl: Huffman coding (T.81 F.1.2): a group turns its 256 blocks, an item each, into one
 * string of bits.
 *
 * Each item first measures its block, then, where prefix sums have told it to, ORs its codes into
 * words in local memory; if they are more than fit there, in several windows. Strings begin on a
 * word, in the order in which groups end; merge.cl puts them behind each other. */

enum { WINDOW = 2048, NO_PLACE = 0xFFFFFFFF };

/* A pen, which appends bits to a window of words, the highest first. */
struct pen {
	uint at, word, window; /* next bit; the word that it is in, so far; first word of the window */
};

FORCE_INLINE void pen_put(struct pen *p, local uint *window, uint bits, uint count)
{
	const uint used = p->at & 31, space = 32 - used;

	if (count < space) {
		p->word |= bits << (space - count);
	} else {
		const uint to = (p->at >> 5) - p->window, rest = count - space;

		p->word |= bits >> rest;
		if (to < WINDOW)
			atomic_or(&window[to], p->word);
		p->word = rest ? bits << (32 - rest) : 0;
	}
	p->at += count;
}

FORCE_INLINE void pen_flush(const struct pen *p, local uint *window)
{
	const uint to = (p->at >> 5) - p->window;

	if ((p->at & 31) && to < WINDOW)
		atomic_or(&window[to], p->word);
}

/* Returns the category of a coefficient, SSSS: the number of bits of its magnitude. */
FORCE_INLINE uint category(int value)
{
	return 32 - clz(abs(value));
}

/* Returns a code (length << 16 | code) followed by the value's own bits. */
FORCE_INLINE uint code_bits(uint code, int value, uint size)
{
	return (code & 0xFFFF) << size | ((uint)(value - (value < 0)) & ((1u << size) - 1));
}

/* Returns the places of the coefficients of a block that are not 0, in zigzag order, the first
 * being the highest bit; from the masks of its columns (fdct.cl), by tables for half a column. */
FORCE_INLINE ulong in_zigzag(const global uchar *mask, const local ulong *halves)
{
	const uint2 columns = *(const global uint2 *)mask;
	ulong places = 0;

#pragma unroll
	for (uint i = 0; i < 8; i++)
		places |= halves[i * 16 + (columns.x >> (4 * i) & 15)] |
		          halves[128 + i * 16 + (columns.y >> (4 * i) & 15)];
	return places;
}

enum { ZRL = 0xF0, EOB = 0 };

/* Takes the next place from those left; *run: zeros before it. */
FORCE_INLINE uint next_place(ulong *places, uint *previous, uint *run)
{
	const uint place = (uint)clz(*places);

	*places &= ~(1UL << 63 >> place);
	*run = place - *previous - 1;
	*previous = place;
	return place;
}

/* An item's block. */
struct block {
	const global short *coefficients;
	const local uint *ac;     /* codes by run and category */
	const local uchar *column;
	ulong places;             /* AC coefficients that are not 0 */
	uint dc, dc_length;
};

FORCE_INLINE uint block_measure(const struct block *b)
{
	uint length = b->dc_length, previous = 0, run;
	ulong places = b->places;

	while (places) {
		const uint place = next_place(&places, &previous, &run);
		const uint size = category(b->coefficients[b->column[place]]);

		length += (b->ac[(run & 15) << 4 | size] >> 16) + size +
		          (run >> 4) * (b->ac[ZRL] >> 16);
	}
	return previous == 63 ? length : length + (b->ac[EOB] >> 16);
}

FORCE_INLINE void block_put(const struct block *b, struct pen *pen, local uint *window)
{
	uint previous = 0, run;
	ulong places = b->places;

	pen_put(pen, window, b->dc, b->dc_length);
	while (places) {
		const uint place = next_place(&places, &previous, &run);
		const int value = b->coefficients[b->column[place]];
		const uint size = category(value);

		for (; run > 15; run -= 16)
			pen_put(pen, window, b->ac[ZRL] & 0xFFFF, b->ac[ZRL] >> 16);
		pen_put(pen, window, code_bits(b->ac[run << 4 | size], value, size),
		        (b->ac[run << 4 | size] >> 16) + size);
	}
	if (previous != 63)
		pen_put(pen, window, b->ac[EOB] & 0xFFFF, b->ac[EOB] >> 16);
	pen_flush(pen, window);
}

/* Returns the distance back to the block whose DC coefficient predicts that of block `block`; 0:
 * none. */
FORCE_INLINE uint predictor_distance(const global struct jpeg_image *image, uint block)
{
	const uint in_mcu = block % image->mcu_blocks, luma = image->luma_blocks;

	if (in_mcu && in_mcu < luma)
		return 1;
	if (block < image->mcu_blocks)
		return 0;
	return in_mcu ? image->mcu_blocks : image->mcu_blocks - luma + 1;
}

/* Returns the block with these coefficients and masks; codes: of luma, and of chroma. */
FORCE_INLINE struct block begin_block(const global struct jpeg_image *image, uint number,
                                      const global short *coefficients,
                                      const global uchar *masks, const local uint *codes,
                                      const local uchar *column, const local ulong *halves)
{
	const uint back = predictor_distance(image, number);
	const local uint *dc =
	    codes + (number % image->mcu_blocks < image->luma_blocks ? 0 : JPEG_CODES);
	int difference = coefficients[0];
	struct block b;
	uint size;

	if (back)
		difference -= coefficients[-(long)back * 64];
	size = category(difference);
	b.coefficients = coefficients;
	b.ac = dc + 16;
	b.column = column;
	b.places = in_zigzag(masks, halves) & ~(1UL << 63);
	b.dc = code_bits(dc[size], difference, size);
	b.dc_length = (dc[size] >> 16) + size;
	return b;
}

/* codes: JPEG_CODES of luma, JPEG_CODES of chroma. part_bits, part_first: each group's string. */
JPEG_KERNEL(JPEG_GROUP) code(JPEG_ARGUMENT, const global uint *codes, const global ulong *zigzag_halves,
                             const global short *coefficients, const global uchar *masks,
                             global uint *parts, global uint *parts_used, global uint *part_bits,
                             global uint *part_first, global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint item = get_local_id(0), number = get_global_id(0), group = get_group_id(0);
	const bool live = number < image->blocks.count;
	local uint local_codes[2 * JPEG_CODES], sums[JPEG_GROUP], window[WINDOW], first;
	local uchar column[64];
	local ulong halves[JPEG_GROUP];
	struct block b;
	uint at, length = 0, total, words;

	for (uint i = item; i < 2 * JPEG_CODES; i += JPEG_GROUP)
		local_codes[i] = codes[i];
	if (item < 64)
		column[item] = by_column[item];
	halves[item] = zigzag_halves[item];
	barrier(CLK_LOCAL_MEM_FENCE);
	if (live) {
		const ulong place = (ulong)image->blocks.first + number;

		b = begin_block(image, number, coefficients + place * 64, masks + place * 8,
		                local_codes, column, halves);
		length = block_measure(&b);
	}
	at = group_prefix(length, sums, &total);
	words = (total + 31) / 32;
	if (item == 0 && group < image->groups.count) {
		first = atomic_add(&parts_used[image->image.first], words);
		if (first + words > image->parts.count) {
			atomic_or(&results[image->image.first].flags, JPEG_FLAG_ROOM);
			first = NO_PLACE;
		}
		part_bits[image->groups.first + group] = first == NO_PLACE ? 0 : total;
		part_first[image->groups.first + group] = first;
	}
	for (uint from = 0; from < words; from += WINDOW) {
		const uint count = min(words - from, (uint)WINDOW);

		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint i = item; i < count; i += JPEG_GROUP)
			window[i] = 0;
		barrier(CLK_LOCAL_MEM_FENCE);
		if (live && (at + length) / 32 >= from && at / 32 < from + WINDOW) {
			struct pen pen = {at, 0, from};

			block_put(&b, &pen, window);
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		if (first != NO_PLACE)
			for (uint i = item; i < count; i += JPEG_GROUP)
				parts[image->parts.first + first + from + i] = window[i];
	}
}
