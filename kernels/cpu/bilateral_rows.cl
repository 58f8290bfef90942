/* bilateral_rows.cl: the bilateral filter in wide vectors of floats, for CPUs.
 *
 * out = sum of w in(x + i, y + j) / sum of w over i² + j² <= RADIUS_X², with w = exp2(space (i² +
 * j²) + range e²), or 0 below 2^-100; e² sums the squared differences of the colour bands to those
 * at (x, y). With ALPHA the last band is alpha and w for colour is w times alpha there; colour is 0
 * where these sum to 0. Tomasi and Manduchi, "Bilateral Filtering for Gray and Color Images", 1998.
 *
 * A work-item makes a block of BLOCK_Y rows. Each source row is converted and its bands are taken
 * apart once, into a ring of private rows that stays in the nearest cache.
 *
 * At least BILATERAL_PIXELS pixels a row; BLOCK_X at least 4 * BILATERAL_PIXELS * BANDS. */

/* Pixels that are made at once. */
#ifndef BILATERAL_PIXELS
#define BILATERAL_PIXELS 32
#endif

#ifndef ALPHA
#define ALPHA 0
#endif

enum {
	BILATERAL_ROWS = 2 * RADIUS_X + 1,
	BILATERAL_COLOURS = BANDS - ALPHA,
	/* A block of block_span() is less than 16 pixels larger than its share. */
	BILATERAL_LINE = (BLOCK_X / BANDS + 16 + 2 * RADIUS_X + 31) / 16 * 16,
};

/* Floats and bit patterns of BILATERAL_PIXELS pixels; floats anywhere in memory. */
typedef float wide __attribute__((ext_vector_type(BILATERAL_PIXELS)));
typedef int wide_bits __attribute__((ext_vector_type(BILATERAL_PIXELS)));
typedef float floats_anywhere __attribute__((ext_vector_type(BILATERAL_PIXELS), aligned(4)));

/* A row by bands. */
typedef float line[BANDS][BILATERAL_LINE];

/* 2^x for -126 <= x <= 0: x is parted at the nearest integer by adding 1.5 * 2^23, which leaves that
 * integer, + 127, in the last bits. Relative error 1e-4 for bytes, 3e-6 otherwise. */
FORCE_INLINE wide bilateral_exp2(wide x)
{
	const wide shifted = x + 12583039.0f;
	const wide f = x - (shifted - 12583039.0f);
	const wide scale = __builtin_astype(__builtin_astype(shifted, wide_bits) << 23, wide);
	wide p;

	if (sizeof(PIXEL) == 1)
		p = (0.0550087f * f + 0.2422106f) * f + 0.6932829f;
	else
		p = ((0.0095828f * f + 0.0559064f) * f + 0.2402410f) * f + 0.6931242f;
	return (p * f + 1.0f) * scale;
}

/* Separates the bands of `pixels` pixels from p on. */
FORCE_INLINE void bilateral_convert(line *to, source_row p, uint pixels)
{
	for (uint i = 0; i < pixels; i += VECTOR) {
		const uint x = min(i, pixels - VECTOR);

		for (int b = 0; b < BANDS; b++) {
			float16 v;

			if (BANDS == 1)
				v = pixel_load(p + x, VECTOR);
			else
#pragma unroll
				for (int k = 0; k < VECTOR; k++)
					v[k] = convert_float(p[(x + k) * BANDS + b]);
			vstore16(v, 0, (*to)[b] + x);
		}
	}
}

FORCE_INLINE wide bilateral_load(const private float *p)
{
	return *(const private floats_anywhere *)p;
}

/* Filters the BILATERAL_PIXELS pixels whose window begins at pixel x of the lines, a plane for each
 * band. */
