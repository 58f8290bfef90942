/* Tests of convolved-codec as its front sees it: test_codec PROGRAM [--bench [SIDE]]. The identity
 * is the filter, so that images must come out as they went in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"
#include "image/formats.h"
#include "pictures.h"

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Prints a line of the worker's /proc status. */
static void print_status(const char *key)
{
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", (int)peer.pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key)))
			printf("  %s", line);
	if (f)
		fclose(f);
}

/* The best time of several copies of a square image; processor time is the mean. An answer of
 * FORMAT_NONE is of the body's format. */
static void bench(const char *suffix, enum format answer, uint32_t side, int times)
{
	struct picture p;
	struct file file;
	struct reply reply;
	double best = 1e9, decoding = 0, encoding = 0, begin;

	picture_make(&p, side, side, 3, PIXEL_U8, false);
	file = file_of_picture(&p, suffix);
	picture_fini(&p);
	struct request request = {
	    .body = file.bytes, .body_size = file.size, .filters = "box=size=3", .format = answer};
	for (int i = 0; i < times; i++) {
		begin = now_ms();
		if (!run_well(&request, &reply, suffix))
			return;
		if (now_ms() - begin < best)
			best = now_ms() - begin;
		decoding += (double)reply.done.decode_ns / 1e6 / times;
		encoding += (double)reply.done.encode_ns / 1e6 / times;
		reply_fini(&reply);
	}
	printf("%s %u to %s: %.2f ms, decoding %.2f, encoding %.2f, %u tiles\n", suffix, side,
	       format_name(reply.done.format), best, decoding, encoding, reply.header.tiles);
	file_fini(&file);
}

static void run_bench(uint32_t side)
{
	static const struct {
		const char *suffix;
		enum format answer;
	} small[] = {
	    {".jpg[Q=85]", FORMAT_JPEG},
	    {".jpg[Q=85]", FORMAT_PNG},
	    {".png[filter=all]", FORMAT_JPEG},
	    {".png[filter=all]", FORMAT_PNG},
	    {".webp", FORMAT_JPEG},
	    {".webp", FORMAT_PNG},
	};
	static const char *const suffixes[] = {".jpg[Q=85]", ".jpg[Q=85,interlace]", ".tif",
	                                       ".ppm"};

	for (size_t i = 0; i < G_N_ELEMENTS(small); i++)
		bench(small[i].suffix, small[i].answer, side ? side : 256, side <= 1024 ? 100 : 1);
	for (size_t i = 0; !side && i < G_N_ELEMENTS(suffixes); i++)
		bench(suffixes[i], FORMAT_NONE, 4096, 5);
	print_status("VmHWM");
	print_status("RssAnon");
	print_status("RssShmem");
}

/* Sets the number of libimagequant's threads, where it has any. A palette depends on it, and the
 * worker has one. */
__attribute__((weak)) void omp_set_num_threads(int threads);

int main(int argc, char **argv)
{
	setenv("VIPS_WARNING", "0", 1); /* damaged files are ours */
	if (argc < 2 || VIPS_INIT(argv[0])) {
		fprintf(stderr, "usage: test_codec PROGRAM [--bench [SIDE]]\n");
		return 2;
	}
	vips_concurrency_set(1); /* as the worker does: with more, libvips can lose an error */
	if (omp_set_num_threads)
		omp_set_num_threads(1);
	program = argv[1];
	peer_start(&peer, program, 64 << 20, 64 << 20);
	if (argc > 2) {
		run_bench(argc > 3 ? (uint32_t)atoi(argv[3]) : 0);
	} else {
		test_round_trips();
		test_conversions();
		test_failures();
		test_lanes();
		test_regions();
		test_kept();
	}
	expect(peer_stop(&peer) == 0, "exit status at the end");
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
