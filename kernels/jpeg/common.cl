/* jpeg/common.cl: functions and tables of several stages; stands between common.cl and the kernels
 * of jpeg/.
 *
 * Launches have three dimensions; the last is the image in the batch. The grid is that of the
 * largest image, so groups may have nothing to do. They do not return early: PoCL 3.1 compiles
 * conditions after a barrier wrongly if work-items may have returned before it. Functions return no
 * structs: Oclgrind cannot run the compiler's code for them.
 *
 * Coefficients of a block lie column after column, as the inverse transform wants them: 8 columns
 * of 8 coefficients, 16 bytes each. */

#define JPEG_KERNEL(items) kernel __attribute__((reqd_work_group_size(items, 1, 1))) void
#define JPEG_ARGUMENT      const global struct jpeg_image *images
#define IMAGE              (images + get_group_id(2))

/* The place in a block, column after column, of each coefficient in zigzag order. */
constant uchar by_column[64] = {
    0,  8,  1,  2,  9,  16, 24, 17, 10, 3,  4,  11, 18, 25, 32, 40, 33, 26, 19, 12, 5,  6,
    13, 20, 27, 34, 41, 48, 56, 49, 42, 35, 28, 21, 14, 7,  15, 22, 29, 36, 43, 50, 57, 58,
    51, 44, 37, 30, 23, 31, 38, 45, 52, 59, 60, 53, 46, 39, 47, 54, 61, 62, 55, 63};

/* Returns byte i of 16 bytes in words, the lowest bits being the first. */
FORCE_INLINE uint byte_of(const uint *words, uint i)
{
	return words[i >> 2] >> ((i & 3) * 8) & 255;
}

FORCE_INLINE void words_of(uint *words, uint4 v)
{
	words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}

/* Makes exclusive prefix sums over the items of a group of JPEG_GROUP; *total: the sum of all. Each
 * step adds the sum twice as far back (Hillis & Steele, 1986). */
#define ADD_WRAPPING(a, b) ((a) + (b))
#define GROUP_PREFIX(name, type, add)                                                              \
	FORCE_INLINE type name(type value, local type *sums, type *total)                          \
	{                                                                                          \
		const uint item = get_local_id(0);                                                 \
		type sum = value;                                                                  \
                                                                                                   \
		sums[item] = sum;                                                                  \
		barrier(CLK_LOCAL_MEM_FENCE);                                                      \
		for (uint back = 1; back < JPEG_GROUP; back *= 2) {                                \
			type more = item >= back ? sums[item - back] : (type)(0);                  \
                                                                                                   \
			barrier(CLK_LOCAL_MEM_FENCE);                                              \
			sum = add(sum, more);                                                      \
			sums[item] = sum;                                                          \
			barrier(CLK_LOCAL_MEM_FENCE);                                              \
		}                                                                                  \
		*total = sums[JPEG_GROUP - 1];                                                     \
		barrier(CLK_LOCAL_MEM_FENCE);                                                      \
		return sum - value;                                                                \
	}
GROUP_PREFIX(group_prefix, uint, add_sat)
GROUP_PREFIX(group_prefix4, uint4, ADD_WRAPPING)

/* Returns the share [x, y) of `count` elements of an item of a group of JPEG_GROUP, for sums that
 * one group makes over a whole image. */
FORCE_INLINE uint2 item_share(uint count)
{
	const uint each = (count + JPEG_GROUP - 1) / JPEG_GROUP;
	const uint first = min((uint)get_local_id(0) * each, count);

	return (uint2)(first, min(first + each, count));
}

/* A block among the image's rows of blocks: those of Y, then those of Cb and Cr side by side. */
struct place {
	bool live;      /* there is a block */
	uint component;
	uint x, y;      /* in its component, in blocks */
	uint mcu, block; /* in the order of the scan */
};

