/* Clock and statistics of timed runs. */
#include "bench/times.h"

#include <time.h>

#include "common/sort.h"

struct times times_summarize(double *ms, size_t count)
{
	struct times times = {0};

	sort_doubles(ms, count);
	times.median = ms[count / 2];
	for (size_t i = 0; i < count; i++)
		times.mean += ms[i] / (double)count;
	return times;
}

double times_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
