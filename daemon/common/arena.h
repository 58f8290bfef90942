/* Shared memory: the arenas that carry tiles' pixels, and sealed memfds that carry small data. */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* One arena, mapped. */
struct arena {
	void *in, *out;
	uint64_t in_size, out_size; /* bytes; multiples of SLOT_ALIGNMENT */
};

/* Creates a memfd of this size that can neither grow nor shrink. Returns ERR_IO with errno set on
 * failure. */
enum error arena_create(const char *name, uint64_t size, int *fd) MUST_CHECK;

/* Opens the same memory or file again, for reading only (O_RDONLY) or writing only (O_WRONLY). */
enum error arena_reopen(int fd, int access, int *again) MUST_CHECK;

/* Maps both parts; in_protection and out_protection as for mmap(). The caller keeps the descriptors
 * and may close them. On failure nothing is mapped. */
enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection) MUST_CHECK;
void arena_unmap(struct arena *arena);

/* Creates a memfd with a copy of these bytes, sealed against every change. */
enum error sealed_create(const char *name, const void *data, size_t size, int *fd) MUST_CHECK;

/* What makes a memfd final. */
enum { SEALS_FINAL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Makes a memfd final. Whoever has written it does this quickest: for another process the system
 * first has the processors file the pages that they have put aside. False with errno, EBUSY if some
 * of it may still be written to through a mapping. */
bool memory_seal(int fd);

/* Reads a descriptor to its end, *size bytes, into a new block from malloc(). If they are fewer
 * than `least`, the block has so many, the others 0. ERR_IO if they are more than `most`;
 * ERR_MEMORY. */
enum error sealed_take(int fd, size_t least, size_t most, void **data, size_t *size) MUST_CHECK;

#endif
