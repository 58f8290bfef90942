/* Files in memory: some of a fixed size, and sealed ones for small data. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Creates a memfd of this size that cannot grow or shrink. ERR_IO with errno set on failure. */
enum error memfd_fixed(const char *name, uint64_t size, int *fd) MUST_CHECK;

/* Opens the same memory or file again, for reading only (O_RDONLY) or writing only (O_WRONLY). */
enum error memfd_reopen(int fd, int access, int *again) MUST_CHECK;

/* Creates a memfd with a copy of these bytes, sealed against every change. */
enum error memfd_sealed(const char *name, const void *data, size_t size, int *fd) MUST_CHECK;

/* The seals of a final memfd. */
enum { SEALS_FINAL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Makes a memfd final. Its writer should call this: for others the system first has processors file
 * the pages that they have put aside. Returns false with errno, EBUSY if a mapping may still write
 * to the memory. */
bool memfd_seal(int fd);
