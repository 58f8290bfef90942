/* The processor time of verify=1: each chain's reference, computed and compared in pieces as codec
 * workers do, in seconds for an image, of each type. Fails if the time of a unit of
 * reference_cost() is not the same for all chains, within a factor of three of the mean: then the
 * front would predict, charge and refuse wrongly. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "filters/chain.h"
#include "reference/reference.h"

/* Beside every filter with its defaults. */
static const char *const chains[] = {"gaussian=size=5",
                                     "gaussian=sigma=3",
                                     "gaussian=sigma=40",
                                     "box=size=9",
                                     "box=size=101",
                                     "convolve=kernel=1 2 3;4 5 6;7 8 -9",
                                     "scharr=output=x",
                                     "prewitt=output=direction",
                                     "median=radius=2",
                                     "median=radius=7",
                                     "rank=radius=3:percentile=20:window=circle",
                                     "dilate=size=31:shape=ellipse",
                                     "close=size=9",
                                     "levels=black=0.1:gamma=2",
                                     "linear=gain=1.5",
                                     "lut=points=0 255;90 20;255 130",
                                     "colormatrix=matrix=1 1 0 0;-1 0 1 0.2;0 0.5 1 -0.5",
                                     "unsharp=sigma=3:threshold=0.1",
                                     "threshold=method=gaussian",
                                     "canny",
                                     "gaussian=size=5,sobel"};

/* Nanoseconds of a unit of all chains: logarithms. */
static double sum, least = INFINITY, most = -INFINITY;
static const char *least_chain, *most_chain;
static unsigned count;

static double seconds(void)
{
	return (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-9;
}

/* Fills pixels with waves and noise. */
static void draw(uint8_t *pixels, size_t samples, enum pixel_type type)
{
	for (size_t i = 0; i < samples; i++)
		image_put_sample(pixels, i, type,
		                 fabs(sin((double)i * 1e-4)) * pixel_type_rows[type].full_scale *
		                     (0.7 + 0.3 * ((double)random() / RAND_MAX)));
}

/* Measures pieces from the middle of the image. */
static void measure(const char *text, const struct image *image)
{
	struct chain *chain = must_have(calloc(1, sizeof *chain));
	struct window window;
	struct difference difference = {0};
	struct reference reference;
	struct problem problem;
	uint32_t x, y, rounds = 0;
	size_t pixel = image_pixel_size(image), pitch;
	uint8_t *pixels;
	double begun, took, units, ratio;

	chain_init(chain);
	if (chain_parse(chain, text, &problem) || chain_check(chain, &problem))
		die("%s: %s", text, problem.detail);
	chain->border = BORDER_REPLICATE;
	chain_halo(chain, &x, &y);
	reference_piece(chain, image, &window);
	window.x0 = (image->width - window.width) / 2;
	window.y0 = (image->height - window.height) / 2;
	pitch = (window.width + 2 * (size_t)x) * pixel;
	pixels = must_have(malloc(pitch * (window.height + 2 * (size_t)y)));
	draw(pixels, pitch * (window.height + 2 * (size_t)y) / pixel * image->bands, image->type);
	begun = seconds();
	do {
		if (reference_window(chain, image, &window, pixels + y * pitch + x * pixel, pitch,
		                     &reference))
			die("%s failed", text);
		difference_add(&difference, &reference, reference.pixels, window.width * pixel);
		reference_fini(&reference);
		took = seconds() - begun;
	} while (++rounds < 3 || took < 0.2);
	if (difference.mismatches)
		die("%s: a result differs from itself", text);
	took *= (double)image->width / window.width * image->height / window.height / rounds;
	units = reference_cost_in_pieces(chain, image);
	ratio = log(took * 1e9 / units);
	printf("%-60s %7.2f s %9.0f units %7.3f ns\n", text, took,
	       units / image->width / image->height / image->bands, exp(ratio));
	sum += ratio;
	count++;
	least_chain = ratio < least ? text : least_chain;
	most_chain = ratio > most ? text : most_chain;
	least = fmin(least, ratio);
	most = fmax(most, ratio);
	free(pixels);
	free(chain);
}

/* Tells whether a filter needs no parameters, and no look at the whole image. */
static bool is_alone(enum filter filter)
{
	static struct chain chain;
	struct problem problem;

	chain_init(&chain);
	return !chain_parse(&chain, known_filters[filter].name, &problem) &&
	       !chain_check(&chain, &problem) && !filter_gathers(&chain.call[0]);
}

int main(void)
{
	static const char *const images[] = {"4096x4096x3:u8", "4096x4096x3:u16",
	                                     "4096x4096x3:f32"};
	double mean;

	mallopt(M_TRIM_THRESHOLD, 32 << 20); /* as in the codec worker */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	for (size_t n = 0; n < sizeof images / sizeof *images; n++) {
		struct image image;

		if (!image_parse(images[n], &image))
			abort();
		printf("%s\n", images[n]);
		for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
			measure(chains[i], &image);
		for (enum filter f = 0; f < FILTERS; f++)
			if (is_alone(f))
				measure(known_filters[f].name, &image);
	}
	mean = sum / count;
	printf("%.3f ns a unit, from a factor of %.2f (%s) to %.2f (%s)\n", exp(mean),
	       exp(least - mean), least_chain, exp(most - mean), most_chain);
	return most - mean > log(3) || mean - least > log(3);
}
