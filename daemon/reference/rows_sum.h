/* The sums of rows.c with vectors of LANES samples; NAMED() is the functions' names. Vectors are
 * types here because arrays would not stay in registers, and no wider than the processor's because
 * the compiler would take those apart. */
#if defined __FMA__ || defined __FP_FAST_FMA /* as the compiler joins them in vectors */
#define PRODUCT_ADDED(sum, a, b) __builtin_fma(a, b, sum)
#else
#define PRODUCT_ADDED(sum, a, b) ((sum) + (a) * (b))
#endif
typedef double NAMED(lanes) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

static void NAMED(sum)(double *restrict to, size_t count, const double *restrict from,
                       const ptrdiff_t *restrict offset, const double *restrict weight, size_t taps)
{
	const size_t block = 4 * LANES;

	for (size_t k = 0; count >= block && k < count; k += block) {
		const size_t at = k + block <= count ? k : count - block;
		NAMED(lanes) a = {0}, b = {0}, c = {0}, d = {0}, *sum = (NAMED(lanes) *)(to + at);

		for (size_t t = 0; t < taps; t++) {
			const NAMED(lanes) *v = (const NAMED(lanes) *)(from + at + offset[t]);

			a += weight[t] * v[0];
			b += weight[t] * v[1];
			c += weight[t] * v[2];
			d += weight[t] * v[3];
		}
		sum[0] = a, sum[1] = b, sum[2] = c, sum[3] = d;
	}
	for (size_t k = 0; count < block && k < count; k++) {
		double sum = 0;

		for (size_t t = 0; t < taps; t++)
			sum = PRODUCT_ADDED(sum, weight[t], from[offset[t] + (ptrdiff_t)k]);
		to[k] = sum;
	}
}

#define VECTORS (LANES < 8 ? 1 : 2) /* side by side: there are registers for so many */

/* Adds a tap and its mirror image to four results each; up, down: the places of result 0. */
static inline __attribute__((always_inline)) void
NAMED(add_pairs)(NAMED(lanes) sum[4][VECTORS], const double *restrict up,
                 const double *restrict down, size_t pitch, const double *restrict weight,
                 const double *restrict mirrored, size_t apart, size_t pairs, bool even)
{
	NAMED(lanes) a[4][VECTORS], b[4][VECTORS];

#pragma GCC unroll 4
	for (size_t r = 0; r < 3; r++)
		for (size_t v = 0; v < VECTORS; v++) {
			a[r][v] = ((const NAMED(lanes) *)(up + r * pitch))[v];
			b[r][v] = ((const NAMED(lanes) *)(down + (r + 1) * pitch))[v];
		}
	up += 3 * pitch;
#pragma GCC unroll 4
	for (size_t i = 0; i < pairs; i++, up += pitch, down -= pitch) {
#pragma GCC unroll 2
		for (size_t v = 0; v < VECTORS; v++) {
			a[3][v] = ((const NAMED(lanes) *)up)[v];
			b[3][v] = b[2][v];
			b[2][v] = b[1][v];
			b[1][v] = b[0][v];
			b[0][v] = ((const NAMED(lanes) *)down)[v];
#pragma GCC unroll 4
			for (size_t r = 0; r < 4; r++) {
				if (even) {
					sum[r][v] += *weight * (a[r][v] + b[r][v]);
				} else {
					sum[r][v] += *weight * a[r][v];
					sum[r][v] += *mirrored * b[r][v];
				}
			}
			a[0][v] = a[1][v];
			a[1][v] = a[2][v];
			a[2][v] = a[3][v];
		}
		weight += apart;
		mirrored -= apart;
	}
}

/* Four results, `apart` steps from each other, so that a sample is loaded once for all of them:
 * first the taps at multiples of `apart`, then those that follow these, and so on. */
static inline __attribute__((always_inline)) void
NAMED(sum_four)(double *restrict to, size_t to_pitch, const double *restrict from, size_t step,
                const double *restrict weight, size_t taps, size_t apart, bool even)
{
	const size_t half = taps / 2, pitch = apart * step, last = taps - 1;
	NAMED(lanes) sum[4][VECTORS] = {{{0}}};

	for (size_t r = 0; r < 4; r++)
		for (size_t v = 0; v < VECTORS; v++)
			sum[r][v] = weight[half] *
			            ((const NAMED(lanes) *)(from + half * step + r * pitch))[v];
	for (size_t p = 0; p < apart && p < half; p++)
		NAMED(add_pairs)
	(sum, from + p * step, from + (last - p) * step, pitch, weight + p, weight + last - p,
	 apart, (half - p + apart - 1) / apart, even);
	for (size_t r = 0; r < 4; r++)
		memcpy(to + r * to_pitch, sum[r], sizeof sum[r]);
}

static void NAMED(sum_down)(double *restrict to, size_t to_pitch, size_t rows,
                            const double *restrict from, size_t pitch,
                            const double *restrict weight, size_t taps, bool even)
{
	for (size_t y = 0; y < rows; y += 4)
		for (size_t k = 0; k < ROWS_COLUMNS; k += VECTORS * LANES)
			if (even)
				NAMED(sum_four)
	(to + y * to_pitch + k, to_pitch, from + y * pitch + k, pitch, weight, taps, 1, true);
	else NAMED(sum_four)(to + y * to_pitch + k, to_pitch, from + y * pitch + k, pitch, weight,
	                     taps, 1, false);
}

static void NAMED(sum_along)(double *restrict to, size_t count, const double *restrict from,
                             size_t step, const double *restrict weight, size_t taps, bool even)
{
	const size_t group = ROWS_PIXELS / 4 * step;

	for (size_t k = 0; k < count; k += 4 * group)
		for (size_t i = k; i < k + group; i += VECTORS * LANES)
			if (even)
				NAMED(sum_four)
	(to + i, group, from + i, step, weight, taps, ROWS_PIXELS / 4, true);
	else NAMED(sum_four)(to + i, group, from + i, step, weight, taps, ROWS_PIXELS / 4, false);
}

#undef VECTORS
#undef LANES
#undef NAMED
#undef PRODUCT_ADDED
