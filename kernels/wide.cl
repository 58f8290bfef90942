/* wide.cl: wide vectors of floats become pixels; stands before kernels for CPUs that make them. */

typedef PASTE(PIXEL, 16, ) pixels;

/* Stores sixteen results from `out` on; the first is sample x of its row. It writes past the cache
 * if the row is aligned for that: the lines need not be read first. lines: see stream_lines(). */
FORCE_INLINE void wide_store(float16 result, source_row in, target_row out, uint x, ulong2 lines)
{
	if (KEEP)
		result = select(result, pixel_load(in, VECTOR), band_lanes(x, BANDS, KEEP));
	if (streams(lines, out, sizeof(pixels)))
		__builtin_nontemporal_store(PIXEL_ROUND(result), (global pixels *)out);
	else
		PIXEL_VSTORE(PIXEL_ROUND(result), out);
}
