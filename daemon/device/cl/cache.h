/* The on-disk cache of compiled programs, and a directory for the driver's own files. */
#ifndef DEVICE_CL_CACHE_H
#define DEVICE_CL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct cache;

/* Opens the cache in a folder, which is made if it is not there. NULL is a cache that keeps
 * nothing: what no folder, or one that cannot be written, gives (the latter is logged). When its
 * files, of other versions and processes too, have more than size_max bytes together, those go that
 * were not used for longest; 0: no bound. */
struct cache *cache_open(const char *directory, uint64_t size_max);
void cache_close(struct cache **cache);

/* The binary that was stored under a key (any bytes that say all that it depends on), or NULL. A
 * file that is damaged or belongs to another key is removed and logged. The caller frees it. */
void *cache_load(struct cache *cache, const void *key, size_t key_size, size_t *size) MUST_CHECK;

/* Stores a binary, atomically replacing an existing one. A failure is logged, and the caller need
 * not care. */
void cache_store(struct cache *cache, const void *key, size_t key_size, const void *binary,
                 size_t size);

/* Makes a folder in `directory` for a driver's own files, which belongs to this process alone and
 * is empty: PoCL ends the process when it meets a damaged file of its own. Removes those of
 * processes that are gone. Writes its path; false if there is none (logged). */
bool cache_make_work_folder(const char *directory, char *path, size_t size) MUST_CHECK;

#endif
