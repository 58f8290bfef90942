/* matrix_wide.cl: a matrix of a size known at compile time, in vectors of 16 floats, for CPUs.
 *
 * out(x, y) = sum over j, i of m[j][i] * in(x + i - RADIUS_X, y + j - RADIUS_Y) + offset
 *
 * A work-item makes a block of BLOCK_Y rows, MATRIX_ROWS at a time. Source rows are converted once,
 * into a ring of private rows that stays in the nearest cache. From there MATRIX_VECTORS vectors of
 * each of MATRIX_ROWS rows are summed in registers: a source vector serves all these rows, a weight
 * all these vectors. Only weights inside the window are used (0 * NaN is NaN).
 *
 * Above MATRIX_TERMS terms the products of each source row are summed by themselves, so that
 * rounding errors grow with width + height and not with their product.
 *
 * weights: float, row by row. At least 64 samples a row. */

/* Sums in registers: rows times vectors. */
#ifndef MATRIX_ROWS
#define MATRIX_ROWS 6
#endif
#ifndef MATRIX_VECTORS
#define MATRIX_VECTORS 4
#endif

/* Terms that are added directly. */
#ifndef MATRIX_TERMS
#define MATRIX_TERMS 400
#endif

enum {
	MATRIX_WIDTH = 2 * RADIUS_X + 1,
	MATRIX_HEIGHT = 2 * RADIUS_Y + 1,
	MATRIX_SAMPLES = MATRIX_VECTORS * VECTOR,
	MATRIX_HALO = RADIUS_X * BANDS,
	/* A block of block_span() is less than 16 samples larger than BLOCK_X. */
	MATRIX_LINE = (BLOCK_X + 16 + 2 * MATRIX_HALO + 15) / 16 * 16,
	MATRIX_LINES = MATRIX_ROWS + 2 * RADIUS_Y,
	MATRIX_TWO_LEVELS = MATRIX_WIDTH * MATRIX_HEIGHT > MATRIX_TERMS,
	MATRIX_UNROLL = MATRIX_WIDTH <= 9 ? MATRIX_WIDTH : 4,
	/* The source rows [FULL, MATRIX_HEIGHT), if any, are in all rows' windows. */
	MATRIX_FULL = MATRIX_ROWS - 1,
	MATRIX_PARTIAL = MATRIX_HEIGHT > MATRIX_FULL ? MATRIX_HEIGHT : MATRIX_FULL,
};

/* MATRIX_VECTORS vectors of sums, and of floats and pixels anywhere in memory. */
typedef float wide __attribute__((ext_vector_type(MATRIX_SAMPLES)));
typedef float floats_anywhere __attribute__((ext_vector_type(MATRIX_SAMPLES), aligned(4)));

/* Adds source row j, p being its first tap, to the rows that have it in their windows. */
FORCE_INLINE void matrix_add(wide sum[MATRIX_ROWS], const private float *p, int j,
                             constant float *weights)
{
#pragma unroll MATRIX_UNROLL
	for (int i = 0; i < MATRIX_WIDTH; i++) {
		const wide v = *(const private floats_anywhere *)(p + i * BANDS);

#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			if (j >= r && j - r < MATRIX_HEIGHT)
				sum[r] += v * weights[(j - r) * MATRIX_WIDTH + i];
	}
}

/* Adds a row that is in all windows. */
FORCE_INLINE void matrix_add_all(wide sum[MATRIX_ROWS], const private float *p,
                                 constant float *weights)
{
#pragma unroll MATRIX_UNROLL
	for (int i = 0; i < MATRIX_WIDTH; i++) {
		const wide v = *(const private floats_anywhere *)(p + i * BANDS);

#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			sum[r] += v * weights[i - r * MATRIX_WIDTH];
	}
}

/* Sums MATRIX_SAMPLES of each row; x is the first tap of the first in the lines. */
FORCE_INLINE void matrix_sums(wide sum[MATRIX_ROWS], private float *const *line, uint x,
                              constant float *weights, float offset)
{
#pragma unroll
	for (int r = 0; r < MATRIX_ROWS; r++)
		sum[r] = offset;
#pragma unroll
	for (int j = 0; j < MATRIX_FULL; j++)
		matrix_add(sum, line[j] + x, j, weights);
#pragma unroll 1
	for (int j = MATRIX_FULL; j < MATRIX_HEIGHT; j++) {
		wide part[MATRIX_ROWS];

		if (!MATRIX_TWO_LEVELS) {
			matrix_add_all(sum, line[j] + x, weights + j * MATRIX_WIDTH);
			continue;
		}
#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			part[r] = 0;
		matrix_add_all(part, line[j] + x, weights + j * MATRIX_WIDTH);
#pragma unroll
		for (int r = 0; r < MATRIX_ROWS; r++)
			sum[r] += part[r];
	}
#pragma unroll
	for (int j = MATRIX_PARTIAL; j < MATRIX_LINES; j++)
		matrix_add(sum, line[j] + x, j, weights);
}

FORCE_INLINE void matrix_convert(private float *line, source_row p, uint columns)
{
	for (uint i = 0; i < columns; i += VECTOR) {
		const uint x = min(i, columns - VECTOR);

		vstore16(pixel_load(p + x, VECTOR), 0, line + x);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
matrix_wide(REGION_ARGUMENTS, constant float *weights, uint rx, uint ry, float offset, uint keep)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint width = span.y - span.x, columns = width + 2 * MATRIX_HALO;
	const uint start = get_global_id(1) * BLOCK_Y, end = min(start + BLOCK_Y, rows);
	float16 ring[MATRIX_LINES][MATRIX_LINE / VECTOR];
	private float *line[MATRIX_LINES];

	for (int j = 0; j < MATRIX_LINES; j++)
		line[j] = (private float *)ring[(j + 2 * RADIUS_Y) % MATRIX_LINES];
	for (uint y = start; y < end; y += MATRIX_ROWS) {
		/* The last 2 * RADIUS_Y lines of the previous rows are the first of these. */
		const int ready = y == start ? 0 : 2 * RADIUS_Y;
		const uint here = min(end - y, (uint)MATRIX_ROWS);
		private float *before[MATRIX_LINES];

		for (int j = 0; j < MATRIX_LINES; j++)
			before[j] = line[j];
		for (int j = 0; j < MATRIX_LINES; j++)
			line[j] = before[(j + MATRIX_ROWS) % MATRIX_LINES];
		for (int j = ready; j < (int)here + 2 * RADIUS_Y; j++)
			matrix_convert(line[j],
			               SOURCE_ROW((long)y + j - RADIUS_Y) + span.x - MATRIX_HALO,
			               columns);
		for (uint i = 0; i < width; i += MATRIX_SAMPLES) {
			const uint x = min(i, width - MATRIX_SAMPLES);
			wide sum[MATRIX_ROWS];
			float16 result[MATRIX_ROWS][MATRIX_VECTORS];

			matrix_sums(sum, line, x, weights, offset);
#pragma unroll
			for (int r = 0; r < MATRIX_ROWS; r++)
				*(private wide *)result[r] = sum[r];
			for (uint r = 0; r < here; r++) {
				const source_row in = SOURCE_ROW(y + r) + span.x + x;
				const target_row part = TARGET_ROW(y + r) + span.x, out = part + x;
				const ulong2 lines = stream_lines(
				    part, part + width, MATRIX_SAMPLES * sizeof(PIXEL));

#pragma unroll
				for (int k = 0; k < MATRIX_VECTORS; k++)
					wide_store(result[r][k], in + k * VECTOR,
					           out + k * VECTOR,
					           span.x + x + k * VECTOR, lines);
			}
		}
	}
}
