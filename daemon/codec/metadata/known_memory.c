/* Replaces the C library's allocation for all libraries. Some decoders leave parts of a damaged
 * picture unwritten; the answer would show whatever the memory held, pixels of other clients.
 * calloc() clears only memory that has been used before, so this has no measurable cost. */
#include "codec/metadata/known_memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "process/sandbox.h"

#if !SANITIZER /* sanitizers have an allocation of their own */

/* The C library's functions, by their other names. */
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

_Static_assert(sizeof(wchar_t) == 4, "wmemset() sets words of the pattern's size");

void *malloc(size_t size)
{
	return calloc(1, size);
}

void *realloc(void *memory, size_t size)
{
	const size_t before = malloc_usable_size(memory);
	uint8_t *after = __libc_realloc(memory, size);
	const size_t now = malloc_usable_size(after);

	if (now > before)
		memset(after + before, 0, now - before);
	return after;
}

void *memalign(size_t alignment, size_t size)
{
	void *memory = __libc_memalign(alignment, size);

	if (memory)
		wmemset(memory, KNOWN_PATTERN, malloc_usable_size(memory) / sizeof(wchar_t));
	return memory;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	if (!alignment || alignment % sizeof(void *) || (alignment & (alignment - 1)))
		return EINVAL;
	*memory = memalign(alignment, size);
	return *memory ? 0 : ENOMEM;
}

#endif
