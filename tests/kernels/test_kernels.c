/* Every kernel against the reference: random images of all types, bands and borders, of shapes from
 * 1x1, in tiles of several heights, by both modes of a lane; of all these and of the filters of a
 * set, pairs meet (pairwise.h). The options are those of harness.c. */
#include <string.h>

#include "general.h"
#include "sets.h"
#include "variants.h"

/* Tells whether general kernels have not met the set as variants. */
static bool is_left(const struct set *set)
{
	for (enum kernel k = 0; set->operation < OPERATIONS && k < KERNELS; k++)
		if (variant_is_general(k) && kernel_row(k)->operations >> set->operation & 1)
			return false;
	return true;
}

/* Large odd images, where a launch is many groups both ways. */
static void test_large(struct harness *h)
{
	static const struct group groups[] = {
	    {"large, separable", "gaussian=sigma=1.4"},
	    {"large, matrix", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
	    {"large, gradient", "sobel"},
	    {"large, chain", "gaussian=sigma=1.4,sobel"},
	};

	for (size_t i = 0; i < sizeof groups / sizeof *groups * 2; i++) {
		struct trial t = {.group = &groups[i / 2],
		                  .image = {.width = 3001, .height = 101, .bands = i % 2 ? 3 : 4},
		                  .border = BORDER_REFLECT101,
		                  .tile_rows = 64,
		                  .mode = i % 2 ? LANE_COPY : LANE_ZERO_COPY};

		t.image.alpha = i % 2 == 0;
		trial_run(h, &t);
	}
	test_end("large images");
}

int main(int argc, char **argv)
{
	struct harness h;
	int status;

	options_parse(argc, argv);
	sets_init();
	harness_init(&h, 1 << 26);
	if (options.digests) {
		general_print(&h);
		return 0;
	}
	variants_run(&h, false);
	for (size_t i = 0; !options.only && i < sets_count; i++) {
		struct tally tally = {0};

		if (!is_left(&sets[i]))
			continue;
		set_try(&h, &sets[i], 0, &tally);
		test_end("%s (%u images)", sets[i].name, tally.trials);
	}
	if (options.most > 1e6 && !options.only) {
		test_large(&h);
		general_run(&h);
	}
	status = tests_end();
	harness_fini(&h);
	return status;
}
