/* edges.cl: full scale where a plane of bits has a bit, else 0.
 *
 * The plane is that of the whole image, or, where its border has been cropped, of what is left in its
 * middle: plane_x and plane_y columns and rows are missing on each side. Beyond the image, where only
 * `wrap` needs a result, it is repeated. A row of it has `words` words; pixel x is bit x % 32 of word
 * x / 32. A work-item makes one row of a block. */

FORCE_INLINE uint edges_repeat(int i, int n)
{
	const int rest = i % n;

	return (uint)(rest < 0 ? rest + n : rest);
}

kernel void edges(REGION_ARGUMENTS, PLACE_ARGUMENTS, const global uint *plane, uint words,
                  int plane_width, int plane_height, int plane_x, int plane_y, float full, uint keep)
{
	const uint2 span =
	    block_span(samples / bands, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const PIXEL edge = (PIXEL)full, none = 0;

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	src += (ulong)get_global_id(2) * distance * src_pitch;
	dst += (ulong)get_global_id(2) * distance * dst_pitch;

	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	const global uint *bits =
	    plane + (ulong)edges_repeat(place_y0(y0s, more_y0s) + (int)y - plane_y, plane_height) *
	                words;

	for (uint x = span.x; x < span.y; x++) {
		const uint at = edges_repeat(x0 + (int)x - plane_x, plane_width);
		const PIXEL v = bits[at / 32] >> at % 32 & 1 ? edge : none;

		for (uint b = 0; b < bands; b++)
			out[x * bands + b] = keep >> b & 1 ? in[x * bands + b] : v;
	}
}
