/* The files that no result may replace: the inputs, and the results of this run. Files are
 * identified by device and inode, so links, mounts and other spellings of a path make no
 * difference. */
#pragma once

#include <sys/stat.h>

struct guard {
	void *tree;
};

/* Adds a file; the caller keeps the name, which outlives the guard. Pipes and character devices
 * are skipped: they need no guard. */
void guard_add(struct guard *guard, const struct stat *file, const char *name);

/* Returns the name under which this file was added, or NULL. */
const char *guard_find(const struct guard *guard, const struct stat *file);

void guard_fini(struct guard *guard);