FORCE_INLINE void place_of(struct place *p, const global struct jpeg_image *image, uint x, uint y)
{
	const uint luma_rows = image->mcus_y * image->v;

	if (y < luma_rows) {
		p->live = x < image->mcus_x * image->h;
		p->component = 0;
		p->x = x;
		p->y = y;
		/* h and v are 1 or 2: shifts and masks instead of divisions. */
		p->mcu = (y >> (image->v - 1)) * image->mcus_x + (x >> (image->h - 1));
		p->block = p->mcu * image->mcu_blocks + (y & (image->v - 1)) * image->h +
		          (x & (image->h - 1));
	} else {
		p->live = image->components == 3 && x < 2 * image->mcus_x &&
		         y < luma_rows + image->mcus_y;
		p->component = x < image->mcus_x ? 1 : 2;
		p->x = x < image->mcus_x ? x : x - image->mcus_x;
		p->y = y - luma_rows;
		p->mcu = p->y * image->mcus_x + p->x;
		p->block = p->mcu * image->mcu_blocks + image->luma_blocks + p->component - 1;
	}
}

/* Huffman codes ------------------------------------------------------------------------------- */

/* 96 bits of the stream: the first 32 that are not yet read begin at bit `skip` of word[0]. */
struct bits {
	uint word[3], next, skip;
};

FORCE_INLINE void bits_open(struct bits *b, const global uint *stream, uint bit)
{
	b->skip = bit & 31;
	b->next = (bit >> 5) + 3;
	for (uint i = 0; i < 3; i++)
		b->word[i] = stream[(bit >> 5) + i];
}

FORCE_INLINE uint bits_peek(const struct bits *b)
{
	return (uint)((((ulong)b->word[0] << 32 | b->word[1]) << b->skip) >> 32);
}

FORCE_INLINE void bits_skip(struct bits *b, const global uint *stream, uint count)
{
	const uint skip = b->skip + count;

	b->skip = skip & 31;
	if (skip >= 32) {
		b->word[0] = b->word[1];
		b->word[1] = b->word[2];
		b->word[2] = stream[b->next++];
	}
}

/* Returns a table's entry for a code and the value's bits behind it: bits in all (5 bits), places
 * to advance in the block (7; 64 and more: to its end), bits of the value (4). No code: 127 places.
 * The near tables are in local memory; 0 there: the code is longer. */
struct tables {
	const local ushort *near;
	const local uint *far_code;
	const global ushort *far;
};

/* table: 2 for chroma, and 1 for AC. */
FORCE_INLINE uint table_entry(const struct tables *t, uint table, uint bits)
{
	const uint entry = t->near[table * JPEG_NEAR + (bits >> 22)];

	if (entry)
		return entry;
	return t->far[table * JPEG_FAR + min((bits >> 16) - t->far_code[table], JPEG_FAR - 1u)];
}

/* Returns the pair of tables of block `block` of an MCU: 0 or 2. */
FORCE_INLINE uint block_tables(const global struct jpeg_image *image, uint block)
{
	return block < image->luma_blocks ? 0 : 2;
}

/* Copies the near tables to local memory, with all items of a group. */
FORCE_INLINE void tables_load(struct tables *t, const global struct jpeg_image *image,
                              const global ushort *all, local ushort *near, local uint *far_code)
{
	const global uint4 *from = (const global uint4 *)(all + image->tables);
	local uint4 *to = (local uint4 *)near;

	t->near = near;
	t->far_code = far_code;
	t->far = all + image->tables + JPEG_TABLES * JPEG_NEAR;
	for (uint i = get_local_id(0); i < JPEG_TABLES * JPEG_NEAR / 8; i += get_local_size(0))
		to[i] = from[i];
	if (get_local_id(0) < JPEG_TABLES)
		far_code[get_local_id(0)] = image->far_code[get_local_id(0)];
}

/* Returns a subsequence's interval: the last of `count` whose first is not after it. */
FORCE_INLINE uint interval_of(const global uint *first, uint count, uint subsequence)
{
	uint low = 0, high = count;

	while (high - low > 1) {
		const uint middle = (low + high) / 2;

		if (first[middle] <= subsequence)
			low = middle;
		else
			high = middle;
	}
	return low;
}
