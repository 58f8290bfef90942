/* The common part of fuzz targets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Anything else is a finding. */
static inline void must(bool hold)
{
	if (!hold)
		abort();
}

/* Returns a copy, whose end the sanitizer knows. The caller frees it. */
static inline void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* Changes bytes of a file: of each three of the data two are the place, and one the value. */
static inline void change(uint8_t *file, size_t file_size, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		file[((size_t)data[0] << 8 | data[1]) % file_size] = data[2];
}
