/* Processes do not share memory but for their rates. */
#include "turbo.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "bench.h"

enum { QUALITY = 85 };

void jpeg_file_read(struct jpeg_file *file, const char *path)
{
	struct jpegs_picture picture;
	gchar *bytes;

	if (!g_file_get_contents(path, &bytes, &file->size, NULL))
		die("%s: cannot read this file", path);
	file->bytes = (uint8_t *)bytes;
	if (!jpegs_decode(file->bytes, file->size, &picture) || picture.bands != 3)
		die("%s: expected a JPEG of RGB", path);
	file->for_devices = !jpeg_header_read(file->bytes, file->size, &file->scan);
	file->wish = (struct jpegs_wish){.width = picture.width,
	                                 .height = picture.height,
	                                 .sampling = JPEGS_420,
	                                 .quality = QUALITY};
	free(picture.samples);
}

/* Returns images a second of one process. */
static double run(const struct jpeg_file *file, int what, unsigned seconds)
{
	struct jpegs_picture p;
	double start, end;
	uint32_t n = 0;

	/* Large blocks are used again, as by who decodes into a buffer of his own. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (!jpegs_decode(file->bytes, file->size, &p))
		die("libjpeg");
	start = seconds_now();
	do {
		size_t bytes;

		if (what & TURBO_DECODE) {
			free(p.samples);
			if (!jpegs_decode(file->bytes, file->size, &p))
				die("libjpeg");
		}
		if (what & TURBO_ENCODE)
			free(jpegs_encode(&p, &file->wish, &bytes));
		n++;
		end = seconds_now();
	} while (end - start < seconds);
	return n / (end - start);
}

double turbo_rate(const struct jpeg_file *file, int what, unsigned processes, unsigned seconds)
{
	double *rate = mmap(NULL, processes * sizeof *rate, PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double sum = 0;

	if (rate == MAP_FAILED)
		die("no memory");
	fflush(stdout);
	for (unsigned i = 0; i < processes; i++)
		if (fork() == 0) {
			rate[i] = run(file, what, seconds);
			_exit(0);
		}
	for (unsigned i = 0; i < processes; i++)
		wait(NULL);
	for (unsigned i = 0; i < processes; i++)
		sum += rate[i];
	munmap(rate, processes * sizeof *rate);
	return sum;
}
