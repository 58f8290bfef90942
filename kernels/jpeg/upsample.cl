/* jpeg/upsample.cl: from planes of Y, Cb, Cr to interleaved RGB (JFIF 1.02; T.871), or from Y to
 * gray; bit for bit as libjpeg.
 *
 * Chroma of half the width is interpolated with weights 3/4 and 1/4 of the nearer and the farther
 * sample, and so is its height ("fancy upsampling"); at most two columns of chroma are repeated
 * instead. An item makes 8 pixels of a row, of two rows where chroma has half the height. */

FORCE_INLINE uint rgb_of(int y, int cb, int cr)
{
	const int r = y + ((91881 * (cr - 128) + 32768) >> 16);
	const int g = y + ((-22554 * (cb - 128) - 46802 * (cr - 128) + 32768) >> 16);
	const int b = y + ((116130 * (cb - 128) + 32768) >> 16);

	return (uint)clamp(r, 0, 255) | (uint)clamp(g, 0, 255) << 8 | (uint)clamp(b, 0, 255) << 16;
}

/* Writes `count` of 8 pixels of 3 bytes. */
FORCE_INLINE void pixels_store(global uchar *to, const uint *rgb, uint count)
{
	if (count == 8) {
		global uint2 *words = (global uint2 *)to;

		words[0] = (uint2)(rgb[0] | rgb[1] << 24, rgb[1] >> 8 | rgb[2] << 16);
		words[1] = (uint2)(rgb[2] >> 16 | rgb[3] << 8, rgb[4] | rgb[5] << 24);
		words[2] = (uint2)(rgb[5] >> 8 | rgb[6] << 16, rgb[6] >> 16 | rgb[7] << 8);
	} else {
		for (uint i = 0; i < 3 * count; i++)
			to[i] = (uchar)(rgb[i / 3] >> (i % 3 * 8));
	}
}

FORCE_INLINE void row_store(global uchar *to, uint2 luma, const int *cb, const int *cr, uint count)
{
	uint rgb[8];

#pragma unroll
	for (uint i = 0; i < 8; i++)
		rgb[i] = rgb_of((int)((i < 4 ? luma.x : luma.y) >> ((i & 3) * 8) & 255), cb[i],
		                cr[i]);
	pixels_store(to, rgb, count);
}

/* Loads six samples of a row of `width`: those at x to x + 3, and one to either side; beyond the
 * ends the last is repeated. */
FORCE_INLINE void six_load(const global uchar *row, int x, int width, int *six)
{
	const uint word = *(const global uint *)(row + x);

	six[0] = row[max(x - 1, 0)];
	six[5] = row[min(x + 4, width - 1)];
#pragma unroll
	for (int i = 0; i < 4; i++)
		six[i + 1] = x + i < width ? (int)(word >> (i * 8) & 255) : six[5];
}

/* Interpolates 8 samples between six, each 3/4 of the nearer and 1/4 of the farther: two to the
 * right of each place are rounded otherwise than two to the left, so that errors even out. */
FORCE_INLINE void eight_between(const int *six, int left, int right, int shift, int *eight)
{
#pragma unroll
	for (int i = 0; i < 4; i++) {
		eight[2 * i] = (3 * six[i + 1] + six[i] + left) >> shift;
		eight[2 * i + 1] = (3 * six[i + 1] + six[i + 2] + right) >> shift;
	}
}

/* Interpolates chroma of 8 pixels of half the chroma's width: from one row, or from two rows of
 * half the height. */
FORCE_INLINE void chroma_load(const global struct jpeg_image *image, const global uchar *plane,
                              uint pitch, int x, int y, int upper[8], int lower[8])
{
	const int width = (int)image->chroma_width, height = (int)image->chroma_height;
	const global uchar *row = plane + (ulong)y * pitch;
	int six[6], above[6], below[6];

	six_load(row, x, width, six);
	if (width <= 2) {
#pragma unroll
		for (int i = 0; i < 8; i++)
			upper[i] = lower[i] = six[i / 2 + 1];
	} else if (image->v == 1) {
		eight_between(six, 1, 2, 2, upper);
	} else {
		six_load(plane + (ulong)max(y - 1, 0) * pitch, x, width, above);
		six_load(plane + (ulong)min(y + 1, height - 1) * pitch, x, width, below);
#pragma unroll
		for (int i = 0; i < 6; i++) {
			above[i] += 3 * six[i];
			below[i] += 3 * six[i];
		}
		eight_between(above, 8, 7, 4, upper);
		eight_between(below, 8, 7, 4, lower);
	}
}

JPEG_KERNEL(JPEG_COLOR_GROUP) upsample_color(JPEG_ARGUMENT, const global uchar *planes,
                                       global uchar *samples)
{
	const global struct jpeg_image *image = IMAGE;
	const uint x = get_global_id(0) * 8, y = get_global_id(1) * image->v;

	if (x < image->width && y < image->height) {
		const uint count = min(image->width - x, 8u), pitch = image->plane_pitch[0];
		const global uint2 *luma =
		    (const global uint2 *)(planes + image->plane[0] + (ulong)y * pitch + x);
		global uchar *to = samples + image->samples + (ulong)y * image->samples_pitch +
		                   x * image->components;
		int upper[2][8], lower[2][8];

		if (image->components == 1 && count == 8) {
			*(global uint2 *)to = *luma;
		} else if (image->components == 1) {
			for (uint i = 0; i < count; i++)
				to[i] = ((const global uchar *)luma)[i];
		} else {
#pragma unroll
			for (int i = 0; i < 2; i++) {
				const global uchar *plane = planes + image->plane[1 + i];
				const uint chroma_pitch = image->plane_pitch[1 + i];

				if (image->h == 2) {
					chroma_load(image, plane, chroma_pitch, (int)x / 2,
					            (int)get_global_id(1), upper[i], lower[i]);
				} else {
					const global uchar *row =
					    plane + (ulong)y * chroma_pitch + x;

					for (int j = 0; j < 8; j++)
						upper[i][j] = row[j];
				}
			}
			row_store(to, *luma, upper[0], upper[1], count);
			if (image->v == 2 && y + 1 < image->height)
				row_store(to + image->samples_pitch, luma[pitch / 8], lower[0],
				          lower[1], count);
		}
	}
}
