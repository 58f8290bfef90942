/* Numbers in files. */
#ifndef CODEC_BYTES_H
#define CODEC_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of this many bytes, 8 at most. */
static inline uint64_t bytes_number(const uint8_t *at, size_t size, bool big_endian)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n = n << 8 | at[big_endian ? i : size - 1 - i];
	return n;
}

#endif
