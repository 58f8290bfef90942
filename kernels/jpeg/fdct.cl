/* jpeg/fdct.cl: forward DCT and quantization, bit for bit libjpeg's "islow" (see idct.cl).
 *
 * 8 items transform a block, a row each, then, by way of local memory, a column each. Beside the
 * coefficients, column after column, each column leaves a byte that says which of its coefficients
 * are not 0, so that code.cl reads only those.
 *
 * Blocks that only fill the last MCUs have the DC coefficient of the block before them and no
 * other, as libjpeg makes them (jccoefct.c): their code is shortest. */

enum { TILE_PITCH = 9 };

/* Makes one pass over 8 numbers; `first`: the pass whose results have two bits behind the point. */
FORCE_INLINE void fdct_8(int *x, const int shift, const bool first)
{
	const int s0 = x[0] + x[7], d0 = x[0] - x[7], s1 = x[1] + x[6], d1 = x[1] - x[6];
	const int s2 = x[2] + x[5], d2 = x[2] - x[5], s3 = x[3] + x[4], d3 = x[3] - x[4];
	const int a = s0 + s3, b = s0 - s3, c = s1 + s2, d = s1 - s2;
	const int round = 1 << (shift - 1), z = (b + d) * 4433 + round;
	const int z5 = (d3 + d1 + d2 + d0) * 9633;
	const int z1 = (d3 + d0) * -7373, z2 = (d2 + d1) * -20995;
	const int z3 = (d3 + d1) * -16069 + z5, z4 = (d2 + d0) * -3196 + z5;

	x[0] = first ? (a + c) * 4 : (a + c + 2) >> 2;
	x[4] = first ? (a - c) * 4 : (a - c + 2) >> 2;
	x[2] = (z + b * 6270) >> shift;
	x[6] = (z - d * 15137) >> shift;
	x[7] = (d3 * 2446 + z1 + z3 + round) >> shift;
	x[5] = (d2 * 16819 + z2 + z4 + round) >> shift;
	x[3] = (d1 * 25172 + z2 + z3 + round) >> shift;
	x[1] = (d0 * 12299 + z1 + z4 + round) >> shift;
}

/* Quotients are products with the steps' reciprocals, exact for these sizes. The first group begins
 * the image's result, and parts_used, which groups of `code` add to. */
JPEG_KERNEL(JPEG_IDCT_BLOCKS * 8) fdct(JPEG_ARGUMENT, const global uchar *planes,
                                       global ushort *coefficients, global uchar *masks,
                                       global uint *parts_used, global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint line = get_local_id(0) & 7, number = get_local_id(0) >> 3;
	local int tiles[JPEG_IDCT_BLOCKS * 8 * TILE_PITCH];
	local int *tile = tiles + number * 8 * TILE_PITCH;
	struct place p;
	int v[8];

	if (get_global_id(0) == 0 && get_global_id(1) == 0) {
		parts_used[image->image.first] = 0;
		results[image->image.first].flags = 0;
		results[image->image.first].size = 0;
	}
	place_of(&p, image, get_group_id(0) * JPEG_IDCT_BLOCKS + number, get_group_id(1));
	if (p.live) {
		uint x = p.x, y = p.y;
		uint2 row;

		if (p.component == 0) {
			/* A filling block's predecessor is the last real one before it in its MCU:
			 * beside it, or at the end of the row above. */
			const uint across = (image->width + 7) / 8, down = (image->height + 7) / 8;

			if (y >= down) {
				y = down - 1;
				x |= image->h - 1;
			}
			x = min(x, across - 1);
		}
		row = *(const global uint2 *)(planes + image->plane[p.component] +
		                              (ulong)(y * 8 + line) *
		                                  image->plane_pitch[p.component] +
		                              x * 8);
#pragma unroll
		for (uint i = 0; i < 8; i++)
			v[i] = (int)((i < 4 ? row.x : row.y) >> ((i & 3) * 8) & 255) - 128;
		fdct_8(v, 11, true);
#pragma unroll
		for (uint i = 0; i < 8; i++)
			tile[line * TILE_PITCH + i] = v[i];
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (p.live) {
		const bool filling =
		    p.component == 0 && (p.x >= (image->width + 7) / 8 || p.y >= (image->height + 7) / 8);
		const global uint4 *step =
		    (const global uint4 *)(image->steps + (p.component != 0) * 128 + line * 16);
		const ulong block = (ulong)image->blocks.first + p.block;
		uint words[4] = {0, 0, 0, 0}, mask = 0;

#pragma unroll
		for (uint i = 0; i < 8; i++)
			v[i] = tile[i * TILE_PITCH + line];
		fdct_8(v, 15, false);
#pragma unroll
		for (uint i = 0; i < 8; i++) {
			const uint4 pair = step[i / 2];
			const uint reciprocal = i & 1 ? pair.z : pair.x;
			const uint half_step = i & 1 ? pair.w : pair.y;
			uint quotient = mul_hi(abs(v[i]) + half_step, reciprocal);

			if (filling && (line | i))
				quotient = 0;
			mask |= (uint)(quotient != 0) << i;
			words[i / 2] |= ((v[i] < 0 ? 0 - quotient : quotient) & 0xFFFF)
			                << ((i & 1) * 16);
		}
		*(global uint4 *)(coefficients + block * 64 + line * 8) =
		    (uint4)(words[0], words[1], words[2], words[3]);
		masks[block * 8 + line] = (uchar)mask;
	}
}
