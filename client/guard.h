/* Files that no result may replace: the inputs, and the results of this run. They are known by
 * device and inode, so that links, mounts and other spellings of a path make no difference. */
#pragma once

#include <sys/stat.h>

struct guard {
	void *tree;
};

/* The name stays the caller's. Pipes and character devices need no guard and are left out. */
void guard_add(struct guard *guard, const struct stat *file, const char *name);

/* The name of the file if it is one of them, or NULL. */
const char *guard_find(const struct guard *guard, const struct stat *file);

void guard_fini(struct guard *guard);
