/* Tests of convolved-codec as its front sees it: test_codec PROGRAM. The identity is the filter, so
 * that images must come out as they went in. */
#include <stdio.h>
#include <stdlib.h>

#include "expect.h"

/* Sets the number of libimagequant's threads, where it has any. A palette depends on it, and the
 * worker has one. */
__attribute__((weak)) void omp_set_num_threads(int threads);

int main(int argc, char **argv)
{
	setenv("VIPS_WARNING", "0", 1); /* damaged files are ours */
	if (argc != 2 || VIPS_INIT(argv[0])) {
		fprintf(stderr, "usage: test_codec PROGRAM\n");
		return 2;
	}
	vips_concurrency_set(1); /* as the worker does: with more, libvips can lose an error */
	if (omp_set_num_threads)
		omp_set_num_threads(1);
	program = argv[1];
	peer_start(&peer, program, 64 << 20);
	test_round_trips();
	test_failures();
	test_lanes();
	test_kept();
	expect(peer_stop(&peer) == 0, "exit status at the end");
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
