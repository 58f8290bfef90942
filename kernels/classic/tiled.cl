/* classic/tiled.cl: separable convolution in the three structures of "Tiled Convolution" (AMD APP
 * SDK sample, about 2013), by which it shows what each trip to global memory costs. The plain
 * kernel that it starts from is conv_naive.
 *
 * out(x, y) = sum over j of column[j] * (sum over i of row[i] * in(x + i - rx, y + j - ry))
 *             + offset
 *
 * a work-item makes    reads and writes of global memory for a sample (3x3)
 *   sep_two_pass   1 sample, twice      6 + 2
 *   sep_one_pass   1 sample             about 1 + 1, and 10 trips to local memory: a 16x16 group
 *   shares its block there, and each reads nine samples
 *   sep_tiled      4x4 samples          24 / 16 + 1: an 8x8 group makes 32x32
 *
 * The sample filters a matrix of floats; here its elements are the samples of interleaved rows,
 * whose neighbours lie BANDS (or `bands`) apart. weights: the row, then the column. Sources are
 * read inside `reach` only, coordinates outside being clamped into it. All filter every band,
 * whatever `keep` says. `rx` and `ry` count in sep_two_pass alone; sep_one_pass (radii 0 to 8) and
 * sep_tiled (across 0 to 8, down 0 to 2; the sample's are 1 and 2, both alike) are compiled for
 * BANDS, RADIUS_X and RADIUS_Y. */

/* Terms that sep_two_pass adds directly. Longer sums are made of such sums, so that rounding errors
 * do not grow with the radius. */
#ifndef TWO_PASS_TERMS
#define TWO_PASS_TERMS 32
#endif

/* The samples to either side that the radius spans. */
enum { SPAN_X = RADIUS_X * BANDS };

/* ---- sep_two_pass: one kernel, launched twice ----
 *
 * Each pass filters along the rows of its source and writes the result transposed, so that the
 * second restores the orientation. Work-item (u, v) reads around place u of row v and writes place
 * v of row u. samples, rows, bands and weights are the same in both passes.
 *
 * pass 0: u < samples, v < rows + 2 * ry: row v is source row v - ry, clamped into reach. dst is
 *   the intermediate: `samples` rows of rows + 2 * ry floats, at dst_offset, dst_pitch bytes
 *   from row to row. Its row x holds sample x of all those source rows.
 *   pass 1: u < rows, v < samples: src is the intermediate, src_offset and src_pitch what
 *   dst_offset
 *   and dst_pitch were; dst, dst_offset and dst_pitch are the target's. reach is ignored. */

/* Adds up the taps of a window whose sample i is READ(i). */
#define TWO_PASS_SUM(total, weights, taps, READ)                                                   \
	for (int first = 0; first < (taps); first += TWO_PASS_TERMS) {                             \
		const int end = min((taps), first + TWO_PASS_TERMS);                               \
		float sum = 0.0f;                                                                  \
                                                                                                   \
		for (int i = first; i < end; i++)                                                  \
			sum = fma(READ(i), (weights)[i], sum);                                     \
		total += sum;                                                                      \
	}

/* Returns sample x of the source row p, filtered along it. */
FORCE_INLINE float two_pass_across(source_row p, int x, int bands, constant float *weights, int rx,
                                   int4 reach)
{
	const int band = x % bands, left = x - rx * bands;
	const int lowest = reach.x * bands + band, highest = reach.z * bands + band;
	float total = 0.0f;

#define SOURCE_SAMPLE(i) convert_float(p[clamp(left + (i) * bands, lowest, highest)])
	TWO_PASS_SUM(total, weights, 2 * rx + 1, SOURCE_SAMPLE)
#undef SOURCE_SAMPLE
	return total;
}

/* Returns as many samples from p on. */
FORCE_INLINE float two_pass_down(const global float *p, constant float *weights, int ry)
{
	float total = 0.0f;

#define INTERMEDIATE_SAMPLE(i) p[i]
	TWO_PASS_SUM(total, weights, 2 * ry + 1, INTERMEDIATE_SAMPLE)
#undef INTERMEDIATE_SAMPLE
	return total;
}

