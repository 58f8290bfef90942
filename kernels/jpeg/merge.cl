/* jpeg/merge.cl: the strings of bits of all groups (code.cl) behind each other, in words.
 *
 * merge_prefix sums their lengths; merge shifts each into place. Neighbours may share a word:
 * merge_prefix clears the first word of each string, and both OR their bits into it. The last byte
 * is filled with 1 bits (T.81 F.1.2.3). */

/* One group an image. part_offset: bits before each string. bytes: of the whole stream. */
JPEG_KERNEL(JPEG_GROUP) merge_prefix(JPEG_ARGUMENT, const global uint *part_bits,
                                     global uint *part_offset, global uint *all_words,
                                     global uint *bytes, global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint2 share = item_share(image->groups.count);
	global uint *words = all_words + image->words.first;
	local uint sums[JPEG_GROUP];
	uint bits = 0, total;
	bool fits;

	part_bits += image->groups.first;
	part_offset += image->groups.first;
	for (uint i = share.x; i < share.y; i++)
		bits = add_sat(bits, part_bits[i]);
	bits = group_prefix(bits, sums, &total);
	/* Zeros behind the end, which stuff.cl may read. A length that fits is below
	 * JPEG_WORDS_MAX; a saturated sum of bits is not. */
	fits = total / 32 + 5 <= image->words.count;
	for (uint i = share.x; i < share.y; i++) {
		part_offset[i] = bits;
		if (fits)
			words[bits / 32] = 0;
		bits += part_bits[i];
	}
	barrier(CLK_GLOBAL_MEM_FENCE);
	if (get_local_id(0) == 0) {
		if (fits) {
			const uint filled = (8 - total % 8) % 8;

			for (uint i = 0; i < 5; i++)
				words[total / 32 + i] = 0;
			if (filled)
				words[total / 32] = ((1u << filled) - 1)
				                    << (32 - total % 32 - filled);
		} else {
			results[image->image.first].flags |= JPEG_FLAG_ROOM;
		}
		bytes[image->image.first] = fits ? (total + 7) / 8 : 0;
	}
}

JPEG_KERNEL(JPEG_COLOR_GROUP) merge(JPEG_ARGUMENT, const global uint *parts,
                                    const global uint *part_bits, const global uint *part_first,
                                    const global uint *part_offset, global uint *all_words,
                                    const global uint *bytes)
{
	const global struct jpeg_image *image = IMAGE;
	const uint group = image->groups.first + get_group_id(0);

	if (get_group_id(0) < image->groups.count && bytes[image->image.first]) {
		const uint bits = part_bits[group], offset = part_offset[group];
		const uint shift = offset % 32, count = (shift + bits + 31) / 32;
		const global uint *from = parts + image->parts.first + part_first[group];
		global uint *to = all_words + image->words.first + offset / 32;

		for (uint i = get_local_id(0); i < count; i += JPEG_COLOR_GROUP) {
			const uint high = i && shift ? from[i - 1] << (32 - shift) : 0;
			const uint low = i < (bits + 31) / 32 ? from[i] >> shift : 0;
			const bool shared = (i == 0 && shift) ||
			                    (i + 1 == count && (offset + bits) % 32);

			if (shared)
				atomic_or(&to[i], high | low);
			else
				to[i] = high | low;
		}
	}
}
