/* jpeg/downsample.cl: from interleaved RGB to planes of Y, Cb, Cr (JFIF 1.02; T.871), or from gray
 * to Y; bit for bit as libjpeg.
 *
 * Chroma of half the width is the mean of two samples, of half the height too of four, rounded up
 * and down in turn. Planes are filled to whole MCUs with their last sample and row. An item makes 8
 * pixels of a row of MCU-filled Y, of two rows where chroma has half the height. */

/* Loads 8 pixels of `bands` bytes from column x; beyond the width the last is repeated. */
FORCE_INLINE void pixels_load(const global uchar *row, uint x, uint width, uint bands, uint *rgb)
{
	if (bands == 3 && x + 8 <= width) {
		const global uint2 *from = (const global uint2 *)(row + x * 3);
		const uint2 a = from[0], b = from[1], c = from[2];

		rgb[0] = a.x, rgb[1] = a.x >> 24 | a.y << 8;
		rgb[2] = a.y >> 16 | b.x << 16, rgb[3] = b.x >> 8;
		rgb[4] = b.y, rgb[5] = b.y >> 24 | c.x << 8;
		rgb[6] = c.x >> 16 | c.y << 16, rgb[7] = c.y >> 8;
	} else {
#pragma unroll
		for (uint i = 0; i < 8; i++) {
			const global uchar *p = row + min(x + i, width - 1) * bands;

			rgb[i] = bands == 1 ? p[0] : p[0] | (uint)p[1] << 8 | (uint)p[2] << 16;
		}
	}
}

/* Fixed point with 16 bits behind the point, as in libjpeg's jccolor.c. */
FORCE_INLINE uint y_of(uint rgb)
{
	return (19595 * (rgb & 255) + 38470 * (rgb >> 8 & 255) + 7471 * (rgb >> 16 & 255) + 32768) >>
	       16;
}

FORCE_INLINE uint cb_of(uint rgb)
{
	const int r = (int)(rgb & 255), g = (int)(rgb >> 8 & 255), b = (int)(rgb >> 16 & 255);

	return (uint)(-11059 * r - 21709 * g + 32768 * b + (128 << 16) + 32767) >> 16;
}

FORCE_INLINE uint cr_of(uint rgb)
{
	const int r = (int)(rgb & 255), g = (int)(rgb >> 8 & 255), b = (int)(rgb >> 16 & 255);

	return (uint)(32768 * r - 27439 * g - 5329 * b + (128 << 16) + 32767) >> 16;
}

FORCE_INLINE uint2 pack_8(const uint *bytes)
{
	return (uint2)(bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24,
	               bytes[4] | bytes[5] << 8 | bytes[6] << 16 | bytes[7] << 24);
}

FORCE_INLINE uint2 luma_of(const uint *rgb, uint components)
{
	uint y[8];

#pragma unroll
	for (uint i = 0; i < 8; i++)
		y[i] = components == 1 ? rgb[i] : y_of(rgb[i]);
	return pack_8(y);
}

/* Writes the chroma of 8 pixels of one row, or of two, that is of plane `component`. */
FORCE_INLINE void chroma_store(const global struct jpeg_image *image, global uchar *planes,
                               uint component, uint x, uint y, const uint *upper, const uint *lower)
{
	global uchar *row = planes + image->plane[component] +
	                    (ulong)y * image->plane_pitch[component] + (x >> (image->h - 1));
	uint c[8], mean[4];

#pragma unroll
	for (uint i = 0; i < 8; i++) {
		c[i] = component == 1 ? cb_of(upper[i]) : cr_of(upper[i]);
		if (image->v == 2)
			c[i] += component == 1 ? cb_of(lower[i]) : cr_of(lower[i]);
	}
	if (image->h == 1) {
		*(global uint2 *)row = pack_8(c);
		return;
	}
#pragma unroll
	for (uint i = 0; i < 4; i++)
		mean[i] = (c[2 * i] + c[2 * i + 1] + (i & 1) + image->v - 1) >> image->v;
	*(global uint *)row = mean[0] | mean[1] << 8 | mean[2] << 16 | mean[3] << 24;
}

JPEG_KERNEL(JPEG_COLOR_GROUP) downsample_color(JPEG_ARGUMENT, const global uchar *samples,
                                         global uchar *planes)
{
	const global struct jpeg_image *image = IMAGE;
	const uint x = get_global_id(0) * 8, y = get_global_id(1), v = image->v;
	const uint last = image->height - 1;

	if (x < image->mcus_x * image->h * 8 && y < image->mcus_y * 8) {
		/* Rows of chroma: the last row that has a sample is repeated, as is the last
		 * sample. */
		const uint from = min(y, image->chroma_height - 1);
		const global uchar *rows = samples + image->samples;
		global uchar *to = planes + image->plane[0] +
		                   (ulong)(y * v) * image->plane_pitch[0] + x;
		uint upper[8], lower[8];
		uint2 luma;

		pixels_load(rows + (ulong)min(from * v, last) * image->samples_pitch, x,
		            image->width, image->components, upper);
		pixels_load(rows + (ulong)min(from * v + v - 1, last) * image->samples_pitch, x,
		            image->width, image->components, lower);
		luma = luma_of(lower, image->components);
		if (v == 2)
			*(global uint2 *)(to + image->plane_pitch[0]) = luma;
		if (from == y)
			luma = luma_of(upper, image->components);
		*(global uint2 *)to = luma;
		if (image->components == 3) {
			chroma_store(image, planes, 1, x, y, upper, lower);
			chroma_store(image, planes, 2, x, y, upper, lower);
		}
	}
}
