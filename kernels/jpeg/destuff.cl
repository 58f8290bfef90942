/* jpeg/destuff.cl: from the entropy-coded bytes of a file to a stream of bits.
 *
 * In a file a byte FF of the stream is followed by a stuffed 0 (T.81 F.1.2.3), and a marker RSTn
 * stands between restart intervals (B.1.1.3). Both are left out; the stream is of big-endian words,
 * and an array tells the byte at which each interval begins. Any other marker is flagged.
 *
 * An item looks at 16 bytes, a group at a chunk. `destuff_count` counts kept bytes and markers of
 * each chunk, `destuff_prefix` sums these over chunks and begins the image's result, `destuff_move`
 * moves the bytes, by way of local memory, where they are put together to words. Two chunks may share a word: that is cleared
 * by destuff_prefix, and both OR their bytes into it. */

struct window {
	uint words[4];       /* 16 bytes; behind the scan's end lies D9, as of a marker EOI */
	uint before, after;  /* the bytes before and after */
	uint count;          /* bytes inside the scan */
};

FORCE_INLINE void window_load(struct window *w, const global struct jpeg_image *image,
                              const global uchar *scans, uint at)
{
	const global uchar *scan = scans + image->scan.first;
	const uint size = image->scan.count;

	w->count = at < size ? min(size - at, 16u) : 0;
	w->before = at && w->count ? scan[at - 1] : 0;
	w->after = w->count == 16 && at + 16 < size ? scan[at + 16] : 0xD9;
	if (w->count == 16) {
		words_of(w->words, *(const global uint4 *)(scan + at));
	} else {
		for (uint i = 0; i < 4; i++)
			w->words[i] = 0xD9D9D9D9;
		for (uint i = 0; i < w->count; i++)
			w->words[i >> 2] ^= (0xD9u ^ scan[at + i]) << ((i & 3) * 8);
	}
}

/* Kinds of the bytes of a window, a bit each. */
struct kinds {
	uint kept, restart; /* to the stream; the first of a marker RSTn */
	bool odd;           /* there is another marker */
};

FORCE_INLINE uint window_next(const struct window *w, uint i)
{
	return i < 15 ? byte_of(w->words, i + 1) : w->after;
}

FORCE_INLINE void window_kinds(struct kinds *k, const struct window *w)
{
	uint before = w->before;

	k->kept = k->restart = 0;
	k->odd = false;
#pragma unroll
	for (uint i = 0; i < 16; i++) {
		const uint byte = byte_of(w->words, i), next = window_next(w, i);
		const bool inside = i < w->count, marker = byte == 0xFF && next != 0;
		const bool restart = marker && (next & 0xF8) == 0xD0;

		k->kept |= (uint)(inside && before != 0xFF && !marker) << i;
		k->restart |= (uint)(inside && before != 0xFF && restart) << i;
		k->odd |= inside && marker && !restart;
		before = byte;
	}
}

/* Counts kept bytes and, in the upper half, markers. */
FORCE_INLINE uint kinds_count(const struct kinds *k)
{
	return popcount(k->kept) | popcount(k->restart) << 16;
}

