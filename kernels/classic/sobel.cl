/* classic/sobel.cl: the magnitude of Sobel's gradient, of bytes of one band, in the structures of
 * "Optimizing Simple OpenCL Kernels: Sobel Kernel Optimization" (Intel, 2014), which are for its
 * processors' graphics.
 *
 * gx = in(x + 1, y - 1) + 2 in(x + 1, y) + in(x + 1, y + 1) - the same of x - 1; gy its transpose;
 * out = sqrt(gx² + gy²), rounded, saturated to a byte
 *
 *                       a work-item makes   reads
 *   sobel_uchar         1 byte              8 bytes
 *   sobel_uchar4        4 bytes             of each row a uchar4, and the bytes beside it
 *   sobel_float16_tile  16 rows of 16       of each row three vectors of 16, one byte apart: nine
 *                                           for the first row, then three a row
 *
 * Layout of work: as the table, any group, no local memory, no tunables.
 *
 * The study pads the image, so that no kernel tests a border, and makes it a multiple of 16 wide.
 * So these ask once, of the whole region, whether `reach` has one pixel more on every side; if it
 * does, they read around every place without a test. If not, and for the rest of a row beyond a
 * multiple of 4 or 16, bytes are made one by one, read clamped into reach. The parameters of other
 * gradients (s0 to keep) are ignored. PIXEL must be uchar. */

/* Tells whether the whole region can be read one pixel beyond its edges. */
FORCE_INLINE bool sobel_padded(int4 reach, uint samples, uint rows)
{
	return reach.x < 0 && reach.y < 0 && reach.z >= (int)samples && reach.w >= (int)rows;
}

/* One source row's contribution: the difference across, and the smoothed row. */
struct sobel_row {
	int difference, smooth;
};

FORCE_INLINE struct sobel_row sobel_row_of(int left, int centre, int right)
{
	struct sobel_row row = {right - left, left + 2 * centre + right};

	return row;
}

FORCE_INLINE PIXEL sobel_magnitude(struct sobel_row above, int difference, struct sobel_row below)
{
	const int gx = above.difference + 2 * difference + below.difference;
	const int gy = below.smooth - above.smooth;

	return PIXEL_ROUND_1(sqrt((float)(gx * gx + gy * gy)));
}

/* Makes one byte, read clamped. */
FORCE_INLINE PIXEL sobel_clamped(const global uchar *src, ulong src_offset, uint src_pitch, int x,
                                 int y, int4 reach)
{
	source_row above = SOURCE_ROW(clamp(y - 1, reach.y, reach.w));
	source_row here = SOURCE_ROW(clamp(y, reach.y, reach.w));
	source_row below = SOURCE_ROW(clamp(y + 1, reach.y, reach.w));
	const int left = clamp(x - 1, reach.x, reach.z), centre = clamp(x, reach.x, reach.z);
	const int right = clamp(x + 1, reach.x, reach.z);

	return sobel_magnitude(sobel_row_of(above[left], above[centre], above[right]),
	                       here[right] - here[left],
	                       sobel_row_of(below[left], below[centre], below[right]));
}

/* Makes those bytes of the width x height block at (x, y) that are inside the region. */
FORCE_INLINE void sobel_block_clamped(const global uchar *src, ulong src_offset, uint src_pitch,
                                      global uchar *dst, ulong dst_offset, uint dst_pitch,
                                      uint samples, uint rows, uint x, uint y, uint width,
                                      uint height, int4 reach)
{
	for (uint r = y; r < min(rows, y + height); r++)
		for (uint c = x; c < min(samples, x + width); c++)
			TARGET_ROW(r)[c] = sobel_clamped(src, src_offset, src_pitch, c, r, reach);
}

