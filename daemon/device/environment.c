/* What PoCL compiles is kept by us (cache.h): nothing in its directory need outlive this process,
 * and a program's files go with the program (POCL_KERNEL_CACHE=0; not in a directory that may be
 * others', too). And it is to compile every kernel once, with the program: not again at a launch,
 * for its local size, which gains little and would make a tile wait for the compiler. */
#include "device/environment.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cl/cache.h"

void environment_set(const char *cache_dir)
{
	char path[4096];

	setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
	if (!cache_dir)
		return;
	if (!getenv("POCL_CACHE_DIR") && cache_make_work_folder(cache_dir, path, sizeof path)) {
		setenv("POCL_CACHE_DIR", path, 0);
		setenv("POCL_KERNEL_CACHE", "0", 0);
	}
	snprintf(path, sizeof path, "%.4000s/nvidia", cache_dir);
	setenv("CUDA_CACHE_PATH", path, 0);
}
