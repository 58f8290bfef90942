/* The lattice against the Gaussian that it stands for: the impulse response of every phase, and
 * from it the most that any image could bring the result away from the whole Gaussian's.
 *
 * test_lattice --table prints the table of docs/benchmarks.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filters/lattice.h"
#include "unit.h"

enum { MIDDLE = 1024, SIZE = 2 * MIDDLE + 1 };

/* The weights of a pixel: response[MIDDLE + i] is the weight of the pixel i further on. */
static void find_response(const struct lattice *l, double sigma, int pixel, double response[SIZE])
{
	double spline[LATTICE_SPLINE_MAX], filter[2 * LATTICE_RADIUS_MAX + 1];
	double weight[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX];
	struct lattice_span span = lattice_span(l, pixel, 1);
	int radius = (int)l->radius, half = (int)l->half;

	memset(response, 0, SIZE * sizeof *response);
	lattice_spline(l, spline);
	lattice_filter(l, sigma, filter);
	lattice_grow(l, weight);
	assert_int_equal(span.count, l->taps);
	for (int tap = 0; tap < (int)l->taps; tap++)
		for (int k = -radius; k <= radius; k++)
			for (int t = -half; t <= half; t++) {
				int at = (span.first + tap + k) * (int)l->stride + t - pixel;

				response[MIDDLE + at] +=
				    weight[tap][span.phase] * filter[k + radius] * spline[t + half];
			}
}

/* Returns the share of the range of values by which a row may be off at most: half the sum of the
 * magnitudes, since both responses sum to 1. */
static double row_error(const double response[SIZE], double sigma)
{
	double sum = 0, whole = 0;

	for (int i = -MIDDLE; i <= MIDDLE; i++)
		whole += exp(-0.5 * i * i / (sigma * sigma));
	for (int i = -MIDDLE; i <= MIDDLE; i++)
		sum += fabs(response[MIDDLE + i] - exp(-0.5 * i * i / (sigma * sigma)) / whole);
	return sum / 2;
}

/* Returns the same for both directions together, over all phases; checks that nothing beyond the
 * reach counts. */
static double find_error(const struct lattice *l, double sigma)
{
	double response[SIZE], worst = 0;

	for (int pixel = -2; pixel < (int)l->stride - 2; pixel++) {
		double sum = 0;

		find_response(l, sigma, pixel, response);
		worst = fmax(worst, row_error(response, sigma));
		for (int i = -MIDDLE; i <= MIDDLE; i++) {
			sum += response[MIDDLE + i];
			if (i < -(int)l->reach || i > (int)l->reach)
				assert_true(response[MIDDLE + i] == 0);
		}
		assert_true(fabs(sum - 1) < 1e-12);
	}
	return 2 * worst;
}

/* Small sigmas have none. */
TEST(test_error)
{
	assert_int_equal(lattice_for(0.1).stride, 0);
	assert_int_equal(lattice_for(8).stride, 0);
	assert_int_equal(lattice_for(8.001).stride, 3);
	for (int i = 0; i <= 9199; i += 23) {
		double sigma = 8.01 + i * 0.01;
		struct lattice l = lattice_for(sigma);

		assert_true(l.stride <= LATTICE_STRIDE_MAX && l.taps <= LATTICE_TAPS_MAX);
		assert_true(l.radius <= LATTICE_RADIUS_MAX && l.taps >= 5);
		assert_true(find_error(&l, sigma) <= LATTICE_ERROR);
	}
}

/* The points of a part of a row are those of the whole row. */
TEST(test_span)
{
	struct lattice l = lattice_for(45);

	for (int first = -60; first < 60; first++)
		for (uint32_t pixels = 1; pixels < 40; pixels += 3) {
			struct lattice_span a = lattice_span(&l, first, pixels);
			struct lattice_span b = lattice_span(&l, first + (int)pixels - 1, 1);

			assert_int_equal(a.first + (int)a.count, b.first + (int)b.count);
			assert_int_equal((pixels - 1 + a.phase) % l.stride, b.phase);
			assert_int_equal(a.first + (int)((pixels - 1 + a.phase) / l.stride),
			                 b.first);
		}
}

static void print_table(void)
{
	static const double sigmas[] = {8.01, 8.5, 10, 12, 12.01, 20, 30, 40, 50, 70, 80, 100};

	for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas; i++) {
		struct lattice l = lattice_for(sigmas[i]);

		printf("| %g | %u | %u | %u | %.1e |\n", sigmas[i], l.stride, l.radius, l.reach,
		       find_error(&l, sigmas[i]));
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--table")) {
		print_table();
		return 0;
	}
	return unit_run();
}
