/* pixelate_rows.cl: the mean of each block of the image, for CPUs: see blocks.cl.
 *
 * A work-item makes a `run` of blocks side by side. All their columns are added up first, in vectors,
 * a few rows at a time; then the columns of each block. The means make a line of pixels, which is
 * copied to all rows. */

enum {
	SIZE = RADIUS_X + 1,
	PIXELATE_TOGETHER = 8, /* rows */
	/* A run has BLOCK_X samples, unless a single block has more. */
	PIXELATE_LINE = (SIZE * BANDS > BLOCK_X ? SIZE * BANDS : BLOCK_X) + LANES,
};

/* Sums of columns: 256 bytes fit 16 bits. */
#define COLUMN_OF_uchar  ushort
#define COLUMN_OF_ushort uint
#define COLUMN_OF_float  float
#define COLUMN           PASTE(COLUMN_OF_, PIXEL, )
typedef COLUMN columns __attribute__((ext_vector_type(LANES)));
typedef COLUMN columns_anywhere
    __attribute__((ext_vector_type(LANES), aligned(sizeof(COLUMN))));

#ifdef PIXEL_MAX
#define COLUMNS_OF(bits) __builtin_convertvector(bits, columns)
#else
#define COLUMNS_OF(bits) __builtin_astype(bits, columns)
#endif

/* Sums of columns, and the rounding errors of floats. */
struct pixelate_lines {
	COLUMN total[PIXELATE_LINE], lost[PIXELATE_LINE];
};

/* Adds `count` rows to the columns from sample x of the lines on. p: the first row; mask: which of
 * its first `width` samples count. */
FORCE_INLINE void pixelate_add_rows(struct pixelate_lines *lines, uint x, const global uchar *p,
                                    uint pitch, uint count, float share, keys mask, uint width)
{
	private columns_anywhere *const total = (private columns_anywhere *)(lines->total + x);
	private columns_anywhere *const lost = (private columns_anywhere *)(lines->lost + x);
	columns sum = *total, off = PIXELATE_EXACT ? (columns)0 : *lost;

	for (uint r = 0; r < count; r++) {
		const keys bits = bits_load((source_row)(p + (ulong)r * pitch), width) & mask;
		const columns v = PIXELATE_TERM(COLUMNS_OF(bits), share) - off;
		const columns next = sum + v;

		off = PIXELATE_LOST(next, sum, v);
		sum = next;
	}
	*total = sum;
	if (!PIXELATE_EXACT)
		*lost = off;
}

/* Adds up the columns. The last vector is moved back, and leaves out samples that the previous one
 * has. */
FORCE_INLINE void pixelate_add(struct pixelate_lines *lines, source_row in, uint pitch, uint count,
                               float share)
{
	const uint width = min(count, (uint)LANES);
	key counts[2 * LANES];

	for (int i = 0; i < 2 * LANES; i++)
		counts[i] = i < LANES ? 0 : -1;
	for (uint x = 0; x < count; x += LANES) {
		*(private columns_anywhere *)(lines->total + x) = 0;
		*(private columns_anywhere *)(lines->lost + x) = 0;
	}
	for (uint y = 0; y < SIZE; y += PIXELATE_TOGETHER)
		for (uint i = 0; i < count; i += LANES) {
			const uint x = min(i, count - width);

			pixelate_add_rows(lines, x,
			                  (const global uchar *)(in + x) + (ulong)y * pitch, pitch,
			                  min(SIZE - y, (uint)PIXELATE_TOGETHER), share,
			                  KEYS_LOAD(private, counts + LANES - (i - x)), width);
		}
}

/* Returns the mean of a band of a block; p: its first column. */
FORCE_INLINE PIXEL pixelate_mean(const private COLUMN *p, float share)
{
	pixelate_sum sum = 0, lost = 0;

	for (uint i = 0; i < SIZE; i++) {
		const pixelate_sum v = p[i * BANDS] - lost;
		const pixelate_sum total = sum + v;

		lost = PIXELATE_LOST(total, sum, v);
		sum = total;
	}
	return PIXEL_ROUND_1(PIXELATE_MEAN(sum, share));
}

/* Copies samples to a row; the last vector may overlap another. It does not write past the cache:
 * that takes longer, as a block's rows are written one right after another. */
FORCE_INLINE void pixelate_copy(const private PIXEL *line, target_row out, uint count)
{
	for (uint x = 0; x + LANES <= count; x += LANES)
		KEYS_STORE(global, KEYS_LOAD(private, line + x), out + x);
	if (count >= LANES) {
		KEYS_STORE(global, KEYS_LOAD(private, line + count - LANES), out + count - LANES);
		return;
	}
	for (uint x = 0; x < count; x++)
		out[x] = line[x];
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
pixelate_rows(REGION_ARGUMENTS, PLACE_ARGUMENTS, uint size, uint lanes, uint run, uint keep)
{
	const int y0 = place_y0(y0s, more_y0s), width = (int)(samples / BANDS);
	const struct pixelate_span down =
	    pixelate_block(get_global_id(1), y0, rows, image_height, SIZE);
	const struct pixelate_span first =
	    pixelate_block(get_global_id(0) * run, x0, width, image_width, SIZE);
	const float share = 1.0f / (float)(SIZE * SIZE);
	struct pixelate_span block = first, last = first;
	struct pixelate_lines lines __attribute__((aligned(64)));
	PIXEL line[PIXELATE_LINE] __attribute__((aligned(64)));

	if (first.from >= first.to || down.from >= down.to)
		return;
	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;
	for (uint i = 1; i < run; i++) {
		block = pixelate_next(block, x0 + width, image_width, SIZE);
		if (block.from >= block.to)
			break;
		last = block;
	}
	pixelate_add(&lines, SOURCE_ROW(down.start - y0) + (long)(first.start - x0) * BANDS,
	             src_pitch, (uint)(last.start + SIZE - first.start) * BANDS, share);
	for (block = first; block.from <= last.from;
	     block = pixelate_next(block, x0 + width, image_width, SIZE))
		for (uint b = 0; b < BANDS; b++) {
			const PIXEL v = pixelate_mean(
			    lines.total + (block.start - first.start) * BANDS + b, share);

			for (int x = block.from; x < block.to; x++)
				line[(x - first.from) * BANDS + (int)b] = v;
		}
	for (int y = down.from; y < down.to; y++) {
		const uint2 span = (uint2)(first.from - x0, last.to - x0) * (uint)BANDS;

		pixelate_copy(line, TARGET_ROW(y - y0) + span.x, span.y - span.x);
		keys_keep(SOURCE_ROW(y - y0), TARGET_ROW(y - y0), span, BANDS, KEEP);
	}
}
