/* edges.cl: full scale where a plane of bits has a bit, else 0.
 *
 * The plane covers the whole image or, if its border has been cropped, the rest in its middle:
 * plane_x and plane_y columns and rows are missing on each side. Beyond the image, where only
 * `wrap` needs a result, it is repeated. A row of it has `words` words; pixel x is bit x % 32 of
 * word x / 32. A work-item makes one row of a block, 16 pixels at a time. */

FORCE_INLINE uint edges_repeat(int i, int n)
{
	const int rest = i % n;

	return (uint)(rest < 0 ? rest + n : rest);
}

/* Returns the bits of 16 pixels from pixel x of the plane on; the first `width` of them count. */
FORCE_INLINE uint edges_bits(const global uint *row, int x, uint width, int plane_width)
{
	uint bits = 0;

	if (x >= 0 && x + (int)width <= plane_width) {
		const uint word = (uint)x / 32, shift = (uint)x % 32;
		const uint next = shift + width > 32 ? row[word + 1] : 0;

		return (uint)(((ulong)next << 32 | row[word]) >> shift);
	}
	for (uint i = 0; i < width; i++) {
		const uint at = edges_repeat(x + (int)i, plane_width);

		bits |= (row[at / 32] >> at % 32 & 1) << i;
	}
	return bits;
}

kernel void edges(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global uint *plane, uint words,
                  int plane_width, int plane_height, int plane_x, int plane_y, float full, uint keep)
{
	const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const uint pixels = samples / bands, width = min(pixels, (uint)VECTOR);
	const uint2 span = block_span(pixels, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const PIXEL edge = (PIXEL)full;

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	src += (ulong)stack_tile() * distance * src_pitch;
	dst += (ulong)stack_tile() * distance * dst_pitch;

	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	const global uint *row =
	    plane + (ulong)edges_repeat(place_y0(y0s, more_y0s) + (int)y - plane_y, plane_height) *
	                words;

	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		const uint bits = edges_bits(row, x0 + (int)at - plane_x, width, plane_width);

		const float16 v = select((float16)(0.0f), (float16)(full),
		                         -((int16)((int)bits) >> lane & 1));

		if (bands == 1) {
			pixel_store(v, out + at, width);
			continue;
		}
		if (!keep && width == VECTOR) {
			pixel_spread(PIXEL_ROUND(v), out + at * bands, bands);
			continue;
		}
		for (uint b = 0; b < bands; b++)
			for (uint i = at; i < at + width; i++)
				out[i * bands + b] = keep >> b & 1          ? in[i * bands + b]
				                     : bits >> (i - at) & 1 ? edge
				                                            : (PIXEL)0;
	}
}
