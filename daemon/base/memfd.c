#include "base/memfd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum error memfd_fixed(const char *name, uint64_t size, int *fd)
{
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && !ftruncate(*fd, (off_t)size) &&
	    !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return ERR_OK;
	file_close(fd);
	return ERR_IO;
}

enum error memfd_reopen(int fd, int access, int *again)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*again = open(path, access | O_CLOEXEC);
	return *again < 0 ? ERR_IO : ERR_OK;
}

bool memfd_seal(int fd)
{
	return !fcntl(fd, F_ADD_SEALS, SEALS_FINAL);
}

enum error memfd_sealed(const char *name, const void *data, size_t size, int *fd)
{
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && file_write(*fd, data, size, 0) && memfd_seal(*fd))
		return ERR_OK;
	file_close(fd);
	return ERR_IO;
}

enum error memfd_take(int fd, size_t least, size_t most, void **data, size_t *size)
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