kernel void sep_two_pass(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset,
                         uint keep, int4 reach, uint pass)
{
	const uint u = get_global_id(0), v = get_global_id(1);

	if (pass == 0) {
		if (u < samples && v < rows + 2 * ry) {
			const int y = clamp((int)v - (int)ry, reach.y, reach.w);
			global float *out =
			    (global float *)(dst + dst_offset + (ulong)u * dst_pitch);

			out[v] = two_pass_across(SOURCE_ROW(y), u, bands, weights, rx, reach);
		}
	} else if (u < rows && v < samples) {
		const global float *in =
		    (const global float *)(src + src_offset + (ulong)v * src_pitch);
		const float sum = two_pass_down(in + u, weights + 2 * rx + 1, ry);

		TARGET_ROW(u)[v] = PIXEL_ROUND_1(sum + offset);
	}
}

/* ---- sep_one_pass: a 16x16 group, a sample a work-item ----
 *
 * The group's raw block with its halo goes into local memory. Each work-item filters its window there
 * across and down, alone. */

enum {
	ONE_PASS_SIDE = 16,
	ONE_PASS_WIDTH = ONE_PASS_SIDE + 2 * SPAN_X,
	ONE_PASS_HEIGHT = ONE_PASS_SIDE + 2 * RADIUS_Y
};

#define ONE_PASS_GROUP __attribute__((reqd_work_group_size(ONE_PASS_SIDE, ONE_PASS_SIDE, 1)))

/* Returns the sample x samples right of the region's first in row y, read inside reach. x >=
 * -SPAN_X. */
FORCE_INLINE float source_sample(const global uchar *src, ulong src_offset, uint src_pitch, int x,
                                 int y, int4 reach)
{
	const int band = (uint)(x + SPAN_X) % BANDS;

	x = clamp(x, reach.x * BANDS + band, reach.z * BANDS + band);
	return convert_float(SOURCE_ROW(clamp(y, reach.y, reach.w))[x]);
}

/* Reads the group's raw block, clamped. */
FORCE_INLINE void one_pass_fetch(local float raw[ONE_PASS_HEIGHT][ONE_PASS_WIDTH],
                                 const global uchar *src, ulong src_offset, uint src_pitch,
                                 int4 reach)
{
	const int x0 = get_group_id(0) * ONE_PASS_SIDE, y0 = get_group_id(1) * ONE_PASS_SIDE;

	for (int r = get_local_id(1); r < ONE_PASS_HEIGHT; r += ONE_PASS_SIDE)
		for (int c = get_local_id(0); c < ONE_PASS_WIDTH; c += ONE_PASS_SIDE)
			raw[r][c] = source_sample(src, src_offset, src_pitch, x0 + c - SPAN_X,
			                          y0 + r - RADIUS_Y, reach);
	barrier(CLK_LOCAL_MEM_FENCE);
}

/* Filters across the window that begins at p. */
FORCE_INLINE float one_pass_across(const local float *p, constant float *weights)
{
	float sum = 0.0f;

#pragma unroll
	for (int i = 0; i <= 2 * RADIUS_X; i++)
		sum = fma(p[i * BANDS], weights[i], sum);
	return sum;
}

kernel ONE_PASS_GROUP void sep_one_pass(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry,
                                        float offset, uint keep, int4 reach)
{
	local float raw[ONE_PASS_HEIGHT][ONE_PASS_WIDTH];
	constant float *column = weights + 2 * RADIUS_X + 1;
	const int lx = get_local_id(0), ly = get_local_id(1);
	const uint x = get_global_id(0), y = get_global_id(1);
	float sum = 0.0f;

	one_pass_fetch(raw, src, src_offset, src_pitch, reach);
#pragma unroll
	for (int j = 0; j <= 2 * RADIUS_Y; j++)
		sum = fma(one_pass_across(&raw[ly + j][lx], weights), column[j], sum);
	if (x < samples && y < rows)
		TARGET_ROW(y)[x] = PIXEL_ROUND_1(sum + offset);
}

