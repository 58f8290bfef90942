/* A set of files. */
#include "client/guard.h"

#include <search.h>
#include <stdlib.h>

struct guarded {
	dev_t device;
	ino_t inode;
	const char *name;
};

static int compare(const void *one, const void *other)
{
	const struct guarded *a = one, *b = other;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

void guard_add(struct guard *guard, const struct stat *file, const char *name)
{
	struct guarded *new = malloc(sizeof *new);
	struct guarded *const *node;

	if (!new)
		abort();
	*new = (struct guarded){file->st_dev, file->st_ino, name};
	node = S_ISREG(file->st_mode) || S_ISBLK(file->st_mode)
	           ? tsearch(new, &guard->tree, compare)
	           : NULL;
	if (!node || *node != new)
		free(new);
}

const char *guard_find(const struct guard *guard, const struct stat *file)
{
	const struct guarded wanted = {file->st_dev, file->st_ino, NULL};
	struct guarded *const *node = tfind(&wanted, &guard->tree, compare);

	return node ? (*node)->name : NULL;
}

void guard_fini(struct guard *guard)
{
	tdestroy(guard->tree, free);
	guard->tree = NULL;
}
