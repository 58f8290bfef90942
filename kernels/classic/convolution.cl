/* classic/convolution.cl: convolution with a matrix, in four published structures.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - rx, y + j - ry) + offset
 *
 * conv_naive is the starting point of every study, here that of "Tiled Convolution" (AMD APP SDK
 * sample, about 2013): no memory but global, every tap read anew. The other three are from
 * "Heterogeneous compute case study: image convolution filtering", for PowerVR Rogue (Imagination
 * Technologies, 2015): 3x3 on RGBA, where neighbours read mostly the same pixels:
 *
 *                      sampled by a group   how
 *   conv_image         288                  every work-item reads its nine pixels
 *   conv_local_single   60                  one work-item reads the group's 10x6 pixels
 *   conv_local_coop     60                  30 work-items read two of them each
 *
 * Layout of work: conv_naive, one sample a work-item, any group; the others, one pixel of four
 * bands a work-item, groups of 8x4.
 *
 * conv_naive reads a buffer, clamped into `reach`. The others read an image that holds the source
 * ROI and nothing else, so that the sampler's clamping to the edge keeps them inside it and `reach`
 * has nothing to add; `origin` is the place in it of the target region's first pixel. They read
 * samples as shares of full scale (integers: UNORM) and write such an image, `place` being that of
 * the target region's first pixel; the driver rounds. All filter every band, whatever `keep` says.
 * No tunables: the shapes are the studies'. */

kernel void conv_naive(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                       uint keep, int4 reach)
{
	const int x = get_global_id(0), y = get_global_id(1), step = bands;
	const int band = x % bands, left = x - (int)rx * step, top = y - (int)ry;
	const int first = reach.x * step + band, last = reach.z * step + band;
	float total = 0.0f;

	if (x >= samples || y >= rows)
		return;
	for (int j = 0; j <= 2 * (int)ry; j++) {
		source_row p = SOURCE_ROW(clamp(top + j, reach.y, reach.w));
		float sum = 0.0f;

		for (int i = 0; i <= 2 * (int)rx; i++)
			sum = fma(convert_float(p[clamp(left + i * step, first, last)]),
			          *weights++, sum);
		total += sum;
	}
	TARGET_ROW(y)[x] = PIXEL_ROUND_1(total + offset);
}

#ifdef __IMAGE_SUPPORT__
/* REGION_ARGUMENTS with images for source and target. */
#define IMAGES_REGION_ARGUMENTS                                                                    \
	read_only image2d_t source, int2 origin, write_only image2d_t target, int2 place,          \
	    uint samples, uint rows, uint bands, uint blocks

/* The group and the pixels that it needs: one more on every side. */
enum { GROUP_WIDTH = 8, GROUP_HEIGHT = 4, LOCAL_WIDTH = 10, LOCAL_HEIGHT = 6 };

#define ROGUE_GROUP __attribute__((reqd_work_group_size(GROUP_WIDTH, GROUP_HEIGHT, 1)))

FORCE_INLINE float4 conv_read(read_only image2d_t source, int2 at)
{
	const sampler_t nearest =
	    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

	return read_imagef(source, nearest, at);
}

/* Writes a work-item's pixel, unless its place is outside the target region. */
FORCE_INLINE void conv_write(float4 v, write_only image2d_t target, int2 place, uint samples,
                             uint rows)
{
	const uint x = get_global_id(0), y = get_global_id(1);

	if (x * 4 < samples && y < rows)
		write_imagef(target, place + (int2)(x, y), v);
}

/* Returns the offset in the unit of samples that are shares of full scale. */
FORCE_INLINE float conv_share(float offset)
{
#ifdef PIXEL_MAX
	return offset / PIXEL_MAX;
#else
	return offset;
#endif
}

