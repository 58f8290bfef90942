/* FNV-1a, 128 bits wide: tells names and requests apart, not against an adversary.
 * Source: draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm". */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef unsigned __int128 hash;

enum { HASH_DIGITS = 33 };

#define HASH_START ((hash)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d)

static inline hash hash_bytes(hash h, const void *bytes, size_t size)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < size; i++)
		h = (h ^ b[i]) * ((hash)1 << 88 | 0x13b);
	return h;
}

/* A text with its end, so that two texts are not the same as another two. */
static inline hash hash_text(hash h, const char *text)
{
	return hash_bytes(h, text, strlen(text) + 1);
}

static inline uint64_t hash_short(hash h)
{
	return (uint64_t)(h >> 64) ^ (uint64_t)h;
}

static inline void hash_print(hash h, char digits[HASH_DIGITS])
{
	snprintf(digits, HASH_DIGITS, "%016llx%016llx", (unsigned long long)(h >> 64),
	         (unsigned long long)h);
}
