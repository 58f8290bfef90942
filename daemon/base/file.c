#include "base/file.h"

#include <errno.h>
#include <unistd.h>

bool file_read(int fd, void *to, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t count = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (count == 0)
			errno = EIO;
		if (count == 0 || (count < 0 && errno != EINTR))
			return false;
		done += count > 0 ? (size_t)count : 0;
	}
	return true;
}

bool file_write(int fd, const void *from, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t count =
		    pwrite(fd, (const char *)from + done, size - done, (off_t)(offset + done));

		if (count == 0)
			errno = EIO;
		if (count == 0 || (count < 0 && errno != EINTR))
			return false;
		done += count > 0 ? (size_t)count : 0;
	}
	return true;
}

void file_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
