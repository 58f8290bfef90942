/* pixelate.cl: the mean of each block of the image: see blocks.cl.
 *
 * A work-item makes a `run` of blocks side by side; on a GPU `lanes` work-items of a group share
 * each block, and each sums every lanes-th column. `lanes` is a power of two. Sums of floats depend
 * on their order, so a block of floats has as many sums as lanes at most, whatever their number
 * is. */

/* The largest group. */
#ifndef PIXELATE_GROUP
#define PIXELATE_GROUP 64
#endif

/* Sums every step-th pixel, from the lane-th on, of each row of a block; p: its first sample. */
FORCE_INLINE void pixelate_add(pixelate_sum out[4], const global uchar *p, uint pitch, uint lane,
                               uint step, uint size, const uint bands, float share)
{
	pixelate_sum sum[4] = {0, 0, 0, 0}, lost[4] = {0, 0, 0, 0};

	for (uint y = 0; y < size; y++) {
		const source_row row = (source_row)(p + (ulong)y * pitch);

		for (uint x = lane; x < size; x += step)
#pragma unroll
			for (uint b = 0; b < bands; b++) {
				const pixelate_sum v =
				    PIXELATE_TERM(row[x * bands + b], share) - lost[b];
				const pixelate_sum total = sum[b] + v;

				lost[b] = PIXELATE_LOST(total, sum[b], v);
				sum[b] = total;
			}
	}
	for (uint b = 0; b < bands; b++)
		out[b] = sum[b];
}

/* The same, written so that compilers see the number of bands. */
FORCE_INLINE void pixelate_add_bands(pixelate_sum out[4], const global uchar *p, uint pitch, uint lane,
                                     uint step, uint size, uint bands, float share)
{
	if (bands == 1)
		pixelate_add(out, p, pitch, lane, step, size, 1, share);
	else if (bands == 2)
		pixelate_add(out, p, pitch, lane, step, size, 2, share);
	else if (bands == 3)
		pixelate_add(out, p, pitch, lane, step, size, 3, share);
	else
		pixelate_add(out, p, pitch, lane, step, size, 4, share);
}

/* Writes every step-th pixel of a row; value: that of its bands. */
FORCE_INLINE void pixelate_write(const PIXEL value[4], source_row in, target_row out, uint first,
                                 uint end, uint step, uint bands, uint keep)
{
	for (uint x = first; x < end; x += step)
		for (uint b = 0; b < bands; b++)
			out[x * bands + b] = keep >> b & 1 ? in[x * bands + b] : value[b];
}

/* Returns the number of sums in a block. */
FORCE_INLINE uint pixelate_sums(uint size, uint lanes)
{
	return PIXELATE_EXACT ? lanes : min(1u << (31 - clz(size)), (uint)PIXELATE_GROUP);
}

/* Adds up the sums of a block into the first. */
FORCE_INLINE void pixelate_join(local pixelate_sum *first, uint sums, uint lane, uint lanes,
                                uint bands)
{
	for (uint apart = sums / 2; apart > 0; apart /= 2) {
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint i = lane; i < apart; i += lanes)
			for (uint b = 0; b < bands; b++)
				first[i * 4 + b] += first[(i + apart) * 4 + b];
	}
	barrier(CLK_LOCAL_MEM_FENCE);
}

kernel void pixelate(REGION_ARGUMENTS, PLACE_ARGUMENTS, uint size, uint lanes, uint run, uint keep)
{
	local pixelate_sum all[PIXELATE_GROUP * 4];
	const uint lane = get_local_id(0) % lanes, width = samples / bands;
	const uint sums = pixelate_sums(size, lanes);
	const int y0 = place_y0(y0s, more_y0s);
	const struct pixelate_span down =
	    pixelate_block(get_global_id(1), y0, rows, image_height, (int)size);
	const float share = 1.0f / (float)(size * size);
	local pixelate_sum *first = all + get_local_id(0) / lanes * sums * 4;

	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;
	for (uint i = 0; i < run; i++) {
		const struct pixelate_span across =
		    pixelate_block((uint)get_global_id(0) / lanes * run + i, x0, width, image_width,
		                   (int)size);
		const bool some = across.from < across.to && down.from < down.to;
		PIXEL value[4];

		for (uint way = lane; way < sums; way += lanes) {
			const global uchar *p =
			    (const global uchar *)(SOURCE_ROW(down.start - y0) +
			                           (long)(across.start - x0) * bands);
			pixelate_sum sum[4] = {0, 0, 0, 0};

			if (some)
				pixelate_add_bands(sum, p, src_pitch, way, sums, size, bands, share);
			for (uint b = 0; b < bands; b++)
				first[way * 4 + b] = sum[b];
		}
		pixelate_join(first, sums, lane, lanes, bands);
		for (uint b = 0; b < bands; b++)
			value[b] = PIXEL_ROUND_1(PIXELATE_MEAN(first[b], share));
		for (int y = down.from; some && y < down.to; y++)
			pixelate_write(value, SOURCE_ROW(y - y0), TARGET_ROW(y - y0),
			               across.from - x0 + lane, across.to - x0, lanes, bands, keep);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}
