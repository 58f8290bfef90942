/* Shared memory over memfds. */
#include "common/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

enum error arena_create(const char *name, uint64_t size, int *fd)
{
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return ERR_IO;
	if (ftruncate(*fd, (off_t)size) ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(*fd);
		*fd = -1;
		return ERR_IO;
	}
	return ERR_OK;
}

enum error arena_reopen(int fd, int access, int *again)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*again = open(path, access | O_CLOEXEC);
	return *again < 0 ? ERR_IO : ERR_OK;
}

enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection)
{
	*arena = (struct arena){.in_size = in_size, .out_size = out_size};
	arena->in = mmap(NULL, in_size, in_protection, MAP_SHARED, in_fd, 0);
	if (arena->in == MAP_FAILED)
		return ERR_IO;
	arena->out = mmap(NULL, out_size, out_protection, MAP_SHARED, out_fd, 0);
	if (arena->out == MAP_FAILED) {
		munmap(arena->in, in_size);
		return ERR_IO;
	}
	return ERR_OK;
}

void arena_unmap(struct arena *arena)
{
	munmap(arena->in, arena->in_size);
	munmap(arena->out, arena->out_size);
	*arena = (struct arena){0};
}

bool memory_seal(int fd)
{
	return !fcntl(fd, F_ADD_SEALS, SEALS_FINAL);
}

enum error sealed_create(const char *name, const void *data, size_t size, int *fd)
{
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return ERR_IO;
	if (!file_write(*fd, data, size, 0) || fcntl(*fd, F_ADD_SEALS, SEALS_FINAL | F_SEAL_SEAL)) {
		close(*fd);
		return ERR_IO;
	}
	return ERR_OK;
}

enum error sealed_take(int fd, size_t least, size_t most, void **data, size_t *size)
{
	struct stat status;

	*data = NULL;
	if (fstat(fd, &status) || status.st_size < 0 || (uint64_t)status.st_size > most)
		return ERR_IO;
	*size = (size_t)status.st_size;
	*data = calloc(1, *size > least ? *size : least);
	if (!*data)
		return ERR_MEMORY;
	if (file_read(fd, *data, *size, 0))
		return ERR_OK;
	free(*data);
	*data = NULL;
	return ERR_IO;
}
