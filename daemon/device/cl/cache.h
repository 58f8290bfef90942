/* The on-disk cache of compiled programs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct cache;

/* Opens the cache in a directory, which is created if it is missing. Returns NULL, a cache that
 * keeps nothing, if `directory` is NULL or cannot be written (logged). size_max limits the total
 * bytes of all its files, including those of other versions and processes, by removing the least
 * recently used ones. 0: no limit. */
struct cache *cache_open(const char *directory, uint64_t size_max);
void cache_close(struct cache **cache);

/* Loads the binary stored under a key: a text that contains everything the binary depends on. NULL
 * if there is none. A damaged file, or one of another key, is removed and logged. The caller frees
 * the binary. */
void *cache_load(struct cache *cache, const char *key, size_t *size) MUST_CHECK;

/* Stores a binary, atomically replacing an existing one. A failure is only logged. */
void cache_store(struct cache *cache, const char *key, const void *binary, size_t size);
