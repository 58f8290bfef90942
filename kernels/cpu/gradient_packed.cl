/* gradient_packed.cl: the magnitude of a 3x3 gradient of bytes in 16-bit lanes, for CPUs.
 *
 * gx = sum over j of SMOOTHj * (in(x + 1, y + j - 1) - in(x - 1, y + j - 1)), gy its transpose;
 * out = sqrt(gx² + gy²)
 *
 * A vector of 64 bytes is split into its even and its odd samples. Sums are exact. Components are
 * cut off at 255, so that squares and, saturated, their sum fit 16 bits. Roots are taken of floats:
 * those of every fourth sample are one vector, and a byte of each lane is its result.
 *
 * A work-item makes a block of BLOCK_Y rows: 64 columns all the way down, the differences and the
 * smoothed samples of the last two rows in registers.
 *
 * SMOOTH0 to 2 are whole numbers of a sum up to 128. At least 64 samples a row. No `offset`. */

#ifndef SMOOTH0
#define SMOOTH0 1
#define SMOOTH1 2
#define SMOOTH2 1
#endif

enum { PACKED_VECTOR = 64 };

/* Every other of 64 samples, signed and not; 64 bytes anywhere in memory. */
typedef short lanes __attribute__((ext_vector_type(32)));
typedef ushort squares __attribute__((ext_vector_type(32)));
typedef lanes bytes_anywhere __attribute__((aligned(1)));

struct pair {
	lanes even, odd;
};

/* One source row's contribution. */
struct line {
	struct pair difference, smooth;
};

FORCE_INLINE struct pair packed_load(const global uchar *p)
{
	const lanes v = *(const global bytes_anywhere *)p;
	const squares odd = __builtin_astype(v, squares) >> 8;

	return (struct pair){v & (short)0xff, __builtin_astype(odd, lanes)};
}

FORCE_INLINE lanes packed_smooth(lanes a, lanes b, lanes c)
{
	return a * (short)SMOOTH0 + b * (short)SMOOTH1 + c * (short)SMOOTH2;
}

FORCE_INLINE struct line packed_line(const global uchar *p)
{
	const struct pair left = packed_load(p - BANDS), centre = packed_load(p),
			  right = packed_load(p + BANDS);

	return (struct line){{right.even - left.even, right.odd - left.odd},
	                     {packed_smooth(left.even, centre.even, right.even),
	                      packed_smooth(left.odd, centre.odd, right.odd)}};
}

/* Squares up to 255. */
FORCE_INLINE squares packed_square(lanes v)
{
	const lanes size = v < (short)0 ? -v : v;
	const lanes cut = size < (short)255 ? size : (lanes)(short)255;

	return __builtin_astype(cut * cut, squares);
}

/* Returns squares of the magnitude, at most 255². */
FORCE_INLINE squares packed_sum(lanes gx, lanes gy)
{
	const squares a = packed_square(gx), b = packed_square(gy);
	const squares room = (ushort)65025 - a;

	return a + (b < room ? b : room);
}

/* Returns the rounded roots. */
FORCE_INLINE uint16 packed_root(uint16 v)
{
	return as_uint16(sqrt(convert_float16(as_int16(v))) + 12582912.0f) & 0xff;
}

FORCE_INLINE lanes packed_magnitude(struct pair gx, struct pair gy)
{
	const uint16 even = __builtin_astype(packed_sum(gx.even, gy.even), uint16);
	const uint16 odd = __builtin_astype(packed_sum(gx.odd, gy.odd), uint16);

	return __builtin_astype(packed_root(even & 0xffff) | packed_root(odd & 0xffff) << 8 |
	                            packed_root(even >> 16) << 16 | packed_root(odd >> 16) << 24,
	                        lanes);
}

/* Returns the bits of KEEP, as bytes, for the 64 samples from sample x. */
FORCE_INLINE lanes packed_keep(uint x)
{
	uchar bytes[PACKED_VECTOR + BANDS];

#pragma unroll
	for (int i = 0; i < PACKED_VECTOR + BANDS; i++)
		bytes[i] = KEEP >> i % BANDS & 1 ? 255 : 0;
	return *(const private bytes_anywhere *)(bytes + x % BANDS);
}

/* Makes `count` rows of the 64 columns from `in` on, sample x of their rows. */
FORCE_INLINE void packed_columns(const global uchar *in, uint in_pitch, global uchar *out,
                                 uint out_pitch, uint x, uint count)
{
	const bool stream = STREAM && ((ulong)out & (PACKED_VECTOR - 1)) == 0;
	const lanes mask = packed_keep(x);
	struct line above = packed_line(in - in_pitch), centre = packed_line(in);

	for (uint r = 0; r < count; r++) {
		const struct line below = packed_line(in + in_pitch);
		const struct pair gx = {packed_smooth(above.difference.even, centre.difference.even,
		                                      below.difference.even),
		                        packed_smooth(above.difference.odd, centre.difference.odd,
		                                      below.difference.odd)};
		const struct pair gy = {below.smooth.even - above.smooth.even,
		                        below.smooth.odd - above.smooth.odd};
		lanes result = packed_magnitude(gx, gy);

		if (KEEP)
			result = (result & ~mask) | (*(const global bytes_anywhere *)in & mask);
		if (stream)
			__builtin_nontemporal_store(result, (global lanes *)out);
		else
			*(global bytes_anywhere *)out = result;
		in += in_pitch;
		out += out_pitch;
		above = centre;
		centre = below;
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gradient_packed(REGION_ARGUMENTS, float smooth0, float smooth1, float smooth2, uint output,
                float scale, float offset, uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1) * BLOCK_Y, last = span.y - PACKED_VECTOR;
	const global uchar *in = (const global uchar *)SOURCE_ROW(y);
	global uchar *out = (global uchar *)TARGET_ROW(y);
	/* The starts of the target's vectors; the first and the last vector may overlap others. */
	const uint whole = -(ulong)(out + span.x) & (PACKED_VECTOR - 1);

	if (whole)
		packed_columns(in + span.x, src_pitch, out + span.x, dst_pitch, span.x,
		               min(rows - y, (uint)BLOCK_Y));
	for (uint x = span.x + whole; x < span.y; x += PACKED_VECTOR) {
		const uint at = min(x, last);

		packed_columns(in + at, src_pitch, out + at, dst_pitch, at,
		               min(rows - y, (uint)BLOCK_Y));
	}
}
