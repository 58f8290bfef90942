/* extend.cl: writes the pixels of a region that lie outside the image anew, between two filters of
 * a chain, from those inside (or with a constant).
 *
 * In place: reads only pixels inside the image and writes only pixels outside it. A work-item has
 * one row of one of `blocks` equal parts of the region's width; the third dimension counts the
 * tiles of a stack. Needs border.h. */

enum { EXTEND_CONSTANT = 4 };

/* offset: bytes from the buffer's start to the region's first pixel in the first tile. width, rows:
 * those of the region, in pixels. */
kernel void extend(global uchar *buffer, ulong offset, uint pitch, uint width, uint rows, uint bands,
                   uint blocks, PLACE_ARGUMENTS, int mode, float4 constant_pixel)
{
	const uint i = get_global_id(0), row = get_global_id(1), tile = stack_tile();
	const int y0 = place_y0(y0s, more_y0s);
	const int y = y0 + (int)row;
	const bool row_inside = y >= 0 && y < image_height;
	const float value[4] = {constant_pixel.x, constant_pixel.y, constant_pixel.z,
	                        constant_pixel.w};

	if (i >= blocks)
		return;
	offset += (ulong)tile * distance * pitch;

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