/* ---- sep_tiled: an 8x8 group, 4x4 samples a work-item, 32x32 a group ----
 *
 * A work-item filters its own four rows across, each from the raw samples of its four results'
 * windows; items side by side find each other's in the first level cache. Then it filters down. The
 * items above and below have already filtered the rows that it needs of theirs: their last and
 * first RADIUS_Y rows go through local memory. Nobody is above and below the group, so its outer
 * items filter those rows too.
 *
 * Groups fall into classes, so that only those at the perimeter pay for checks; all of a group
 * decide alike. On read: free if the tile and its halo are inside the source ROI; otherwise the
 * group first reads its whole raw block into local memory, clamped, and goes on from there as a free
 * one does. On write: free if the tile is inside the target region; otherwise a sample that falls
 * outside is replaced, value and place, by the group's first one, which is always inside, so that no
 * branch diverges: the one place where work-items write the same sample, with the same value. The
 * filtered rows use the local memory of the raw block. */
#if RADIUS_Y <= 2

enum {
	TILED_GROUP = 8,
	TILED_SIDE = 32,
	TILED_BLOCK = 4, /* a work-item's rows, and samples of a row */
	TILED_WINDOW = TILED_BLOCK + 2 * SPAN_X,
	TILED_LINES = TILED_BLOCK + 2 * RADIUS_Y,
	TILED_RAW_WIDTH = TILED_SIDE + 2 * SPAN_X,
	TILED_RAW_HEIGHT = TILED_SIDE + 2 * RADIUS_Y
};

FORCE_INLINE void tiled_load_source(float raw[TILED_WINDOW], source_row p)
{
#pragma unroll
	for (int i = 0; i < TILED_WINDOW; i++)
		raw[i] = convert_float(p[i]);
}

FORCE_INLINE void tiled_load_block(float raw[TILED_WINDOW], const local float *p)
{
#pragma unroll
	for (int i = 0; i < TILED_WINDOW; i++)
		raw[i] = p[i];
}

/* Filters across: four results. */
FORCE_INLINE float4 tiled_across(const float raw[TILED_WINDOW], constant float *weights)
{
	float4 sum = 0.0f;

#pragma unroll
	for (int i = 0; i <= 2 * RADIUS_X; i++)
		sum = fma(vload4(0, raw + i * BANDS), (float4)(weights[i]), sum);
	return sum;
}

/* Tells whether a work-item filters this line itself: its own rows, and those above and below the
 * group. */
FORCE_INLINE bool tiled_is_own(int line, int ly)
{
	return (line >= RADIUS_Y || ly == 0) &&
	       (line < RADIUS_Y + TILED_BLOCK || ly == TILED_GROUP - 1);
}

/* Tells whether the tile at (x0, y0) and its halo are inside the source ROI. */
FORCE_INLINE bool tiled_free_on_read(int x0, int y0, int4 reach)
{
	return x0 - SPAN_X >= reach.x * BANDS && y0 - RADIUS_Y >= reach.y &&
	       x0 + TILED_SIDE + SPAN_X <= (reach.z + 1) * BANDS &&
	       y0 + TILED_SIDE + RADIUS_Y <= reach.w + 1;
}

/* Reads the group's raw block, clamped. */
FORCE_INLINE void tiled_fetch(local float *memory, const global uchar *src, ulong src_offset,
                              uint src_pitch, int x0, int y0, int4 reach)
{
	for (int r = get_local_id(1); r < TILED_RAW_HEIGHT; r += TILED_GROUP)
		for (int c = get_local_id(0); c < TILED_RAW_WIDTH; c += TILED_GROUP)
			memory[r * TILED_RAW_WIDTH + c] = source_sample(
			    src, src_offset, src_pitch, x0 + c - SPAN_X, y0 + r - RADIUS_Y, reach);
}

/* Returns the place in local memory of filtered row r of a work-item's first (side 0) or last
 * RADIUS_Y rows. */
FORCE_INLINE local float *tiled_shared(local float *memory, int lx, int ly, int side, int r)
{
	return memory + ((2 * ly + side) * RADIUS_Y + r) * TILED_SIDE + lx * TILED_BLOCK;
}

