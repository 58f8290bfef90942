/* Files in memory: of a fixed size, and sealed ones that carry small data. */
#ifndef BASE_MEMFD_H
#define BASE_MEMFD_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Creates a memfd of this size that can neither grow nor shrink. Returns ERR_IO with errno set on
 * failure. */
enum error memfd_fixed(const char *name, uint64_t size, int *fd) MUST_CHECK;

/* Opens the same memory or file again, for reading only (O_RDONLY) or writing only (O_WRONLY). */
enum error memfd_reopen(int fd, int access, int *again) MUST_CHECK;

/* Creates a memfd with a copy of these bytes, sealed against every change. */
enum error memfd_sealed(const char *name, const void *data, size_t size, int *fd) MUST_CHECK;

/* The seals of a final memfd. */
enum { SEALS_FINAL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Makes a memfd final. Whoever has written it does this quickest: for another process the system
 * first has the processors file the pages that they have put aside. False with errno, EBUSY if some
 * of it may still be written to through a mapping. */
bool memfd_seal(int fd);

/* Reads a descriptor to its end, *size bytes, into a new block from malloc(). If they are fewer
 * than `least`, the block has so many, the others 0. ERR_IO if they are more than `most`;
 * ERR_MEMORY. */
enum error memfd_take(int fd, size_t least, size_t most, void **data, size_t *size) MUST_CHECK;

#endif
