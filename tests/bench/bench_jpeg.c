/* libjpeg-turbo on all cores: the images a second that PROCESSES (one a core), which share nothing
 * but their rates, decode, encode (quality 85, 4:2:0), and decode and encode.
 *
 * bench_jpeg [-f] [-s SECONDS] [-c PROCESSES] FILE
 * FILE is a JPEG of RGB; -f: only both. `bench_engine -j FILE`: the same by devices. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "bench.h"
#include "jpegs.h"

enum { DECODE = 1, ENCODE = 2, BOTH = DECODE | ENCODE, QUALITY = 85, PROCESSES_MAX = 4096 };

static const char *const way_names[] = {
    [DECODE] = "decode", [ENCODE] = "encode", [BOTH] = "decode + encode"};

static uint8_t *file;
static size_t file_size;
static struct jpegs_picture picture; /* in the file */
static unsigned seconds = 3, processes;

/* Returns images a second of this process. */
static double run(int way)
{
	const struct jpegs_wish wish = {.width = picture.width,
	                                .height = picture.height,
	                                .sampling = JPEGS_420,
	                                .quality = QUALITY};
	const double start = seconds_now();
	double end;
	uint32_t n = 0;

	/* Large blocks are used again, as by who decodes into a buffer of his own. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	do {
		size_t bytes;

		if (way & DECODE) {
			free(picture.samples);
			if (!jpegs_decode_any(file, file_size, &picture))
				die("libjpeg");
		}
		if (way & ENCODE)
			free(jpegs_encode(&picture, &wish, &bytes));
		n++;
		end = seconds_now();
	} while (end - start < seconds);
	return n / (end - start);
}

static void print_rate(double *rate, int way)
{
	double sum = 0;

	fflush(stdout);
	for (unsigned i = 0; i < processes; i++)
		if (fork() == 0) {
			rate[i] = run(way);
			_exit(0);
		}
	for (unsigned i = 0; i < processes; i++)
		wait(NULL);
	for (unsigned i = 0; i < processes; i++)
		sum += rate[i];
	printf("libjpeg-turbo, %u processes, %s: %.1f images/s\n", processes, way_names[way], sum);
}

int main(int argc, char **argv)
{
	double *rate = mmap(NULL, PROCESSES_MAX * sizeof *rate, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int way = DECODE, option;
	gchar *bytes;

	processes = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	while ((option = getopt(argc, argv, "fs:c:")) != -1)
		if (option == 'f')
			way = BOTH;
		else if (option == 's')
			seconds = parse_number('s', optarg, 3600);
		else if (option == 'c')
			processes = parse_number('c', optarg, PROCESSES_MAX);
		else
			return 2;
	if (argc - optind != 1)
		die("expected a JPEG, and options as its source describes");
	if (rate == MAP_FAILED || !g_file_get_contents(argv[optind], &bytes, &file_size, NULL))
		die("%s: cannot read this file", argv[optind]);
	file = (uint8_t *)bytes;
	if (!jpegs_decode_any(file, file_size, &picture) || picture.bands != 3)
		die("%s: expected a JPEG of RGB", argv[optind]);
	for (; way <= BOTH; way++)
		print_rate(rate, way);
	return 0;
}
