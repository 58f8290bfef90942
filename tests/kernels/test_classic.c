/* Every published kernel (kernels/classic/) as variants are tried, and as its study has it: without
 * a halo, in regions anywhere in matrices (bare.h). The options are those of harness.c.
 *
 * --no-images is for Oclgrind 21.10 --uninitialized, which takes the shadow of a pointer to an
 * image for that of the image itself, so what it says of these is chance. */
#include "sets.h"
#include "variants.h"

int main(int argc, char **argv)
{
	struct harness h;
	int status;

	/* PoCL compiles in half the time; these kernels are not optimised for CPUs anyway. */
	if (!getenv("TEST_ALL"))
		setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
	options_parse(argc, argv);
	sets_init();
	harness_init(&h, 1 << 26);
	variants_run(&h, true);
	status = tests_end();
	harness_fini(&h);
	return status;
}
