#include "base/memfd.h"

#include <stdio.h>
#include <sys/mman.h>
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
