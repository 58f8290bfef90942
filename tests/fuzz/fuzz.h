/* The common part of fuzz targets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* AddressSanitizer's: little is kept of freed memory, filled of new memory, and noted of its
 * origin, which ASAN_OPTIONS=malloc_context_size=20 shows for a find. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16:malloc_context_size=2:"
	       "max_malloc_fill_size=256";
}

/* Anything else is a finding. */
#define must(hold) ((hold) ? (void)0 : must_fail(#hold, __FILE__, __LINE__))

__attribute__((noreturn)) static inline void must_fail(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
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

/* The variables of the front's modules (see fuzz.sh). */
extern char __start_front_state[] __attribute__((weak)), __stop_front_state[] __attribute__((weak));

/* Puts them back to what they were at its first call, so that an input does not depend on those
 * before it. All that they own must have been freed. */
__attribute__((no_sanitize("address", "undefined", "coverage"), no_builtin("memcpy"),
               unused)) static void
restore_front(void)
{
	static uint64_t *saved;
	uint64_t *state = (uint64_t *)(void *)__start_front_state;
	const size_t count = (size_t)(__stop_front_state - __start_front_state) / sizeof *state;
	const bool first = !saved;

	if (first)
		saved = malloc((count + 1) * sizeof *saved);
	for (size_t i = 0; i < count; i++)
		*(first ? &saved[i] : &state[i]) = first ? state[i] : saved[i];
}