JPEG_KERNEL(JPEG_GROUP) destuff_count(JPEG_ARGUMENT, const global uchar *scans, global uint *counts)
{
	const global struct jpeg_image *image = IMAGE;
	const uint chunk = get_group_id(0);
	local uint count;

	if (get_local_id(0) == 0)
		count = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	if (chunk < image->chunks.count) {
		struct window w;
		struct kinds k;

		window_load(&w, image, scans, chunk * JPEG_CHUNK + get_local_id(0) * 16);
		window_kinds(&k, &w);
		atomic_add(&count, kinds_count(&k));
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (get_local_id(0) == 0 && chunk < image->chunks.count)
		counts[image->chunks.first + chunk] = count;
}

/* One group an image. kept: kept bytes before each chunk, restarts: markers before it. */
JPEG_KERNEL(JPEG_GROUP) destuff_prefix(JPEG_ARGUMENT, const global uint *counts, global uint *kept,
                                       global uint *restarts, global uint *streams,
                                       global uint *interval_starts,
                                       global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint2 share = item_share(image->chunks.count);
	global uint *stream = streams + image->stream.first;
	global uint *starts = interval_starts + image->intervals.first;
	local uint sums[JPEG_GROUP];
	uint bytes = 0, markers = 0, all_bytes, all_markers;

	counts += image->chunks.first;
	for (uint i = share.x; i < share.y; i++) {
		bytes += counts[i] & 0xFFFF;
		markers += counts[i] >> 16;
	}
	bytes = group_prefix(bytes, sums, &all_bytes);
	markers = group_prefix(markers, sums, &all_markers);
	for (uint i = share.x; i < share.y; i++) {
		kept[image->chunks.first + i] = bytes;
		restarts[image->chunks.first + i] = markers;
		stream[bytes / 4] = 0;
		bytes += counts[i] & 0xFFFF;
		markers += counts[i] >> 16;
	}
	/* Zeros behind the end, which later stages may read. A chunk may begin in the first. */
	if (get_local_id(0) < JPEG_STREAM_PADDING)
		stream[all_bytes / 4 + get_local_id(0)] = 0;
	if (get_local_id(0) == 0) {
		starts[0] = 0;
		starts[image->intervals.count] = all_bytes;
		results[image->image.first].flags =
		    all_markers == image->intervals.count - 1 ? 0 : JPEG_FLAG_MARKER;
		results[image->image.first].size = 0;
	}
}

JPEG_KERNEL(JPEG_GROUP) destuff_move(JPEG_ARGUMENT, const global uchar *scans,
                                     const global uint *kept, const global uint *restarts,
                                     global uint *streams, global uint *interval_starts,
                                     global struct jpeg_result *results)
{
	const global struct jpeg_image *image = IMAGE;
	const uint chunk = get_group_id(0), item = get_local_id(0);
	const bool live = chunk < image->chunks.count;
	const uint base = live ? kept[image->chunks.first + chunk] : 0;
	global uint *starts = interval_starts + image->intervals.first;
	global uint *stream = streams + image->stream.first;
	local uint sums[JPEG_GROUP], staged[JPEG_CHUNK / 4 + 1];
	local uchar *bytes = (local uchar *)staged;
	uint before, total, at, interval, end;
	struct window w;
	struct kinds k;

	window_load(&w, image, scans, chunk * JPEG_CHUNK + item * 16);
	window_kinds(&k, &w);
	for (uint i = item; i < JPEG_CHUNK / 4 + 1; i += JPEG_GROUP)
		staged[i] = 0;
	before = group_prefix(kinds_count(&k), sums, &total);
	at = base % 4 + (before & 0xFFFF);
	interval = (live ? restarts[image->chunks.first + chunk] : 0) + (before >> 16);
	if (k.odd)
		atomic_or(&results[image->image.first].flags, JPEG_FLAG_MARKER);
#pragma unroll
	for (uint i = 0; i < 16; i++) {
		if (k.kept >> i & 1)
			bytes[at++] = (uchar)byte_of(w.words, i);
		if (k.restart >> i & 1) {
			/* They are numbered modulo 8. */
			if ((window_next(&w, i) & 7) != interval % 8)
				atomic_or(&results[image->image.first].flags, JPEG_FLAG_MARKER);
			if (++interval < image->intervals.count)
				starts[interval] = base / 4 * 4 + at;
		}
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	end = base % 4 + (total & 0xFFFF);
	for (uint i = item; i * 4 < end; i += JPEG_GROUP) {
		const uint word = as_uint(as_uchar4(staged[i]).wzyx);
		global uint *to = stream + base / 4 + i;

		if ((i == 0 && base % 4) || i * 4 + 4 > end)
			atomic_or(to, word);
		else
			*to = word;
	}
}
