/* A file in memory, for what reads files by their names. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

struct memory_file {
	int fd;
	char path[32];
};

/* Gives a file, which is private, this content. It is made when it is given the first. */
static inline void fill_file(struct memory_file *file, const void *content, size_t size)
{
	if (!*file->path) {
		file->fd = memfd_create("file", MFD_CLOEXEC);
		must(file->fd >= 0 && !fchmod(file->fd, 0600));
		snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
	}
	must(!ftruncate(file->fd, 0) && pwrite(file->fd, content, size, 0) == (ssize_t)size);
}
