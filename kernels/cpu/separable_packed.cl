/* separable_packed.cl: smoothing of bytes in 16-bit lanes, for CPUs.
 *
 * out(x, y) = sum over i of row[i] * (sum over j of column[j] * in(x + i - rx, y + j - ry))
 *
 * for weights that are not negative and sum to 1. A vector of 64 bytes is split into its even and
 * its odd samples, each in the upper byte of a lane, and stays so: (sample * 256 * weight * 65536)
 * >> 16 is the upper half of a 16-bit product, one instruction for 32 samples, and the sum is in
 * 1/256 of a level. Each product is rounded down; half of what that can lose is added before.
 *
 * A work-item makes a block of BLOCK_Y rows, PACKED_ROWS at a time: down, each source vector being
 * read once for all of these rows, into private planes of even and of odd sums; then across, from
 * there. If neighbours are an odd number of samples apart, the tap of an even sample is in the
 * other plane.
 *
 * Error before the last rounding, in levels: for each direction of n > 1 taps n / 512 and
 * 255 * sum |weight / 65536 - exact weight|. No sum overflows for up to 127 taps.
 *
 * weights: row, then column; round(w * 65536), summing to 65536. At least 64 samples a row.
 * No `offset`. */

/* Rows that share a source vector. */
#ifndef PACKED_ROWS
#define PACKED_ROWS 4
#endif

/* Vectors that share a weight across. */
#ifndef PACKED_VECTORS
#define PACKED_VECTORS 2
#endif

/* Loops of up to this many taps are unrolled, so that weights stay in registers. */
#ifndef PACKED_UNROLL
#define PACKED_UNROLL 9
#endif

enum {
	PACKED_VECTOR = 64,
	PACKED_ACROSS = 2 * RADIUS_X + 1,
	PACKED_DOWN = 2 * RADIUS_Y + 1,
	PACKED_HALO = RADIUS_X * BANDS,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	PACKED_PLANE = ((BLOCK_X + 16 + 2 * PACKED_HALO) / 2 + 63) / 32 * 32,
	PACKED_UNROLL_DOWN = PACKED_DOWN <= PACKED_UNROLL ? PACKED_DOWN + PACKED_ROWS - 1 : 2,
	PACKED_UNROLL_ACROSS = PACKED_ACROSS <= PACKED_UNROLL ? RADIUS_X + 1 : 2,
};

/* Every other of 64 samples, and 32 lanes anywhere in memory. */
typedef ushort lanes __attribute__((ext_vector_type(32)));
typedef ushort lanes_anywhere __attribute__((ext_vector_type(32), aligned(1)));
#define LANES(space, p) (*(space lanes_anywhere *)(p))

/* Sums of a row: those of even samples, then those of odd ones. */
typedef ushort planes[2 * PACKED_PLANE];

/* The upper halves of the products. Compilers do not see that this is one instruction once they have
 * moved the widening of one factor out of a loop. */
#ifdef __AVX512BW__
typedef short signed_lanes __attribute__((ext_vector_type(32)));
FORCE_INLINE lanes packed_multiply(lanes v, lanes weight)
{
	return __builtin_astype(__builtin_ia32_pmulhuw512(__builtin_astype(v, signed_lanes),
	                                                  __builtin_astype(weight, signed_lanes)),
	                        lanes);
}
#else
typedef uint wide_lanes __attribute__((ext_vector_type(32)));
FORCE_INLINE lanes packed_multiply(lanes v, lanes weight)
{
	return __builtin_convertvector(__builtin_convertvector(v, wide_lanes) *
	                                       __builtin_convertvector(weight, wide_lanes) >>
	                                   16,
	                               lanes);
}
#endif

/* Returns the place of samples x, x + 2, ... of a row. */
FORCE_INLINE private ushort *packed_place(private ushort *row, uint x)
{
	return row + (x & 1) * PACKED_PLANE + x / 2;
}

