/* jpeg/stuff.cl: a 0 behind each byte FF of the encoded stream (T.81 F.1.2.3), which makes it the
 * entropy-coded bytes of a file. The counterpart of destuff.cl: count, prefix, move; a group takes
 * JPEG_CHUNK bytes, an item 16; only the device knows the number of chunks, so groups take them in
 * turn. Words are big-endian. */

/* 16 bytes of the stream from byte `at`, and how many of them there are. */
FORCE_INLINE uint piece_load(const global struct jpeg_image *image, const global uint *all_words,
                             uint at, uint size, uint *words)
{
	if (at >= size)
		return 0;
	words_of(words, *(const global uint4 *)(all_words + image->words.first + at / 4));
#pragma unroll
	for (uint i = 0; i < 4; i++)
		words[i] = as_uint(as_uchar4(words[i]).wzyx);
	return min(size - at, 16u);
}

FORCE_INLINE uint count_ff(const uint *words, uint count)
{
	uint n = 0;

#pragma unroll
	for (uint i = 0; i < 16; i++)
		n += i < count && byte_of(words, i) == 255;
	return n;
}

JPEG_KERNEL(JPEG_GROUP) stuff_count(JPEG_ARGUMENT, const global uint *all_words,
                                    const global uint *bytes, global uint *counts)
{
	const global struct jpeg_image *image = IMAGE;
	const uint size = bytes[image->image.first], item = get_local_id(0);
	local uint sum;

	for (uint piece = get_group_id(0); piece * JPEG_CHUNK < size; piece += get_num_groups(0)) {
		uint words[4], count;

		if (item == 0)
			sum = 0;
		barrier(CLK_LOCAL_MEM_FENCE);
		count = piece_load(image, all_words, piece * JPEG_CHUNK + item * 16, size, words);
		if (count)
			atomic_add(&sum, count_ff(words, count));
		barrier(CLK_LOCAL_MEM_FENCE);
		if (item == 0)
			counts[image->pieces.first + piece] = sum;
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}

/* One group an image. starts: the byte at which each piece begins in the output. */
JPEG_KERNEL(JPEG_GROUP) stuff_prefix(JPEG_ARGUMENT, const global uint *counts,
                                     const global uint *bytes, global uint *starts,
                                     global uchar *out, global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint size = bytes[image->image.first];
	const uint2 share = item_share((size + JPEG_CHUNK - 1) / JPEG_CHUNK);
	global uint *words = (global uint *)(out + image->out.first);
	local uint sums[JPEG_GROUP];
	uint sum = 0, total;
	bool fits;

	counts += image->pieces.first;
	starts += image->pieces.first;
	for (uint i = share.x; i < share.y; i++)
		sum += counts[i];
	sum = group_prefix(sum, sums, &total);
	fits = (size + total) / 4 * 4 + 4 <= image->out.count;
	for (uint i = share.x; i < share.y; i++) {
		starts[i] = i * JPEG_CHUNK + sum;
		if (fits)
			words[starts[i] / 4] = 0;
		sum += counts[i];
	}
	if (get_local_id(0) == 0) {
		if (fits)
			words[(size + total) / 4] = 0;
		else
			results[image->image.first].flags |= JPEG_FLAG_ROOM;
		results[image->image.first].size = fits ? size + total : 0;
	}
}

JPEG_KERNEL(JPEG_GROUP) stuff_move(JPEG_ARGUMENT, const global uint *all_words,
                                   const global uint *bytes, const global uint *starts,
                                   global uchar *out, const global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint size = results[image->image.first].size ? bytes[image->image.first] : 0;
	const uint item = get_local_id(0);
	local uint sums[JPEG_GROUP], staged[2 * JPEG_CHUNK / 4 + 1];
	local uchar *staged_bytes = (local uchar *)staged;

	for (uint piece = get_group_id(0); piece * JPEG_CHUNK < size; piece += get_num_groups(0)) {
		const uint start = starts[image->pieces.first + piece];
		global uint *to = (global uint *)(out + image->out.first) + start / 4;
		uint words[4] = {0, 0, 0, 0}, total, at, end;
		const uint count = piece_load(image, all_words, piece * JPEG_CHUNK + item * 16,
		                              size, words);

		at = group_prefix(count + count_ff(words, count), sums, &total) + start % 4;
		end = start % 4 + total;
		/* Zeros fill the words that only partly belong to this piece. No item has these
		 * bytes, so no barrier is needed before them: behind one, PoCL 6.0 (Debian 13)
		 * would let the group's last item decide for all whether there are any. */
		if (item < start % 4)
			staged_bytes[item] = 0;
		if (item < (0 - end) % 4)
			staged_bytes[end + item] = 0;
#pragma unroll
		for (uint i = 0; i < 16; i++)
			if (i < count) {
				const uint byte = byte_of(words, i);

				staged_bytes[at++] = (uchar)byte;
				if (byte == 255)
					staged_bytes[at++] = 0;
			}
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint i = item; i * 4 < end; i += JPEG_GROUP) {
			if ((i == 0 && start % 4) || i * 4 + 4 > end)
				atomic_or(&to[i], staged[i]);
			else
				to[i] = staged[i];
		}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}
