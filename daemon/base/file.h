/* Files that are built into the program; reading and writing whole blocks of other files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A text file that daemon/embed.sh has built into the program. */
struct embedded {
	const char *name; /* its path below its directory */
	const char *text;
};

/* Reads or writes `size` bytes at a position of a file. Returns false, with errno, on failure,
 * after which any part may have been read or written; EIO if the file ends. */
bool file_read(int fd, void *to, size_t size, uint64_t offset) MUST_CHECK;
bool file_write(int fd, const void *from, size_t size, uint64_t offset) MUST_CHECK;

/* Closes a descriptor, unless it is -1, and sets it to that. */
void file_close(int *fd);
