/* Processes do not share memory but for their rates. */
#include "photographs.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "photographs: %s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint8_t *photograph_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *bytes;

	if (!f || fseek(f, 0, SEEK_END))
		die("cannot read the photograph");
	*size = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*size + 1);
	if (!bytes || fread(bytes, 1, *size, f) != *size)
		die("cannot read the photograph");
	fclose(f);
	return bytes;
}

struct jpegs_picture photograph_read(const char *path)
{
	struct jpegs_picture picture;
	size_t size;
	uint8_t *bytes = photograph_file(path, &size);

	if (!jpegs_decode(bytes, size, &picture) || picture.bands != 3)
		die("no photograph");
	free(bytes);
	return picture;
}

/* About Gaussian, of deviation 1. */
static float noise(uint32_t *state)
{
	float sum = 0;

	for (int i = 0; i < 4; i++) {
		*state = *state * 1664525 + 1013904223;
		sum += (float)(*state >> 16) / 65536;
	}
	return (sum - 2) * 1.73F;
}

struct jpegs_picture photograph_enlarge(const struct jpegs_picture *from, uint32_t width,
                                        uint32_t height, float deviation, uint32_t seed)
{
	struct jpegs_picture p = {width, height, 3, malloc((size_t)width * height * 3)};
	uint8_t *to = p.samples;
	size_t row = (size_t)from->width * 3;

	if (!to)
		die("no memory");
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++) {
			float fx = (float)x * (float)(from->width - 1) / (float)width;
			float fy = (float)y * (float)(from->height - 1) / (float)height;
			const uint8_t *a = from->samples + (size_t)fy * row + (size_t)fx * 3;

			fx -= (float)(size_t)fx;
			fy -= (float)(size_t)fy;
			for (int b = 0; b < 3; b++, a++) {
				float upper = (float)a[0] * (1 - fx) + (float)a[3] * fx;
				float lower = (float)a[row] * (1 - fx) + (float)a[row + 3] * fx;
				float value =
				    upper * (1 - fy) + lower * fy + deviation * noise(&seed) + 0.5F;

				*to++ = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
			}
		}
	return p;
}

/* Returns images a second of one process. */
static double run(uint8_t *const *file, const size_t *size, uint32_t count,
                  const struct jpegs_wish *wish, int what, uint32_t first, unsigned seconds)
{
	struct jpegs_picture p;
	double start, end;
	uint32_t n = 0;

	/* Large blocks are used again, as by who decodes into a buffer of his own. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (!jpegs_decode(file[0], size[0], &p))
		die("libjpeg");
	start = now();
	do {
		uint32_t f = (first + n) % count;
		size_t bytes;

		if (what & TURBO_DECODE) {
			free(p.samples);
			if (!jpegs_decode(file[f], size[f], &p))
				die("libjpeg");
		}
		if (what & TURBO_ENCODE)
			free(jpegs_encode(&p, wish, &bytes));
		n++;
		end = now();
	} while (end - start < seconds);
	return n / (end - start);
}

double turbo_rate(uint8_t *const *file, const size_t *size, uint32_t count,
                  const struct jpegs_wish *wish, int what, unsigned processes, unsigned seconds)
{
	double *rate = mmap(NULL, processes * sizeof *rate, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double sum = 0;

	if (rate == MAP_FAILED)
		die("no memory");
	fflush(stdout);
	for (uint32_t i = 0; i < processes; i++)
		if (fork() == 0) {
			rate[i] = run(file, size, count, wish, what, i, seconds);
			_exit(0);
		}
	for (uint32_t i = 0; i < processes; i++)
		wait(NULL);
	for (uint32_t i = 0; i < processes; i++)
		sum += rate[i];
	munmap(rate, processes * sizeof *rate);
	return sum;
}