/* Sums down the 64 columns from x on. p: their first source row, of `count`; rows that would need
 * more become anything. Meanwhile it fetches the rows that the next sums will read first. */
FORCE_INLINE void packed_down(const global uchar *p, uint pitch, uint count,
                              const private lanes *column, private planes *sums, uint x)
{
	lanes even[PACKED_ROWS], odd[PACKED_ROWS];

#pragma unroll
	for (int r = 0; r < PACKED_ROWS; r++)
		CACHE_FETCH(p + (ulong)(PACKED_DOWN - 1 + PACKED_ROWS + r) * pitch +
		            PACKED_VECTOR - 1);
#pragma unroll
	for (int r = 0; r < PACKED_ROWS; r++)
		even[r] = odd[r] = RADIUS_Y ? PACKED_DOWN / 2 : 0;
#pragma unroll PACKED_UNROLL_DOWN
	for (int j = 0; j < PACKED_DOWN + PACKED_ROWS - 1; j++) {
		const lanes v =
		    LANES(const global, p + (ulong)min((uint)j, count - 1) * pitch);
		const lanes low = v << 8, high = v & (ushort)0xff00;

#pragma unroll
		for (int r = 0; r < PACKED_ROWS; r++) {
			const lanes weight = column[j - r];

			if (PACKED_DOWN <= PACKED_UNROLL && (j < r || j - r >= PACKED_DOWN))
				continue;
			even[r] += RADIUS_Y ? packed_multiply(low, weight) : low;
			odd[r] += RADIUS_Y ? packed_multiply(high, weight) : high;
		}
	}
#pragma unroll
	for (int r = 0; r < PACKED_ROWS; r++) {
		LANES(private, packed_place(sums[r], x)) = even[r];
		LANES(private, packed_place(sums[r], x + 1)) = odd[r];
	}
}

/* Makes the results for a multiple of 64 samples from x on, x counting from the block's first
 * tap. */
FORCE_INLINE void packed_across(private ushort *sums, uint x, const private lanes *row,
                                lanes *result, const int vectors)
{
	/* The sums of x, x + 2, ... and of x + 1, x + 3, ... */
	const private ushort *same = packed_place(sums, x);
	const private ushort *other = packed_place(sums, x + 1);
	lanes even[PACKED_VECTORS], odd[PACKED_VECTORS];

#pragma unroll
	for (int v = 0; v < vectors; v++)
		even[v] = odd[v] = RADIUS_X ? RADIUS_X + 128 : 128;
#pragma unroll PACKED_UNROLL_ACROSS
	for (int i = 0; i < RADIUS_X; i++) {
		const int m = i * BANDS, n = m + BANDS / 2;

#pragma unroll
		for (int v = 0; v < vectors; v++) {
			const private ushort *p = same + v * 32, *q = other + v * 32;
			const private ushort *next_even = (BANDS & 1 ? q : p) + n;
			const private ushort *next_odd = BANDS & 1 ? p + n + 1 : q + n;

			even[v] += packed_multiply(LANES(const private, p + m), row[2 * i]);
			odd[v] += packed_multiply(LANES(const private, q + m), row[2 * i]);
			even[v] +=
			    packed_multiply(LANES(const private, next_even), row[2 * i + 1]);
			odd[v] +=
			    packed_multiply(LANES(const private, next_odd), row[2 * i + 1]);
		}
	}
#pragma unroll
	for (int v = 0; v < vectors; v++) {
		const lanes p = LANES(const private, same + v * 32 + PACKED_HALO);
		const lanes q = LANES(const private, other + v * 32 + PACKED_HALO);

		even[v] += RADIUS_X ? packed_multiply(p, row[2 * RADIUS_X]) : p;
		odd[v] += RADIUS_X ? packed_multiply(q, row[2 * RADIUS_X]) : q;
		result[v] = even[v] >> 8 | (odd[v] & (ushort)0xff00);
	}
}

