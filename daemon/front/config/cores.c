#include "front/config/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define GROUPS "/sys/fs/cgroup"

/* cpu.max is the quota and its period, in microseconds; without a limit the quota is "max". */
static unsigned cores_of_file(const char *file)
{
	unsigned long long quota, period;
	FILE *f = fopen(file, "re");
	unsigned cores = UINT_MAX;

	if (!f)
		return UINT_MAX;
	if (fscanf(f, "%llu %llu", &quota, &period) == 2 && period && quota / period < UINT_MAX)
		cores = (unsigned)(quota / period + (quota % period ? 1 : 0));
	fclose(f);
	return cores ? cores : 1;
}

unsigned cores_of_group(const char *root, const char *path)
{
	char file[PATH_MAX];
	unsigned least = UINT_MAX;
	int length = (int)strlen(path);

	for (;;) {
		int size = snprintf(file, sizeof file, "%s%.*s/cpu.max", root, length, path);
		unsigned cores = UINT_MAX;

		if (size < (int)sizeof file)
			cores = cores_of_file(file);
		if (cores < least)
			least = cores;
		if (!length)
			return least;
		while (length && path[--length] != '/')
			continue;
	}
}

/* Of a container with a name space of its own, "/" is its own group. */
static unsigned cores_of_own_group(void)
{
	char line[PATH_MAX + 8];
	FILE *f = fopen("/proc/self/cgroup", "re");
	unsigned cores = UINT_MAX;

	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4))
			cores = cores_of_group(GROUPS, line + 3);
	}
	if (f)
		fclose(f);
	return cores;
}

/* A set of the usual size is too small for the kernel where there are more than 1024 cores. */
static unsigned cores_of_affinity(void)
{
	enum { CORES_MAX = 1 << 16 };
	cpu_set_t *set = CPU_ALLOC(CORES_MAX);
	size_t size = CPU_ALLOC_SIZE(CORES_MAX);
	int count = 0;

	if (set && !sched_getaffinity(0, size, set))
		count = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return count > 0 ? (unsigned)count : 1;
}

unsigned cores_usable(void)
{
	unsigned allowed = cores_of_affinity(), share = cores_of_own_group();

	return share < allowed ? share : allowed;
}
