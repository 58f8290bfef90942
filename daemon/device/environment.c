/* The service caches compiled programs itself (cache.h), so PoCL's directory need not outlive the
 * process. POCL_KERNEL_CACHE=0: PoCL deletes a program's files with the program; not set if the
 * directory was configured by the user, who may share it. POCL_WORK_GROUP_SPECIALIZATION=0: PoCL
 * compiles a kernel once, with the program, and not again for each local size at a launch, which
 * gains little and makes a tile wait. */
#include "device/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/work_directory.h"

/* PoCL compiles nothing without a directory: if there can be none in the cache, it gets one that it
 * may write to in the sandbox, too. */
static bool make_directory(const char *cache_dir, char *path, size_t size)
{
	const char *temporary = getenv("TMPDIR");

	if (work_directory_make(cache_dir, "driver-", path, size))
		return true;
	log_warning("cannot create a directory for the driver in %s: %s", cache_dir,
	            strerror(errno));
	return work_directory_make(temporary ? temporary : "/tmp", "convolved-driver-", path, size);
}

void environment_set(const char *cache_dir)
{
	char path[4096];

	setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
	if (!cache_dir)
		return;
	if (!getenv("POCL_CACHE_DIR") && make_directory(cache_dir, path, sizeof path)) {
		setenv("POCL_CACHE_DIR", path, 0);
		setenv("POCL_KERNEL_CACHE", "0", 0);
	}
	snprintf(path, sizeof path, "%.4000s/nvidia", cache_dir);
	setenv("CUDA_CACHE_PATH", path, 0);
}
