/* extend.cl: writes the pixels of a region that lie outside the image anew, between two filters of
 * a chain, from those inside (or with a constant).
 *
 * In place: reads only pixels inside the image and writes only pixels outside it. A work-item has
 * one row of one of `blocks` equal parts of the region's width; the third dimension counts the
 * tiles of a stack. Needs border.h. */

enum { EXTEND_CONSTANT = 4 };

/* x0, y0[tile]: the place of the region's first pixel in the image, negative where that is outside;
 * y0s has the first sixteen tiles, more_y0s the others. offset: bytes from the buffer's start to that
 * pixel of the first tile; distance: rows from one tile to the next. width, rows: of the region, in
 * pixels. */
kernel void extend(global uchar *buffer, ulong offset, uint pitch, uint width, uint rows, uint bands,
                   uint blocks, int x0, int16 y0s, int16 more_y0s, uint distance, int image_width,
                   int image_height, int mode, float4 constant_pixel)
{
	const uint i = get_global_id(0), row = get_global_id(1), tile = get_global_id(2);
	union {
		int16 all[2];
		int each[32];
	} first_rows;

	first_rows.all[0] = y0s;
	first_rows.all[1] = more_y0s;
	offset += (ulong)tile * distance * pitch;

	const int y0 = first_rows.each[tile];
	const int y = y0 + (int)row;
	const bool row_inside = y >= 0 && y < image_height;
	const float value[4] = {constant_pixel.x, constant_pixel.y, constant_pixel.z,
	                        constant_pixel.w};

	if (i >= blocks)
		return;

	const int first = x0 + (int)((ulong)width * i / blocks);
	const int end = x0 + (int)((ulong)width * (i + 1) / blocks);
	const int source_y = mode == EXTEND_CONSTANT ? y : border_map(y, image_height, mode);
	global PIXEL *to = (global PIXEL *)(buffer + offset + (ulong)row * pitch);
	const global PIXEL *from =
	    (const global PIXEL *)(buffer + offset + (long)(source_y - y0) * (long)pitch);

	for (int x = first; x < end; x++) {
		if (row_inside && x >= 0 && x < image_width) {
			x = image_width - 1;
			continue;
		}
		for (uint b = 0; b < bands; b++) {
			const long at = (long)(x - x0) * bands + b;

			if (mode == EXTEND_CONSTANT)
				to[at] = CONVERT(PIXEL, )(value[b]);
			else
				to[at] = from[(long)(border_map(x, image_width, mode) - x0) * bands + b];
		}
	}
}