/* Returns the sum of this work-item's window in the image. */
FORCE_INLINE float4 conv_image_sum(read_only image2d_t source, int2 origin,
                                   constant float *weights, float offset)
{
	const int2 centre = origin + (int2)(get_global_id(0), get_global_id(1));
	float4 sum = conv_share(offset);

	for (int j = 0; j < 3; j++)
		for (int i = 0; i < 3; i++)
			sum = fma(conv_read(source, centre + (int2)(i - 1, j - 1)),
			          (float4)(weights[3 * j + i]), sum);
	return sum;
}

/* Returns the place in the image of the first pixel that the group needs. */
FORCE_INLINE int2 conv_block_origin(int2 origin)
{
	return origin + (int2)(get_group_id(0) * GROUP_WIDTH, get_group_id(1) * GROUP_HEIGHT) - 1;
}

/* Reads the group's block with one work-item. */
FORCE_INLINE void conv_fetch_single(local float4 block[LOCAL_HEIGHT][LOCAL_WIDTH],
                                    read_only image2d_t source, int2 origin)
{
	const int2 first = conv_block_origin(origin);

	if (get_local_id(1) * GROUP_WIDTH + get_local_id(0) == 0)
		for (int row = 0; row < LOCAL_HEIGHT; row++)
			for (int column = 0; column < LOCAL_WIDTH; column++)
				block[row][column] =
				    conv_read(source, first + (int2)(column, row));
	barrier(CLK_LOCAL_MEM_FENCE);
}

/* Reads the group's block with 30 work-items: each reads one pixel of the upper half and the pixel
 * below it in the lower half. */
FORCE_INLINE void conv_fetch_coop(local float4 block[LOCAL_HEIGHT][LOCAL_WIDTH],
                                  read_only image2d_t source, int2 origin)
{
	const int2 first = conv_block_origin(origin);
	const int half_height = LOCAL_HEIGHT / 2;
	const int id = get_local_id(1) * GROUP_WIDTH + get_local_id(0);
	const int row = id / LOCAL_WIDTH, column = id - row * LOCAL_WIDTH;

	if (id < LOCAL_WIDTH * half_height) {
		block[row][column] = conv_read(source, first + (int2)(column, row));
		block[row + half_height][column] =
		    conv_read(source, first + (int2)(column, row + half_height));
	}
	barrier(CLK_LOCAL_MEM_FENCE);
}

/* Returns the sum of this work-item's window in the group's block. */
FORCE_INLINE float4 conv_block_sum(local float4 block[LOCAL_HEIGHT][LOCAL_WIDTH],
                                   constant float *weights, float offset)
{
	const int column = get_local_id(0), row = get_local_id(1);
	float4 sum = conv_share(offset);

	for (int j = 0; j < 3; j++)
		for (int i = 0; i < 3; i++)
			sum = fma(block[row + j][column + i], (float4)(weights[3 * j + i]), sum);
	return sum;
}

#define CONV_ARGUMENTS constant float *weights, uint rx, uint ry, float offset, uint keep, int4 reach

kernel ROGUE_GROUP void conv_image(IMAGES_REGION_ARGUMENTS, CONV_ARGUMENTS)
{
	const float4 sum = conv_image_sum(source, origin, weights, offset);

	conv_write(sum, target, place, samples, rows);
}

kernel ROGUE_GROUP void conv_local_single(IMAGES_REGION_ARGUMENTS, CONV_ARGUMENTS)
{
	local float4 block[LOCAL_HEIGHT][LOCAL_WIDTH];

	conv_fetch_single(block, source, origin);
	conv_write(conv_block_sum(block, weights, offset), target, place, samples, rows);
}

kernel ROGUE_GROUP void conv_local_coop(IMAGES_REGION_ARGUMENTS, CONV_ARGUMENTS)
{
	local float4 block[LOCAL_HEIGHT][LOCAL_WIDTH];

	conv_fetch_coop(block, source, origin);
	conv_write(conv_block_sum(block, weights, offset), target, place, samples, rows);
}

#endif
