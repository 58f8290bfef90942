/* separable_packed.cl: smoothing of bytes in 16-bit lanes, for CPUs.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry))
 *
 * for weights that are not negative and sum to 1. A vector of 64 bytes is taken apart into its even
 * and its odd samples, each in the upper byte of a lane, and stays so: (sample * 256 * weight *
 * 65536) >> 16 is the upper half of a 16-bit product, one instruction for 32 samples, and the sum is
 * in 1/256 of a level. Each product is rounded down; half of what that can lose is added before.
 *
 * A work-item makes a block of BLOCK_Y rows, PACKED_ROWS at a time: down, each source vector being
 * read once for all of these rows, into private planes of even and of odd sums; then across, from
 * there. Where neighbours are an odd number of samples apart, the tap of an even sample is in the
 * other plane.
 *
 * Error before the last rounding, in levels: for each direction of n > 1 taps n / 512 and
 * 255 * sum |weight / 65536 - exact weight|. No sum overflows for up to 127 taps.
 *
 * weights: row, then column; round(w * 65536), summing to 65536. At least 64 samples a row.
 * No `offset`. */

/* Samples and rows that a work-item makes. */
#ifndef BLOCK_X
#define BLOCK_X 2048
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 64
#endif

/* Rows that share a source vector. */
#ifndef PACKED_ROWS
#define PACKED_ROWS 4
#endif

/* Up to so many taps loops are unrolled, so that weights stay in registers. */
#ifndef PACKED_UNROLL
#define PACKED_UNROLL 9
#endif

#ifndef BANDS
#define BANDS 1
#endif
#ifndef RADIUS_X
#define RADIUS_X 1
#endif
#ifndef RADIUS_Y
#define RADIUS_Y 1
#endif
#ifndef KEEP
#define KEEP 0
#endif

enum {
	PACKED_VECTOR = 64,
	PACKED_ACROSS = 2 * RADIUS_X + 1,
	PACKED_DOWN = 2 * RADIUS_Y + 1,
	PACKED_HALO = RADIUS_X * BANDS,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	PACKED_PLANE = (BLOCK_X + 16 + 2 * PACKED_HALO) / 2 + 32,
	PACKED_UNROLL_DOWN = PACKED_DOWN <= PACKED_UNROLL ? PACKED_DOWN + PACKED_ROWS - 1 : 2,
	PACKED_UNROLL_ACROSS = PACKED_ACROSS <= PACKED_UNROLL ? PACKED_ACROSS : 4,
};

/* Every other of 64 samples, and 32 lanes anywhere in memory. */
typedef ushort lanes __attribute__((ext_vector_type(32)));
typedef uint wide_lanes __attribute__((ext_vector_type(32)));
typedef ushort lanes_anywhere __attribute__((ext_vector_type(32), aligned(1)));

/* Sums of a row: first those of even samples, then those of odd ones. */
typedef ushort planes[2 * PACKED_PLANE];

FORCE_INLINE lanes packed_multiply(lanes v, lanes weight)
{
	return __builtin_convertvector(__builtin_convertvector(v, wide_lanes) *
	                                       __builtin_convertvector(weight, wide_lanes) >>
	                                   16,
	                               lanes);
}

/* The place of samples x, x + 2, ... of a row. */
FORCE_INLINE private lanes_anywhere *packed_place(private ushort *row, uint x)
{
	return (private lanes_anywhere *)(row + (x & 1) * PACKED_PLANE + x / 2);
}

/* The sums down of the 64 columns from x on, for `count` rows. p: their first source row. */
FORCE_INLINE void packed_down(const global uchar *p, uint pitch, const private lanes *column,
                              private planes *sums, uint x, const int count)
{
	lanes even[PACKED_ROWS], odd[PACKED_ROWS];

#pragma unroll
	for (int r = 0; r < count; r++)
		even[r] = odd[r] = RADIUS_Y ? PACKED_DOWN / 2 : 0;
#pragma unroll PACKED_UNROLL_DOWN
	for (int j = 0; j < PACKED_DOWN + count - 1; j++) {
		const lanes v = *(const global lanes_anywhere *)(p + (ulong)j * pitch);
		const lanes low = v << 8, high = v & (ushort)0xff00;

#pragma unroll
		for (int r = 0; r < count; r++) {
			const lanes weight = column[j - r];

			if (PACKED_DOWN <= PACKED_UNROLL && (j < r || j - r >= PACKED_DOWN))
				continue;
			even[r] += RADIUS_Y ? packed_multiply(low, weight) : low;
			odd[r] += RADIUS_Y ? packed_multiply(high, weight) : high;
		}
	}
#pragma unroll
	for (int r = 0; r < count; r++) {
		*packed_place(sums[r], x) = even[r];
		*packed_place(sums[r], x + 1) = odd[r];
	}
}

