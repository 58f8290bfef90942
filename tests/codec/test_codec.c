/* Tests of convolved-codec as its front sees it: test_codec PROGRAM. The identity is the filter, so
 * that images must come out as they went in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/metadata/known_memory.h"
#include "expect.h"
#include "process/sandbox.h"

/* Sets the number of libimagequant's threads, where it has any. A palette depends on it, and the
 * worker has one. */
__attribute__((weak)) void omp_set_num_threads(int threads);

/* Libraries get memory that shows nothing of what it had before. */
static void test_memory(void)
{
#if !SANITIZER
	static const size_t sizes[] = {24, 1000, 100000, 1 << 20};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const size_t size = sizes[i];
		uint8_t *volatile used = malloc(size);
		uint8_t *again, *grown;
		uint32_t *aligned;

		memset(used, 0x5a, size);
		free(used);
		again = malloc(size);
		grown = realloc(malloc(size / 2), size);
		expect(!again[0] && !memcmp(again, again + 1, size - 1), "malloc(%zu)", size);
		expect(!grown[0] && !memcmp(grown, grown + 1, size - 1), "realloc(%zu)", size);
		memset(again, 0x5a, size);
		free(again);
		free(grown);
		aligned = aligned_alloc(8, size);
		expect(aligned[0] == KNOWN_PATTERN && !memcmp(aligned, aligned + 1, size - 4),
		       "aligned_alloc(%zu)", size);
		free(aligned);
	}
#endif
}

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
	test_memory();
	test_round_trips();
	test_failures();
	test_lanes();
	test_kept();
	expect(peer_stop(&peer) == 0, "exit status at the end");
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
