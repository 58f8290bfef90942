/* Compiled programs on disk, one file each, named by the SHA-256 of the program's key; the SHA-256
 * of key and binary precedes the binary. A file gets its name when it is complete, so a reader sees
 * all of it or nothing. Until then it has a temporary name and is locked; without the lock its
 * writer is gone.
 *
 * Several processes share the directory, and each may remove any file. A process that has it open
 * can still read it; the others compile the program again. */
#include "device/cl/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { HEX = 65 /* a digest as text */ };

static const off_t SIZE_MAX_STORED = 1 << 30;

struct cache {
	int directory;
	uint64_t size_max; /* bytes; 0: no limit */
};

/* Writes the SHA-256 of a key and of what it stands for. */
static void digest(const char *key, const void *data, size_t size, char text[HEX])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);

	g_checksum_update(sum, (const guchar *)key, (gssize)strlen(key) + 1);
	g_checksum_update(sum, data, (gssize)size);
	g_strlcpy(text, g_checksum_get_string(sum), HEX);
	g_checksum_free(sum);
}

struct kept {
	char name[HEX];
	uint64_t size;
	int64_t used_ns; /* CLOCK_REALTIME, at the last use */
};

static int compare_used(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* Removes unfinished files and, if the others exceed the limit, the least recently used ones. */
static void trim(const struct cache *cache)
{
	GArray *files = g_array_new(FALSE, FALSE, sizeof(struct kept));
	int fd = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat status;
	uint64_t sum = 0;

	while (list && (entry = readdir(list))) {
		const char *name = entry->d_name;
		size_t digits = strspn(name, "0123456789abcdef");
		struct kept kept;

		if (digits == HEX - 1 && name[digits] == '.') {
			int file =
			    openat(cache->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

			if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB)) /* its writer is gone */
				unlinkat(cache->directory, name, 0);
			file_close(&file);
		}
		if (digits != HEX - 1 || name[digits] ||
		    fstatat(cache->directory, name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode))
			continue;
		memcpy(kept.name, name, HEX);
		kept.size = (uint64_t)status.st_size;
		kept.used_ns = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
		g_array_append_val(files, kept);
		sum += kept.size;
	}
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	g_array_sort(files, compare_used);
	for (guint i = 0; cache->size_max && i < files->len && sum > cache->size_max; i++) {
		const struct kept *kept = &g_array_index(files, struct kept, i);

		sum -= kept->size;
		unlinkat(cache->directory, kept->name, 0);
		log_debug("cached program %.12s removed: the cache is full", kept->name);
	}
	g_array_free(files, TRUE);
}

struct cache *cache_open(const char *directory, uint64_t size_max)
{
	struct cache *cache;

	if (!directory)
		return NULL;
	if (mkdir(directory, 0700) && errno != EEXIST)
		log_warning("cannot create the directory %s: %s", directory, strerror(errno));
	cache = calloc(1, sizeof *cache);
	if (!cache)
		return NULL;
	cache->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cache->directory < 0) {
		log_warning("cannot cache compiled kernels in %s: %s", directory, strerror(errno));
		free(cache);
		return NULL;
	}
	cache->size_max = size_max;
	trim(cache);
	return cache;
}

void cache_close(struct cache **cache)
{
	if (!*cache)
		return;
	close((*cache)->directory);
	free(*cache);
	*cache = NULL;
}

/* Reads the binary after its digest; NULL if that is another one. */
static void *read_checked(int fd, const char *key, size_t *size)
{
	char head[HEX], check[HEX];
	struct stat status;
	void *binary;

	if (fstat(fd, &status) || status.st_size < HEX || status.st_size > SIZE_MAX_STORED)
		return NULL;
	*size = (size_t)status.st_size - HEX;
	binary = malloc(*size);
	if (binary && file_read(fd, head, HEX, 0) && file_read(fd, binary, *size, HEX)) {
		digest(key, binary, *size, check);
		if (!memcmp(check, head, HEX))
			return binary;
	}
	free(binary);
	return NULL;
}

void *cache_load(struct cache *cache, const char *key, size_t *size)
{
	char name[HEX];
	void *binary;
	int fd;

	if (!cache)
		return NULL;
	digest(key, "", 0, name);
	fd = openat(cache->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	binary = read_checked(fd, key, size);
	futimens(fd, NULL); /* the time of last use */
	close(fd);
	if (!binary) {
		log_warning("cached program %.12s is damaged; compiling it again", name);
		unlinkat(cache->directory, name, 0);
	}
	return binary;
}

void cache_store(struct cache *cache, const char *key, const void *binary, size_t size)
{
	char name[HEX], head[HEX], new_name[HEX + 24];
	bool written;
	int fd;

	if (!cache)
		return;
	digest(key, "", 0, name);
	digest(key, binary, size, head);
	snprintf(new_name, sizeof new_name, "%s.%ld", name, (long)getpid());
	fd = openat(cache->directory, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	/* Locked until it has its final name: see trim(). */
	written = fd >= 0 && !flock(fd, LOCK_EX) && file_write(fd, head, HEX, 0) &&
	          file_write(fd, binary, size, HEX);
	if (!written || renameat(cache->directory, new_name, cache->directory, name)) {
		log_warning("a compiled program cannot be kept: %s", strerror(errno));
		unlinkat(cache->directory, new_name, 0);
	}
	file_close(&fd);
	trim(cache);
}