FORCE_INLINE void bilateral_pixels(line *const *lines, uint x, const private int *reach,
                                   float space, float range, wide result[BANDS])
{
	wide centre[BANDS], sum[BANDS], total = 0.0f;

#pragma unroll
	for (int b = 0; b < BANDS; b++) {
		centre[b] = bilateral_load((*lines[RADIUS_X])[b] + x + RADIUS_X);
		sum[b] = 0.0f;
	}
#pragma unroll 1
	for (int j = 0; j < BILATERAL_ROWS; j++) {
		const int y2 = (j - RADIUS_X) * (j - RADIUS_X);

#pragma unroll 1
		for (int i = -reach[j]; i <= reach[j]; i++) {
			wide v[BANDS], e = space * (float)(i * i + y2), w;

#pragma unroll
			for (int b = 0; b < BANDS; b++)
				v[b] = bilateral_load((*lines[j])[b] + x + RADIUS_X + i);
#pragma unroll
			for (int b = 0; b < BILATERAL_COLOURS; b++)
				e += (v[b] - centre[b]) * (v[b] - centre[b]) * range;
			w = bilateral_exp2(e > -100.0f ? e : -100.0f);
			if (ALPHA) {
				const wide none = 0.0f;

				w = e > -100.0f ? w : none;
				total += w;
				w *= v[BANDS - 1];
				sum[BANDS - 1] += w;
			} else {
				total += w;
			}
#pragma unroll
			for (int b = 0; b < BILATERAL_COLOURS; b++)
				sum[b] += w * v[b];
		}
	}
#pragma unroll
	for (int b = 0; b < BILATERAL_COLOURS; b++) {
		const wide none = 0.0f;

		if (ALPHA)
			result[b] = sum[BANDS - 1] > 0.0f ? sum[b] / sum[BANDS - 1] : none;
		else
			result[b] = sum[b] / total;
	}
	if (ALPHA)
		result[BANDS - 1] = sum[BANDS - 1] / total;
}

/* Stores the pixels; the first is sample x of its row. */
FORCE_INLINE void bilateral_store(const wide result[BANDS], source_row in, target_row out, uint x)
{
	float16 mixed[BANDS * BILATERAL_PIXELS / VECTOR];

	if (BANDS == 1)
		*(private wide *)mixed = result[0];
	else
#pragma unroll
		for (int k = 0; k < BANDS * BILATERAL_PIXELS; k++)
			((private float *)mixed)[k] = result[k % BANDS][k / BANDS];
#pragma unroll
	for (int k = 0; k < BANDS * BILATERAL_PIXELS / VECTOR; k++) {
		float16 v = mixed[k];

		if (KEEP)
			v = select(v, pixel_load(in + k * VECTOR, VECTOR),
			           band_lanes(x + k * VECTOR, BANDS, KEEP));
		PIXEL_VSTORE(PIXEL_ROUND(v), out + k * VECTOR);
	}
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
bilateral_rows(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha, uint keep)
{
	const uint2 span = block_span(samples / BANDS, blocks, get_global_id(0));
	const uint width = span.y - span.x, start = span.x * BANDS;
	const uint y0 = get_global_id(1) * BLOCK_Y, end = min(y0 + BLOCK_Y, rows);
	line ring[BILATERAL_ROWS] __attribute__((aligned(64)));
	line *lines[BILATERAL_ROWS];
	int reach[BILATERAL_ROWS];

	for (int j = 0; j < BILATERAL_ROWS; j++) {
		const int y2 = (j - RADIUS_X) * (j - RADIUS_X);

		reach[j] = 0;
		while ((reach[j] + 1) * (reach[j] + 1) + y2 <= RADIUS_X * RADIUS_X)
			reach[j]++;
		lines[j] = &ring[j];
		if (j + 1 < BILATERAL_ROWS)
			bilateral_convert(lines[j],
			                  SOURCE_ROW((long)y0 + j - RADIUS_X) + start -
			                      RADIUS_X * BANDS,
			                  width + 2 * RADIUS_X);
	}
	for (uint y = y0; y < end; y++) {
		const source_row in = SOURCE_ROW(y) + start;
		const target_row out = TARGET_ROW(y) + start;
		line *const first = lines[0];

		bilateral_convert(lines[BILATERAL_ROWS - 1],
		                  SOURCE_ROW(y + RADIUS_X) + start - RADIUS_X * BANDS,
		                  width + 2 * RADIUS_X);
		for (uint i = 0; i < width; i += BILATERAL_PIXELS) {
			const uint x = min(i, width - BILATERAL_PIXELS);
			wide result[BANDS];

			bilateral_pixels(lines, x, reach, space, range, result);
			bilateral_store(result, in + x * BANDS, out + x * BANDS,
			                start + x * BANDS);
		}
		for (int j = 0; j + 1 < BILATERAL_ROWS; j++)
			lines[j] = lines[j + 1];
		lines[BILATERAL_ROWS - 1] = first;
	}
}
