/* classic/bilateral.cl: the bilateral filter in the structures of "Bilateral filter:
 * optimizations for the Imagination platform", a PowerVR SGX 544 (SagivTech, about 2014).
 *
 * out(x, y) = sum of w * in(x + i, y + j) / sum of w, over i² + j² <= radius²
 * w = exp2(space * (i² + j²) + range * e²), e² being summed over the bands
 *
 * bilateral_naive     a buffer, two nested loops, the radius an argument
 *   bilateral_image     the same through an image; the sampler clamps to the edge
 *   bilateral_unrolled  as the study proposes and did not try: compiled for a radius, loops
 *   unrolled, so that the window's shape is a constant
 *
 * Layout of work: one pixel a work-item, any group, no local memory. naive and unrolled take 1 to 4
 * bands and read inside `reach` only, coordinates outside being clamped into it. image takes 1
 * (CL_R) or 4 (CL_RGBA), the image holding the source ROI and nothing else; `origin` is the place in
 * it of the target region's first pixel. All count every band as colour, whatever `alpha` and `keep`
 * say. */

/* A pixel's samples; missing bands are 0. */
FORCE_INLINE float4 pixel_read(source_row p, uint bands)
{
	return (float4)(convert_float(p[0]), bands > 1 ? convert_float(p[1]) : 0.0f,
	                bands > 2 ? convert_float(p[2]) : 0.0f,
	                bands > 3 ? convert_float(p[3]) : 0.0f);
}

/* Weighted sums of the window so far. */
struct bilateral {
	float4 colour;
	float weight;
};

FORCE_INLINE void bilateral_add(struct bilateral *sum, float4 pixel, float4 centre, int distance2,
                                float space, float range)
{
	const float4 difference = pixel - centre;
	const float weight = exp2(fma(range, dot(difference, difference), space * distance2));

	sum->colour = fma(pixel, (float4)(weight), sum->colour);
	sum->weight += weight;
}

FORCE_INLINE void bilateral_write(const struct bilateral *sum, target_row p, uint bands)
{
	p[0] = PIXEL_ROUND_1(sum->colour.x / sum->weight);
	if (bands > 1)
		p[1] = PIXEL_ROUND_1(sum->colour.y / sum->weight);
	if (bands > 2)
		p[2] = PIXEL_ROUND_1(sum->colour.z / sum->weight);
	if (bands > 3)
		p[3] = PIXEL_ROUND_1(sum->colour.w / sum->weight);
}

kernel void bilateral_naive(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha,
                            uint keep, int4 reach)
{
	const int x = get_global_id(0), y = get_global_id(1), n = radius;
	struct bilateral sum = {0.0f, 0.0f};
	float4 centre;

	if (x * bands >= samples || y >= rows)
		return;
	centre = pixel_read(SOURCE_ROW(clamp(y, reach.y, reach.w)) +
	                        (long)clamp(x, reach.x, reach.z) * bands,
	                    bands);
	for (int j = -n; j <= n; j++) {
		source_row p = SOURCE_ROW(clamp(y + j, reach.y, reach.w));

		for (int i = -n; i <= n; i++)
			if (i * i + j * j <= n * n) {
				const long column = clamp(x + i, reach.x, reach.z);

				bilateral_add(&sum, pixel_read(p + column * bands, bands), centre,
				              i * i + j * j, space, range);
			}
	}
	bilateral_write(&sum, TARGET_ROW(y) + (long)x * bands, bands);
}

#ifdef __IMAGE_SUPPORT__
/* Returns a pixel of an image, or the nearest to a place outside; integers come as they are, not as
 * shares of full scale. */
FORCE_INLINE float4 image_read(read_only image2d_t image, int2 at)
{
	const sampler_t nearest =
	    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

#ifdef PIXEL_MAX
	return convert_float4(read_imageui(image, nearest, at));
#else
	return read_imagef(image, nearest, at);
#endif
}

kernel void bilateral_image(read_only image2d_t source, int2 origin, global uchar *dst,
                            ulong dst_offset, uint dst_pitch, uint samples, uint rows, uint bands,
                            uint blocks, uint radius, float space, float range, uint alpha,
                            uint keep, int4 reach)
{
	const int x = get_global_id(0), y = get_global_id(1), n = radius;
	const int2 at = origin + (int2)(x, y);
	struct bilateral sum = {0.0f, 0.0f};
	float4 centre;

	if (x * bands >= samples || y >= rows)
		return;
	centre = image_read(source, at);
	for (int j = -n; j <= n; j++)
		for (int i = -n; i <= n; i++)
			if (i * i + j * j <= n * n)
				bilateral_add(&sum, image_read(source, at + (int2)(i, j)), centre,
				              i * i + j * j, space, range);
	bilateral_write(&sum, TARGET_ROW(y) + (long)x * bands, bands);
}

#endif

kernel void bilateral_unrolled(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha,
                               uint keep, int4 reach)
{
	const int x = get_global_id(0), y = get_global_id(1);
	struct bilateral sum = {0.0f, 0.0f};
	float4 centre;

	if (x * BANDS >= samples || y >= rows)
		return;
	centre = pixel_read(SOURCE_ROW(clamp(y, reach.y, reach.w)) +
	                        (long)clamp(x, reach.x, reach.z) * BANDS,
	                    BANDS);
#pragma unroll
	for (int j = -RADIUS_X; j <= RADIUS_X; j++) {
		source_row p = SOURCE_ROW(clamp(y + j, reach.y, reach.w));

#pragma unroll
		for (int i = -RADIUS_X; i <= RADIUS_X; i++)
			if (i * i + j * j <= RADIUS_X * RADIUS_X) {
				const long column = clamp(x + i, reach.x, reach.z);

				bilateral_add(&sum, pixel_read(p + column * BANDS, BANDS), centre,
				              i * i + j * j, space, range);
			}
	}
	bilateral_write(&sum, TARGET_ROW(y) + (long)x * BANDS, BANDS);
}