kernel void sobel_uchar(REGION_ARGUMENTS, float s0, float s1, float s2, uint output, float scale,
                        float offset, uint keep, int4 reach)
{
	const uint x = get_global_id(0), y = get_global_id(1);

	if (x >= samples || y >= rows)
		return;
	if (sobel_padded(reach, samples, rows)) {
		source_row above = SOURCE_ROW((long)y - 1) + x, here = SOURCE_ROW(y) + x;
		source_row below = SOURCE_ROW((long)y + 1) + x;

		TARGET_ROW(y)[x] = sobel_magnitude(sobel_row_of(above[-1], above[0], above[1]),
		                                   here[1] - here[-1],
		                                   sobel_row_of(below[-1], below[0], below[1]));
	} else {
		sobel_block_clamped(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples,
		                    rows, x, y, 1, 1, reach);
	}
}

/* The same for four bytes side by side, and for sixteen. */
struct sobel_row4 {
	int4 difference, smooth;
};

FORCE_INLINE struct sobel_row4 sobel_read4(source_row p)
{
	const int4 centre = convert_int4(vload4(0, p));
	const int4 left = (int4)(p[-1], centre.x, centre.y, centre.z);
	const int4 right = (int4)(centre.y, centre.z, centre.w, p[4]);
	struct sobel_row4 row = {right - left, left + 2 * centre + right};

	return row;
}

kernel void sobel_uchar4(REGION_ARGUMENTS, float s0, float s1, float s2, uint output, float scale,
                         float offset, uint keep, int4 reach)
{
	const uint x = get_global_id(0) * 4, y = get_global_id(1);

	if (x >= samples || y >= rows)
		return;
	if (sobel_padded(reach, samples, rows) && x + 4 <= samples) {
		const struct sobel_row4 a = sobel_read4(SOURCE_ROW((long)y - 1) + x);
		const struct sobel_row4 b = sobel_read4(SOURCE_ROW(y) + x);
		const struct sobel_row4 c = sobel_read4(SOURCE_ROW((long)y + 1) + x);
		const int4 gx = a.difference + 2 * b.difference + c.difference;
		const int4 gy = c.smooth - a.smooth;

		vstore4(PIXEL_ROUND_4(sqrt(convert_float4(gx * gx + gy * gy))), 0,
		        TARGET_ROW(y) + x);
	} else {
		sobel_block_clamped(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples,
		                    rows, x, y, 4, 1, reach);
	}
}

struct sobel_row16 {
	float16 difference, smooth;
};

FORCE_INLINE struct sobel_row16 sobel_read16(source_row p)
{
	const float16 left = convert_float16(vload16(0, p - 1));
	const float16 centre = convert_float16(vload16(0, p));
	const float16 right = convert_float16(vload16(0, p + 1));
	struct sobel_row16 row = {right - left, fma(centre, (float16)(2.0f), left + right)};

	return row;
}

kernel void sobel_float16_tile(REGION_ARGUMENTS, float s0, float s1, float s2, uint output,
                               float scale, float offset, uint keep, int4 reach)
{
	const uint x = get_global_id(0) * 16, y = get_global_id(1) * 16;

	if (x >= samples || y >= rows)
		return;
	if (sobel_padded(reach, samples, rows) && x + 16 <= samples) {
		struct sobel_row16 a = sobel_read16(SOURCE_ROW((long)y - 1) + x);
		struct sobel_row16 b = sobel_read16(SOURCE_ROW(y) + x);

		for (uint r = y; r < min(rows, y + 16); r++) {
			const struct sobel_row16 c = sobel_read16(SOURCE_ROW((long)r + 1) + x);
			const float16 gx = fma(b.difference, (float16)(2.0f),
			                       a.difference + c.difference);
			const float16 gy = c.smooth - a.smooth;

			vstore16(PIXEL_ROUND(sqrt(fma(gx, gx, gy * gy))), 0, TARGET_ROW(r) + x);
			a = b;
			b = c;
		}
	} else {
		sobel_block_clamped(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples,
		                    rows, x, y, 16, 16, reach);
	}
}
