/* The sums of rows.h with vectors of LANES samples; NAMED() is the functions' names. Vectors are
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

/* Sums four rows at a time, so that a sample is loaded once for all of them. */
static inline __attribute__((always_inline)) void
NAMED(sum_four)(double *restrict to, size_t to_pitch, const double *restrict from, size_t pitch,
                const double *restrict weight, size_t taps)
{
	NAMED(lanes) sum[4][2] = {{{0}}};

	for (size_t s = 0; s < taps + 3; s++, from += pitch) {
		const NAMED(lanes) *v = (const NAMED(lanes) *)from;

#pragma GCC unroll 4
		for (size_t r = 0; r < 4; r++)
			if (r <= s && s - r < taps) {
				sum[r][0] += weight[s - r] * v[0];
				sum[r][1] += weight[s - r] * v[1];
			}
	}
	for (size_t r = 0; r < 4; r++)
		memcpy(to + r * to_pitch, sum[r], sizeof sum[r]);
}

static void NAMED(sum_down)(double *restrict to, size_t to_pitch, size_t rows, size_t count,
                            const double *restrict from, size_t pitch,
                            const double *restrict weight, size_t taps)
{
	const size_t block = 2 * LANES;
	const bool few = count < block || rows < 4;

	for (size_t k = 0; !few && k < count; k += block)
		for (size_t y = 0; y < rows; y += 4) {
			const size_t x = k + block <= count ? k : count - block;
			const size_t first = y + 4 <= rows ? y : rows - 4;

			NAMED(sum_four)
			(to + first * to_pitch + x, to_pitch, from + first * pitch + x, pitch,
			 weight, taps);
		}
	for (size_t y = 0; few && y < rows; y++)
		for (size_t k = 0; k < count; k++) {
			double sum = 0;

			for (size_t t = 0; t < taps; t++)
				sum = PRODUCT_ADDED(sum, weight[t], from[(y + t) * pitch + k]);
			to[y * to_pitch + k] = sum;
		}
}

#undef LANES
#undef NAMED
#undef PRODUCT_ADDED
