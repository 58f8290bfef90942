/* jpeg/idct.cl: dequantization and inverse DCT, bit for bit libjpeg's "islow": C. Loeffler, A.
 * Ligtenberg, G. Moschytz, Practical Fast 1-D DCT Algorithms with 11 Multiplications, ICASSP 1989,
 * in integers with 13 bits behind the point, and the two passes scaled as in libjpeg.
 *
 * 8 items transform a block, a column each, then, by way of local memory, a row each. Columns
 * beyond the last that is not 0 were never written (write.cl) and are taken as 0.
 *
 * libjpeg-turbo's SIMD code has 16 bits between the passes, where it wraps or saturates. No sane
 * file gets there; one that does is flagged. */

enum { LIMIT = 1 << 14, TILE_PITCH = 9 };

/* Makes one pass over 8 numbers; unsigned, since an overflow in a flagged image must be
 * harmless. */
FORCE_INLINE void idct_8(uint *x, const int shift)
{
	const uint round = 1u << (shift - 1);
	const uint z = (x[2] + x[6]) * 4433u;
	const uint even2 = z - x[6] * 15137u, even3 = z + x[2] * 6270u;
	const uint even0 = (x[0] + x[4]) << 13, even1 = (x[0] - x[4]) << 13;
	const uint a0 = even0 + even3, a3 = even0 - even3, a1 = even1 + even2, a2 = even1 - even2;
	const uint z5 = (x[7] + x[3] + x[5] + x[1]) * 9633u;
	const uint z1 = (x[7] + x[1]) * 7373u, z2 = (x[5] + x[3]) * 20995u;
	const uint z3 = z5 - (x[7] + x[3]) * 16069u, z4 = z5 - (x[5] + x[1]) * 3196u;
	const uint b0 = x[7] * 2446u - z1 + z3, b1 = x[5] * 16819u - z2 + z4;
	const uint b2 = x[3] * 25172u - z2 + z3, b3 = x[1] * 12299u - z1 + z4;

	x[0] = (uint)((int)(a0 + b3 + round) >> shift), x[7] = (uint)((int)(a0 - b3 + round) >> shift);
	x[1] = (uint)((int)(a1 + b2 + round) >> shift), x[6] = (uint)((int)(a1 - b2 + round) >> shift);
	x[2] = (uint)((int)(a2 + b1 + round) >> shift), x[5] = (uint)((int)(a2 - b1 + round) >> shift);
	x[3] = (uint)((int)(a3 + b0 + round) >> shift), x[4] = (uint)((int)(a3 - b0 + round) >> shift);
}

/* Returns the sum of a component's differences over all MCUs before one. */
FORCE_INLINE uint dc_before(const global struct jpeg_image *image, const global uint4 *prefixes,
                            const global uint4 *totals, uint mcu, uint component)
{
	const global uint *prefix = (const global uint *)(prefixes + image->mcus.first + mcu);
	const global uint *total =
	    (const global uint *)(totals + image->groups.first + mcu / JPEG_GROUP);

	return prefix[component] + total[component];
}

FORCE_INLINE int dc_of(const global struct jpeg_image *image, const global ushort *dc,
                       const global uint4 *prefixes, const global uint4 *totals,
                       const struct place *p)
{
	const global uint *total =
	    (const global uint *)(totals + image->groups.first + p->mcu / JPEG_GROUP);
	uint sum = dc[(ulong)image->blocks.first + p->block] + total[p->component];

	if (image->restart_interval < image->mcus.count)
		sum -= dc_before(image, prefixes, totals,
		                 p->mcu / image->restart_interval * image->restart_interval,
		                 p->component);
	return (short)sum;
}

/* Multiplies two coefficients in a word by their steps. */
FORCE_INLINE void dequantize(uint *x, uint coefficients, uint steps)
{
	x[0] = (uint)((int)(short)coefficients * (int)(steps & 0xFFFF));
	x[1] = (uint)(((int)coefficients >> 16) * (int)(steps >> 16));
}

FORCE_INLINE bool beyond_limit(const uint *x)
{
	uint all = 0;

#pragma unroll
	for (uint i = 0; i < 8; i++)
		all |= x[i] + LIMIT;
	return all >= 2 * LIMIT;
}

JPEG_KERNEL(JPEG_IDCT_BLOCKS * 8) idct(JPEG_ARGUMENT, const global short *coefficients,
                                       const global ushort *dc, const global uint4 *prefixes,
                                       const global uint4 *totals, global uchar *planes,
                                       global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint line = get_local_id(0) & 7, number = get_local_id(0) >> 3;
	local uint tiles[JPEG_IDCT_BLOCKS * 8 * TILE_PITCH];
	local uint *tile = tiles + number * 8 * TILE_PITCH;
	struct place p;
	uint x[8];

	place_of(&p, image, get_group_id(0) * JPEG_IDCT_BLOCKS + number, get_group_id(1));
	if (p.live) {
		const global short *block =
		    coefficients + ((ulong)image->blocks.first + p.block) * 64;
		const global uint *steps = image->steps + p.component * 32 + line * 4;
		uint4 column = 0, by = *(const global uint4 *)steps;
		bool beyond;

		if (line <= (uint)(block[0] & 7))
			column = *(const global uint4 *)(block + line * 8);
		dequantize(x, column.x, by.x);
		dequantize(x + 2, column.y, by.y);
		dequantize(x + 4, column.z, by.z);
		dequantize(x + 6, column.w, by.w);
		if (line == 0)
			x[0] = (uint)(dc_of(image, dc, prefixes, totals, &p) *
			              (int)(by.x & 0xFFFF));
		beyond = beyond_limit(x);
		idct_8(x, 11);
		beyond |= beyond_limit(x);
#pragma unroll
		for (uint i = 0; i < 8; i++)
			tile[i * TILE_PITCH + line] = x[i];
		if (beyond)
			atomic_or(&results[image->image.first].flags, JPEG_FLAG_RANGE);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (p.live) {
		global uchar *row = planes + image->plane[p.component] +
		                    (ulong)(p.y * 8 + line) * image->plane_pitch[p.component] +
		                    p.x * 8;

#pragma unroll
		for (uint i = 0; i < 8; i++)
			x[i] = tile[line * TILE_PITCH + i];
		idct_8(x, 18);
#pragma unroll
		for (uint i = 0; i < 8; i++)
			x[i] = (uint)clamp((int)x[i] + 128, 0, 255);
		*(global uint2 *)row = (uint2)(x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24,
		                               x[4] | x[5] << 8 | x[6] << 16 | x[7] << 24);
	}
}
