/* jpeg/dc.cl: DC coefficients, which a scan has as differences (T.81 F.1.1.5.1): prefix sums over
 * MCUs, for each component alone.
 *
 * A group of 256 MCUs sums its own (`dc_local`); one group sums over the groups (`dc_prefix`);
 * idct.cl adds both, and subtracts the sum before the restart interval, where the predictor begins
 * at 0 again. Everything is modulo 2^16 in the end, so sums may wrap. */

/* prefixes: sums of the MCUs before each in its group, for Y, Cb, Cr; totals: of each group; dc: of
 * each block, within its group. */
JPEG_KERNEL(JPEG_GROUP) dc_local(JPEG_ARGUMENT, const global short *coefficients,
                                 global uint4 *prefixes, global uint4 *totals, global ushort *dc)
{
	const global struct jpeg_image *image = IMAGE;
	const uint mcu = get_global_id(0), luma = image->luma_blocks;
	const ulong block = (ulong)image->blocks.first + (ulong)mcu * image->mcu_blocks;
	const bool live = mcu < image->mcus.count;
	local uint4 sums[JPEG_GROUP];
	uint4 difference = 0, prefix, total;
	uint of_luma[4] = {0, 0, 0, 0};

	if (live) {
		for (uint i = 0; i < 4; i++)
			if (i < luma) {
				difference.x += (uint)(coefficients[(block + i) * 64] >> 4);
				of_luma[i] = difference.x;
			}
		if (image->components == 3) {
			difference.y = (uint)(coefficients[(block + luma) * 64] >> 4);
			difference.z = (uint)(coefficients[(block + luma + 1) * 64] >> 4);
		}
	}
	prefix = group_prefix4(difference, sums, &total);
	if (live) {
		prefixes[image->mcus.first + mcu] = prefix;
		for (uint i = 0; i < 4; i++)
			if (i < luma)
				dc[block + i] = (ushort)(prefix.x + of_luma[i]);
		if (image->components == 3) {
			dc[block + luma] = (ushort)(prefix.y + difference.y);
			dc[block + luma + 1] = (ushort)(prefix.z + difference.z);
		}
	}
	if (get_local_id(0) == 0 && get_group_id(0) < image->groups.count)
		totals[image->groups.first + get_group_id(0)] = total;
}

/* One group an image. Totals become sums of all groups before. */
JPEG_KERNEL(JPEG_GROUP) dc_prefix(JPEG_ARGUMENT, global uint4 *totals)
{
	const global struct jpeg_image *image = IMAGE;
	const uint2 share = item_share(image->groups.count);
	local uint4 sums[JPEG_GROUP];
	uint4 sum = 0, all;

	totals += image->groups.first;
	for (uint i = share.x; i < share.y; i++)
		sum += totals[i];
	sum = group_prefix4(sum, sums, &all);
	for (uint i = share.x; i < share.y; i++) {
		const uint4 own = totals[i];

		totals[i] = sum;
		sum += own;
	}
}