/* Returns the bits of KEEP, as bytes, for the 64 samples from sample x. */
FORCE_INLINE lanes packed_keep(uint x)
{
	uchar bytes[PACKED_VECTOR + BANDS];

#pragma unroll
	for (int i = 0; i < PACKED_VECTOR + BANDS; i++)
		bytes[i] = KEEP >> i % BANDS & 1 ? 255 : 0;
	return LANES(const private, bytes + x % BANDS);
}

/* Stores some vectors, from x on, of a row's part that begins at sample `start`. lines: see
 * stream_lines(). */
FORCE_INLINE void packed_store(const global uchar *in, global uchar *out, uint start, uint x,
                               private ushort *sums, const private lanes *row, const int vectors,
                               ulong2 lines)
{
	lanes result[PACKED_VECTORS];

	packed_across(sums, x, row, result, vectors);
#pragma unroll
	for (int v = 0; v < vectors; v++) {
		const uint at = x + v * PACKED_VECTOR;

		if (KEEP) {
			const lanes mask = packed_keep(start + at);

			result[v] = (result[v] & ~mask) | (LANES(const global, in + at) & mask);
		}
		if (streams(lines, out + at, PACKED_VECTOR))
			__builtin_nontemporal_store(result[v], (global lanes *)(out + at));
		else
			LANES(global, out + at) = result[v];
	}
}

FORCE_INLINE void packed_store_row(const global uchar *in, global uchar *out, uint start,
                                   uint width, private ushort *sums, const private lanes *row)
{
	const uint chunk = PACKED_VECTORS * PACKED_VECTOR;
	const uint first = -(ulong)out & (PACKED_VECTOR - 1);
	const ulong2 lines = stream_lines(out, out + width, PACKED_VECTOR);
	uint x = first;

	if (first)
		packed_store(in, out, start, 0, sums, row, 1, lines);
	for (; x + chunk <= width; x += chunk)
		packed_store(in, out, start, x, sums, row, PACKED_VECTORS, lines);
	for (; x + PACKED_VECTOR <= width; x += PACKED_VECTOR)
		packed_store(in, out, start, x, sums, row, 1, lines);
	if (x < width)
		packed_store(in, out, start, width - PACKED_VECTOR, sums, row, 1, lines);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
separable_packed(REGION_ARGUMENTS, constant uint *weights, uint rx, uint ry, float offset,
                 uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint width = span.y - span.x, columns = width + 2 * PACKED_HALO;
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	lanes row[PACKED_ACROSS], column[PACKED_DOWN + 2 * PACKED_ROWS - 2];
	planes sums[PACKED_ROWS] __attribute__((aligned(64)));

#pragma unroll
	for (int i = 0; i < PACKED_ACROSS; i++)
		row[i] = (ushort)min(weights[i], 65535u);
#pragma unroll
	for (int j = 0; j < PACKED_DOWN + 2 * PACKED_ROWS - 2; j++)
		column[j] = 0;
#pragma unroll
	for (int j = 0; j < PACKED_DOWN; j++)
		column[PACKED_ROWS - 1 + j] = (ushort)min(weights[PACKED_ACROSS + j], 65535u);
	for (uint y = start; y < end; y += PACKED_ROWS) {
		const uint here = min(end - y, (uint)PACKED_ROWS);
		const global uchar *top =
		    (const global uchar *)SOURCE_ROW((long)y - RADIUS_Y) + span.x - PACKED_HALO;

		for (uint i = 0; i < columns; i += PACKED_VECTOR) {
			const uint x = min(i, columns - PACKED_VECTOR);

			packed_down(top + x, src_pitch, here + PACKED_DOWN - 1,
			            column + PACKED_ROWS - 1, sums, x);
		}
		for (uint r = 0; r < here; r++)
			packed_store_row((const global uchar *)SOURCE_ROW(y + r) + span.x,
			                 (global uchar *)TARGET_ROW(y + r) + span.x, span.x, width,
			                 sums[r], row);
	}
}