/* Completes the lines of a work-item with those of its neighbours above and below. */
FORCE_INLINE void tiled_share(float4 line[TILED_LINES], local float *memory, int lx, int ly)
{
#pragma unroll
	for (int r = 0; r < RADIUS_Y; r++) {
		vstore4(line[RADIUS_Y + r], 0, tiled_shared(memory, lx, ly, 0, r));
		vstore4(line[TILED_BLOCK + r], 0, tiled_shared(memory, lx, ly, 1, r));
	}
	barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
	for (int r = 0; r < RADIUS_Y; r++) {
		if (ly > 0)
			line[r] = vload4(0, tiled_shared(memory, lx, ly - 1, 1, r));
		if (ly < TILED_GROUP - 1)
			line[RADIUS_Y + TILED_BLOCK + r] =
			    vload4(0, tiled_shared(memory, lx, ly + 1, 0, r));
	}
}

/* Stores row r of a work-item's block, sample by sample; samples outside become `first` at (x0,
 * y0). */
FORCE_INLINE void tiled_store_checked(float4 v, float first, int x, int y, int x0, int y0,
                                      global uchar *dst, ulong dst_offset, uint dst_pitch,
                                      uint samples, uint rows)
{
	float part[TILED_BLOCK];

	vstore4(v, 0, part);
#pragma unroll
	for (int c = 0; c < TILED_BLOCK; c++) {
		const bool inside = x + c < samples && y < rows;
		const int column = inside ? x + c : x0, row = inside ? y : y0;
		const float value = inside ? part[c] : first;

		TARGET_ROW(row)[column] = PIXEL_ROUND_1(value);
	}
}

kernel __attribute__((reqd_work_group_size(TILED_GROUP, TILED_GROUP, 1))) void
sep_tiled(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset, uint keep,
          int4 reach)
{
	local float memory[TILED_RAW_HEIGHT * TILED_RAW_WIDTH];
	local float first;
	constant float *column = weights + 2 * RADIUS_X + 1;
	const int lx = get_local_id(0), ly = get_local_id(1);
	const int x0 = get_group_id(0) * TILED_SIDE, y0 = get_group_id(1) * TILED_SIDE;
	const int x = x0 + lx * TILED_BLOCK, y = y0 + ly * TILED_BLOCK;
	float raw[TILED_WINDOW];
	float4 line[TILED_LINES], out[TILED_BLOCK];

	if (tiled_free_on_read(x0, y0, reach)) {
#pragma unroll
		for (int k = 0; k < TILED_LINES; k++)
			if (tiled_is_own(k, ly)) {
				tiled_load_source(raw, SOURCE_ROW(y + k - RADIUS_Y) + x - SPAN_X);
				line[k] = tiled_across(raw, weights);
			}
	} else {
		tiled_fetch(memory, src, src_offset, src_pitch, x0, y0, reach);
		barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
		for (int k = 0; k < TILED_LINES; k++)
			if (tiled_is_own(k, ly)) {
				tiled_load_block(raw, memory + (y - y0 + k) * TILED_RAW_WIDTH +
				                          x - x0);
				line[k] = tiled_across(raw, weights);
			}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	tiled_share(line, memory, lx, ly);
#pragma unroll
	for (int r = 0; r < TILED_BLOCK; r++) {
		out[r] = offset;
#pragma unroll
		for (int j = 0; j <= 2 * RADIUS_Y; j++)
			out[r] = fma(line[r + j], (float4)(column[j]), out[r]);
	}
	if (x0 + TILED_SIDE <= samples && y0 + TILED_SIDE <= rows) {
#pragma unroll
		for (int r = 0; r < TILED_BLOCK; r++)
			vstore4(PIXEL_ROUND_4(out[r]), 0, TARGET_ROW(y + r) + x);
	} else {
		if (lx == 0 && ly == 0)
			first = out[0].x;
		barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
		for (int r = 0; r < TILED_BLOCK; r++)
			tiled_store_checked(out[r], first, x, y + r, x0, y0, dst, dst_offset,
			                    dst_pitch, samples, rows);
	}
}

#endif
