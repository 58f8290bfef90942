#include "sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#include "pairwise.h"

enum { FILTER, TYPE, KIND, CIRCUMSTANCE, FACTORS = CIRCUMSTANCE + CIRCUMSTANCES };

static char matrix63[1 << 16], matrix_huge[4096], matrix_gain[8192];

/* By operation. The first three are for kernels that take long to be compiled. */
static const struct group separables[] = {
    {"radius 1", "gaussian=size=3"},
    {"radius 2", "gaussian=sigma=1.1:size=5"},
    {"radius 6", "gaussian=sigma=2"},
    {"radius 15", "gaussian=sigma=5"},
    {"3 x 3, a mean given as a matrix", "convolve=kernel=1 2 1;2 4 2;1 2 1"},
    {"3 x 5, signed", "convolve=kernel=1 -2 3;2 -4 6;3 -6 9;2 -4 6;1 -2 3:offset=20"},
    {"radius 25", "box=size=51"},
    {"3 x 3, equal weights", "box=size=3"},
    {"radius 130", "box=size=261"},
    {"radius 0", "gaussian=size=1"},
    {"7 x 3", "convolve=kernel=1 2 3 4 3 2 1;2 4 6 8 6 4 2;1 2 3 4 3 2 1"},
    {"of sum 0", "convolve=kernel=-1 0 1;-2 0 2;-1 0 1:offset=100.5"},
};
static const struct group matrices[] = {
    {"matrix 3 x 3", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
    {"matrix 3 x 3, signed", "laplacian"},
    {"matrix 5 x 5", "convolve=kernel=1 2 3 4 5;2 9 4 7 6;3 1 8 0 7;4 4 2 7 1;5 6 7 8 0"},
    {"matrix 7 x 3", "convolve=kernel=1 2 3 4 5 6 7;3 1 4 1 5 9 2;2 7 1 8 2 8 1:offset=3"},
    {"matrix 9 x 11",
     "convolve=kernel=1 2 3 4 5 6 7 8 9;9 8 7 1 5 4 3 2 1;1 2 3 4 5 6 7 8 9;3 2 1 4 6 5 9 8 7;"
     "1 1 2 3 5 8 1 3 2;2 7 1 8 2 8 1 8 2;3 1 4 1 5 9 2 6 5;1 4 1 4 2 1 3 5 6;"
     "0 0 1 0 2 0 3 0 4;5 0 4 0 3 0 2 0 1;1 2 3 4 5 6 7 8 9"},
    {"matrix 1 x 1", "convolve=kernel=3:scale=2:offset=-20.25"},
    {"matrix 5 x 1", "convolve=kernel=1 2 3 4 7"},
    {"matrix 1 x 5", "convolve=kernel=1;2;3;4;7"},
};
static const struct group gradients[] = {
    {"sobel", "sobel"},
    {"sobel x", "sobel=output=x"},
    {"scharr y", "scharr=output=y"},
    {"prewitt", "prewitt"},
    {"scharr", "scharr"},
    {"sobel direction", "sobel=output=direction"},
};
static const struct group bilaterals[] = {
    {"bilateral, radius 1", "bilateral=radius=1:sigma_range=0.2"},
    {"bilateral, radius 4", "bilateral=radius=4:sigma_space=3:sigma_range=0.1"},
    {"bilateral, radius 7", "bilateral=radius=7:sigma_space=4:sigma_range=0.3"},
};
static const struct group dogs[] = {
    {"dog", "dog"},
    {"dog, the wider first", "dog=sigma1=5:sigma2=0.1"},
    {"dog, radius 96", "dog=sigma1=20:sigma2=32"},
};
static const struct group extremes[] = {
    {"erode", "erode"},
    {"dilate, 9 x 9", "dilate=size=9"},
    {"dilate, 101", "dilate=size=101"},
    {"dilate, ellipse", "dilate=size=7:shape=ellipse"},
    {"erode, 31 x 31", "erode=size=31"},
    {"erode, cross", "erode=size=17:shape=cross"},
    {"erode, ellipse of 61", "erode=size=61:shape=ellipse"},
    {"erode, 1 x 1", "erode=size=1"},
};
static const struct group pixelates[] = {
    {"pixelate", "pixelate"},
    {"pixelate, blocks of 5", "pixelate=size=5"},
    {"pixelate, blocks of 2", "pixelate=size=2"},
    {"pixelate, blocks of 1", "pixelate=size=1"},
    {"pixelate, blocks of 100", "pixelate=size=100"},
    {"pixelate, blocks of 256", "pixelate=size=256"},
};
static const struct group ranks[] = {
    {"median, 3 x 3", "median"},
    {"median, 5 x 5", "median=radius=2"},
    {"rank, circle of 31", "rank=radius=15:window=circle:percentile=30"},
    {"rank, circle of 7", "rank=radius=3:window=circle:percentile=100"},
    {"median, radius 15", "median=radius=15"},
    {"median, circle of 5", "median=radius=2:window=circle"},
    {"median, radius 8", "median=radius=8"},
    {"rank, the smallest of radius 15", "rank=radius=15:percentile=0"},
};
static const struct group thresholds[] = {
    {"threshold", "threshold"},
    {"threshold, a third", "threshold=value=0.333"},
    {"threshold, one a colour", "threshold=method=otsu"},
};
static const struct group local_thresholds[] = {
    {"local threshold, 3 x 3", "threshold=method=mean:size=3"},
    {"local threshold, 11 x 11", "threshold=method=mean:size=11:offset=0.03"},
    {"local threshold, gaussian", "threshold=method=gaussian:size=5:offset=-0.05"},
    {"local threshold, 51 x 51", "threshold=method=mean:size=51:offset=-1"},
    {"local threshold, gaussian of 63", "threshold=method=gaussian:size=63"},
    {"local threshold, 255 x 255", "threshold=method=mean:size=255"},
    {"local threshold, 301 x 301", "threshold=method=mean:size=301:offset=0.2"},
    {"local threshold in a chain", "median,threshold=method=mean:size=9,erode"},
    {"local threshold, regions", "threshold=method=mean:size=7&regions=10,5,50,30"},
};
static const struct group unsharps[] = {
    {"unsharp", "unsharp"},
    {"unsharp, above a threshold", "unsharp=sigma=0.7:threshold=0.1"},
    {"unsharp, radius 15", "unsharp=sigma=5:amount=2.5"},
};
static const struct group cannies[] = {
    {"canny", "canny=sigma=0"},
    {"canny, of all", "canny=sigma=0:low=0:high=0"},
    {"canny, of much", "canny=sigma=0:low=0.1:high=2.3"},
};
static const struct group planes[] = {
    {"edges", "canny=sigma=0"},
    {"edges of a blur", "canny"},
};
static const struct group curves[] = {
    {"gamma", "gamma"},
    {"levels", "levels=black=0.1:white=0.8:gamma=0.7"},
    {"invert", "invert"},
    {"root", "gamma=gamma=2"},
    {"gamma, darker", "gamma=gamma=0.1"},
    {"levels, steep", "levels=black=0.5:white=0.51"},
    {"linear, steep", "linear=gain=100:bias=-45"},
    {"linear, numbers for each colour", "linear=gain=1.5 -2 0.25:bias=0 1 -0.1"},
};
static const struct group luts[] = {
    {"lut", "lut=table=0 64 128 255"},
    {"lut of 2 tables", "lut=table=0 1 0.5;1 0 1:max=1"},
    {"lut of 3 tables", "lut=table=0 0.5 1 0 0.25;1 0 0 0 0;0 1 0 1 0.5:max=1"},
    {"lut, points", "lut=points=10 0;64 40;65 200;255 255"},
};
static const struct group mixes[] = {
    {"grayscale", "grayscale"},
    {"colormatrix", "colormatrix=matrix=1 2 3 0;-1 0 2 0.5;0 0.5 0.5 0"},
    {"colormatrix with alpha",
     "colormatrix=matrix=1 0.2 -0.3 0.1 0;0.4 0.5 0.3 0.5 -0.2;-1 0.7 1 0.2 -0.1;0.3 0.3 0.2 0.5 "
     "0.1"},
    {"grayscale, mean", "grayscale=weights=mean"},
};

/* For general kernels. */
static const struct group gains[] = {
    {"matrix, gain of 3e3", matrix_gain},
    {"matrix, gain of 1e8", matrix_huge},
    {"separable, gain of 1e8", "convolve=kernel=1e7 -1e7 1e7;-1e7 1e7 -1e7;1e7 -1e7 1e7:scale=-1"},
    {"matrix, sharpen", "sharpen=amount=3"},
};
static const struct group morphologies[] = {
    {"open", "open"},
    {"close, 21 x 21", "close=size=21"},
    {"tophat", "tophat=size=5"},
    {"blackhat, ellipse", "blackhat=size=9:shape=ellipse"},
    {"morphgradient", "morphgradient"},
    {"morphgradient, cross", "morphgradient=size=7:shape=cross"},
    {"chain with morphology", "box,tophat=size=7,morphgradient,erode=size=5"},
};
static const struct group lines[] = {
    {"gaussian of two sigmas", "gaussian=sigma_x=20:sigma_y=0.7"},
    {"highpass", "highpass=sigma=2"},
    {"log", "log=sigma=2"},
    {"log, radius 28", "log=sigma=7"},
    {"motion", "motion=length=31.5:angle=20"},
};
static const struct group regions[] = {
    {"regions", "box=size=5&regions=3,2,20,9;ellipse:10,-4,41,30;-9,5,10,400;30,6,1,1"},
    {"regions, inverted",
     "gaussian=sigma=1.4,sobel&regions=4,4,11,11;ellipse:20,0,300,90&invert=1"},
    {"regions, feathered",
     "pixelate=size=5&regions=12,3,20,1;ellipse:1,1,8,12;ellipse:40,9,200,9&feather=7"},
    {"regions, feathered and inverted",
     "dilate=size=9&regions=ellipse:0,0,64,20;60,0,9,9&feather=30&invert=1"},
    {"regions, far away", "sharpen&regions=900000,900000,1,1&feather=1000"},
    {"edges in regions", "canny&regions=3,2,20,9;ellipse:10,-4,41,30&feather=5"},
};
static const struct group chains[] = {
    {"chain with dog", "box,dog=sigma1=2:sigma2=3,gaussian=sigma=1"},
    {"chain of 2", "gaussian=sigma=1.4,sobel"},
    {"chain of 2, 1 x 5 and 5 x 1", "convolve=kernel=1;2;3;4;7,convolve=kernel=1 2 3 4 7"},
    {"chain of 3", "box=size=5,convolve=kernel=1 2 3;4 5 6;7 8 0,gaussian=size=3"},
    {"chain of 4", "sobel=output=y,gaussian=sigma=3,box=size=9,sobel=output=x"},
    {"pixelate in a chain", "box,pixelate=size=6,gaussian=sigma=1"},
    {"rank in a chain", "box,median,rank=percentile=80,sobel"},
    {"threshold in a chain", "median,threshold=value=0.4,erode"},
    {"canny of a blur", "gaussian=sigma=1.4,canny=sigma=0:low=0.05:high=0.1"},
    {"canny in a chain", "median,canny=sigma=0:low=0:high=0"},
    {"edges in a chain", "box,canny=sigma=1,dilate"},
    {"chain with curves", "gaussian=sigma=1,gamma=gamma=1.5,invert,box,linear=gain=1.5"},
    {"chain with colours", "box,lut=table=255 90 0,grayscale=weights=bt709,lut=points=0 9;200 255"},
    {"thresholds and tables of a whole image", "threshold=method=otsu,equalize"},
};
static const struct group lattices[] = {
    {"lattice of 3", "gaussian=sigma=8.5"},
    {"lattice of 4, unsharp", "unsharp=sigma=20"},
    {"lattice of 4", "gaussian=sigma=23.7"},
    {"lattice of 5", "gaussian=sigma=45"},
    {"lattice of 6", "gaussian=sigma=66"},
    {"lattice of 8", "gaussian=sigma=100"},
    {"lattice in a chain", "sobel,gaussian=sigma=9,box,gaussian=sigma=10"},
};
static const struct group windows[] = {
    {"separable, radius 300", "gaussian=sigma=100:size=601"},
    {"separable, box of 601", "box=size=601"},
    {"matrix 63 x 63", matrix63},
};

#define GROUPS(array) array, sizeof array / sizeof *array

const struct set sets[] = {
    {"separable", OPERATION_SEPARABLE, GROUPS(separables)},
    {"matrix", OPERATION_MATRIX, GROUPS(matrices)},
    {"gradient", OPERATION_GRADIENT, GROUPS(gradients)},
    {"bilateral", OPERATION_BILATERAL, GROUPS(bilaterals)},
    {"dog", OPERATION_DOG, GROUPS(dogs)},
    {"extreme", OPERATION_EXTREME, GROUPS(extremes)},
    {"pixelate", OPERATION_PIXELATE, GROUPS(pixelates)},
    {"rank", OPERATION_RANK, GROUPS(ranks)},
    {"threshold", OPERATION_THRESHOLD, GROUPS(thresholds)},
    {"local threshold", OPERATION_LOCAL_THRESHOLD, GROUPS(local_thresholds)},
    {"unsharp", OPERATION_UNSHARP, GROUPS(unsharps)},
    {"canny", OPERATION_CANNY, GROUPS(cannies)},
    {"edges", OPERATION_EDGES, GROUPS(planes)},
    {"curve", OPERATION_CURVE, GROUPS(curves)},
    {"lut", OPERATION_LUT, GROUPS(luts)},
    {"mix", OPERATION_MIX, GROUPS(mixes)},
    {"large coefficients", OPERATIONS, GROUPS(gains)},
    {"morphology", OPERATIONS, GROUPS(morphologies)},
    {"lines", OPERATIONS, GROUPS(lines)},
    {"regions", OPERATIONS, GROUPS(regions)},
    {"chains", OPERATIONS, GROUPS(chains)},
    {"lattices", OPERATIONS, GROUPS(lattices)},
    {"large windows", OPERATIONS, GROUPS(windows)},
};
const size_t sets_count = sizeof sets / sizeof *sets;

/* "convolve=kernel=…", random, coefficients from `least` on. */
static void write_matrix(char *text, size_t size, int side, int least, int range, const char *rest)
{
	size_t used = (size_t)snprintf(text, size, "convolve=kernel=");

	for (int i = 0; i < side * side; i++)
		used += (size_t)snprintf(text + used, size - used, "%d%s",
		                         least + (int)random_below((uint32_t)range),
		                         i == side * side - 1   ? ""
		                         : i % side == side - 1 ? ";"
		                                                : " ");
	snprintf(text + used, size - used, "%s", rest);
}

void sets_init(void)
{
	write_matrix(matrix63, sizeof matrix63, 63, 1, 100, "");
	write_matrix(matrix_gain, sizeof matrix_gain, 15, -20, 41, ":scale=1");
	write_matrix(matrix_huge, sizeof matrix_huge, 5, -6000000, 12000001, ":scale=1");
}

void tally_trial(struct tally *tally, struct harness *h, const struct trial *t)
{
	if (!trial_run(h, t))
		return;
	tally->trials++;
	tally->of_type[t->image.type]++;
}

static bool has_alpha(const struct set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!group_alpha_is_stable(&set->group[i]))
			return false;
	return true;
}

void set_try(struct harness *h, const struct set *set, uint32_t variant, struct tally *tally)
{
	static struct pairwise p;
	unsigned levels[FACTORS] = {(unsigned)set->count, PIXEL_TYPES,
	                            has_alpha(set) ? KINDS : KINDS_OPAQUE};

	trial_circumstances(variant, levels + CIRCUMSTANCE);
	if (!pairwise_init(&p, levels, FACTORS, random_below(1u << 31)))
		abort();
	/* The first rows of a cover differ most. */
	for (size_t i = 0; i < howmany(p.rows, (size_t)options.every); i++) {
		const uint8_t *row = p.row[i];
		struct trial t = {.group = &set->group[row[FILTER]],
		                  .variant = variant,
		                  .image = {.type = row[TYPE]}};

		trial_set_kind(&t, row[KIND]);
		trial_set_circumstances(&t, row + CIRCUMSTANCE);
		tally_trial(tally, h, &t);
	}
}