/* The result for the 64 samples from x on, x counting from the block's first tap. */
FORCE_INLINE lanes packed_across(private ushort *sums, uint x, const private lanes *row)
{
	lanes even = (ushort)(RADIUS_X ? RADIUS_X + 128 : 128), odd = even;

	if (!RADIUS_X)
		return (*packed_place(sums, x) + even) >> 8 |
		       ((*packed_place(sums, x + 1) + odd) & (ushort)0xff00);
#pragma unroll PACKED_UNROLL_ACROSS
	for (int i = 0; i < PACKED_ACROSS; i++) {
		even += packed_multiply(*packed_place(sums, x + i * BANDS), row[i]);
		odd += packed_multiply(*packed_place(sums, x + 1 + i * BANDS), row[i]);
	}
	return even >> 8 | (odd & (ushort)0xff00);
}

/* The bits of KEEP, as bytes, for the 64 samples from sample x. */
FORCE_INLINE lanes packed_keep(uint x)
{
	uchar bytes[PACKED_VECTOR + BANDS];

#pragma unroll
	for (int i = 0; i < PACKED_VECTOR + BANDS; i++)
		bytes[i] = KEEP >> i % BANDS & 1 ? 255 : 0;
	return *(const private lanes_anywhere *)(bytes + x % BANDS);
}

/* `count` rows from row y on. */
FORCE_INLINE void packed_rows(REGION_ARGUMENTS, const private lanes *column,
                              const private lanes *row, uint y, const int count)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint width = span.y - span.x, columns = width + 2 * PACKED_HALO;
	const global uchar *top =
	    (const global uchar *)SOURCE_ROW((long)y - RADIUS_Y) + span.x - PACKED_HALO;
	planes sums[PACKED_ROWS];

	for (uint x = 0; x < columns - PACKED_VECTOR; x += PACKED_VECTOR)
		packed_down(top + x, src_pitch, column, sums, x, count);
	packed_down(top + columns - PACKED_VECTOR, src_pitch, column, sums,
	            columns - PACKED_VECTOR, count);
	for (int r = 0; r < count; r++) {
		const global uchar *in = (const global uchar *)SOURCE_ROW(y + r) + span.x;
		global uchar *out = (global uchar *)TARGET_ROW(y + r) + span.x;

		for (uint i = 0; i < width; i += PACKED_VECTOR) {
			const uint x = min(i, width - PACKED_VECTOR);
			lanes result = packed_across(sums[r], x, row);

			if (KEEP) {
				const lanes kept = *(const global lanes_anywhere *)(in + x);
				const lanes mask = packed_keep(span.x + x);

				result = (result & ~mask) | (kept & mask);
			}
			*(global lanes_anywhere *)(out + x) = result;
		}
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
separable_packed(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                 uint keep)
{
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	lanes row[PACKED_ACROSS], column[PACKED_DOWN + 2 * PACKED_ROWS - 2];
	uint y = start;

#pragma unroll
	for (int i = 0; i < PACKED_ACROSS; i++)
		row[i] = (ushort)min(weights[i], 65535u);
#pragma unroll
	for (int j = 0; j < PACKED_DOWN + 2 * PACKED_ROWS - 2; j++)
		column[j] = 0;
#pragma unroll
	for (int j = 0; j < PACKED_DOWN; j++)
		column[PACKED_ROWS - 1 + j] = (ushort)min(weights[PACKED_ACROSS + j], 65535u);
	for (; y + PACKED_ROWS <= end; y += PACKED_ROWS)
		packed_rows(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		            bands, blocks, column + PACKED_ROWS - 1, row, y, PACKED_ROWS);
	for (; y < end; y++)
		packed_rows(src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows,
		            bands, blocks, column + PACKED_ROWS - 1, row, y, 1);
}
