/* Every kernel against the reference: random images of all types, bands and borders, of shapes from
 * 1x1, in tiles of several heights, by both modes of a lane; of all these and of the filters of a
 * set, pairs meet (pairwise.h). The options are those of harness.c. */
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

int main(int argc, char **argv)
{
	struct harness h;
	int status;

	options_parse(argc, argv);
	sets_init();
	harness_init(&h, 1 << 26);
	variants_run(&h, false);
	for (size_t i = 0; !options.only && i < sets_count; i++) {
		struct tally tally = {0};

		if (!is_left(&sets[i]))
			continue;
		set_try(&h, &sets[i], 0, &tally);
		test_end("%s (%u images)", sets[i].name, tally.trials);
	}
	if (options.most > 1e6 && !options.only)
		general_run(&h);
	status = tests_end();
	harness_fini(&h);
	return status;
}
