/* The service caches compiled programs itself (cache.h), so PoCL's directory need not outlive the
 * process. It may lie elsewhere than in the service's cache, because PoCL cannot do without one.
 * POCL_KERNEL_CACHE=0: PoCL deletes a program's files with the program; not set if the directory
 * was configured by the user, who may share it. POCL_WORK_GROUP_SPECIALIZATION=0: PoCL compiles a
 * kernel once, with the program, and not again for each local size at a launch, which gains little
 * and makes a tile wait. POCL_DEVICES=basic (later also called cpu-minimal): PoCL's driver without
 * threads. Its other one wakes all its threads at every launch, which takes longer than a small
 * tile does; the worker has threads of its own (pool.h). */
#include "device/cl/environment.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/work_directory.h"

/* PoCL's directory; empty: its default. */
static char directory[4096];

/* The first usable one: what the user configured, or a directory in the cache, or in one of those
 * that the sandbox leaves writable (sandbox.h). */
static void choose_directory(const char *cache_dir)
{
	const char *configured = getenv("POCL_CACHE_DIR"), *temporary = getenv("TMPDIR");
	const char *const above[] = {cache_dir, temporary ? temporary : "/tmp", "/dev/shm"};

	if (configured && !g_mkdir_with_parents(configured, 0700) &&
	    work_directory_usable(configured))
		return;
	if (configured)
		log_warning("cannot use POCL_CACHE_DIR=%s: %s", configured, strerror(errno));
	for (size_t i = 0; i < sizeof above / sizeof *above; i++) {
		if (work_directory_make(above[i], i ? "convolved-driver-" : "driver-", directory,
		                        sizeof directory)) {
			setenv("POCL_CACHE_DIR", directory, 1);
			setenv("POCL_KERNEL_CACHE", "0", 0);
			return;
		}
		log_warning("cannot keep the driver's files in %s: %s", above[i], strerror(errno));
	}
	*directory = '\0';
}

void environment_set(const char *cache_dir)
{
	char path[4096];

	setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
	setenv("POCL_DEVICES", "basic", 0);
	if (!cache_dir)
		return;
	choose_directory(cache_dir);
	snprintf(path, sizeof path, "%.4000s/nvidia", cache_dir);
	setenv("CUDA_CACHE_PATH", path, 0);
	/* In the sandbox only what is there may be written to. NVIDIA's driver can do without. */
	if (g_mkdir_with_parents(getenv("CUDA_CACHE_PATH"), 0700))
		log_warning("cannot create CUDA_CACHE_PATH=%s: %s", getenv("CUDA_CACHE_PATH"),
		            strerror(errno));
}

bool environment_is_lost(void)
{
	if (!*directory || work_directory_usable(directory))
		return false;
	log_error("the driver's files in %s are lost: %s", directory, strerror(errno));
	return true;
}
