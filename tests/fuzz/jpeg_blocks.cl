/* The work of an item of the kernels of jpeg/, to be called as C, one after another (jpeg_blocks.c):
 * it stands behind the sources of destuff, sync and write, or (ENCODES) of code. Address spaces are one
 * and the same on the host. */

#define AS_LOCAL(type, pointer) ((const local type *)(ulong)(pointer))

#ifndef ENCODES
/* Appends the kept bytes of 16 of a scan, and the places of intervals that begin there; like
 * destuff_move. Returns flags. */
uint item_destuff(const global struct jpeg_image *image, const global uchar *scan, uint at,
                  global uchar *kept, global uint *count, global uint *starts,
                  global uint *interval)
{
	struct window w;
	struct kinds k;
	uint flags;

	window_load(&w, image, scan, at);
	window_kinds(&k, &w);
	flags = k.odd ? JPEG_FLAG_MARKER : 0;
	for (uint i = 0; i < 16; i++) {
		if (k.kept >> i & 1)
			kept[(*count)++] = (uchar)byte_of(w.words, i);
		if (k.restart >> i & 1) {
			if ((window_next(&w, i) & 7) != *interval % 8)
				flags |= JPEG_FLAG_MARKER;
			if (++*interval < image->intervals.count)
				starts[*interval] = *count;
		}
	}
	return flags;
}

static void open_tables(struct tables *t, const global struct jpeg_image *image,
                        const global ushort *all)
{
	t->near = AS_LOCAL(ushort, all + image->tables);
	t->far_code = AS_LOCAL(uint, image->far_code);
	t->far = all + image->tables + JPEG_TABLES * JPEG_NEAR;
}

/* Reads a subsequence from a state, which becomes that at its end, like sync_again. Returns the number
 * of blocks that end in it. */
uint item_skim(const global struct jpeg_image *image, const global ushort *all,
               const global uint *stream, uint begin, uint end, global uint *state)
{
	const uint bit = begin * 8 + (*state & 31);
	struct state s = {*state >> 5 & 63, *state >> 11 & 15, 0};
	struct tables tables;
	struct bits bits;

	open_tables(&tables, image, all);
	bits_open(&bits, stream, bit);
	*state = state_pack(&s, 0);
	*state = (uint)-skim(image, &tables, stream, &bits, &s, (int)(end * 8 - bit));
	*state = state_pack(&s, -(int)*state);
	return s.ended;
}

/* Writes the blocks that begin in a subsequence, like write_coefficients. words: of a block, zeros. */
uint item_write(const global struct jpeg_image *image, const global ushort *all,
                const global uint *stream, uint begin, uint end, uint interval_end, uint state,
                global uint *words, global ushort *coefficients, uint end_block,
                global uint *block, global int *left)
{
	uchar column[64];
	struct tables tables;
	uint next = *block, flags = 0;
	int rest = (int)(end * 8 - (begin * 8 + (state & 31)));

	for (uint i = 0; i < 64; i++)
		column[i] = by_column[i];
	open_tables(&tables, image, all);
	write_blocks(image, &tables, stream, AS_LOCAL(uchar, column), (local uint *)(ulong)words,
	             (global uint4 *)coefficients, begin * 8 + (state & 31), state,
	             -(int)((interval_end - end) * 8), end_block, &next, &rest, &flags);
	*block = next;
	*left = rest;
	return flags;
}
#else
/* Appends a block's codes to a string of bits, like code. Returns how many they are. */
uint item_code(const global struct jpeg_image *image, const global uint *codes,
               const global ulong *zigzag_halves, const global short *coefficients,
               const global uchar *masks, uint number, global uint *string, uint at)
{
	const uint from = at / 32;
	struct pen pen = {at, 0, from};
	uchar column[64];
	struct block b;

	for (uint i = 0; i < 64; i++)
		column[i] = by_column[i];
	b = begin_block(image, number, coefficients + number * 64, masks + number * 8,
	                AS_LOCAL(uint, codes), AS_LOCAL(uchar, column), AS_LOCAL(ulong, zigzag_halves));
	block_put(&b, &pen, (local uint *)(ulong)(string + from));
	return block_measure(&b);
}
#endif
