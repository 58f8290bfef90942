/* Compiled programs on disk, one file each, named by the SHA-256 of the program's key; a head with
 * checksums precedes the binary. A file gets its name when it is complete, so a reader sees all of
 * it or nothing. Until then it has a temporary name and is locked; without the lock its writer is
 * gone.
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

enum { DIGEST = 32, HEX = 2 * DIGEST + 1 };

static const char magic[8] = "CNVLVD1";
static const uint64_t SIZE_MAX_STORED = UINT64_C(1) << 30;

struct head {
	char magic[8];
	uint64_t size;         /* bytes after the head */
	uint8_t key[DIGEST];   /* SHA-256 of the key */
	uint8_t check[DIGEST]; /* SHA-256 of the bytes after the head */
};

struct cache {
	int directory;
	uint64_t size_max; /* bytes; 0: no limit */
};

/* name: for the digest's text, or NULL. */
static void digest(const void *data, size_t size, uint8_t out[DIGEST], char *name)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize length = DIGEST;

	g_checksum_update(sum, data, (gssize)size);
	if (name)
		g_strlcpy(name, g_checksum_get_string(sum), HEX);
	g_checksum_get_digest(sum, out, &length);
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

/* Reads the bytes after the head; NULL if they do not match the head's checksums. */
static void *read_checked(int fd, const uint8_t key[DIGEST], size_t *size)
{
	struct head head;
	struct stat status;
	uint8_t check[DIGEST];
	void *binary;

	if (!file_read(fd, &head, sizeof head, 0) || memcmp(head.magic, magic, sizeof magic) ||
	    memcmp(head.key, key, DIGEST) || fstat(fd, &status) || head.size > SIZE_MAX_STORED ||
	    (uint64_t)status.st_size != sizeof head + head.size)
		return NULL;
	binary = malloc(head.size);
	if (binary && file_read(fd, binary, head.size, sizeof head)) {
		digest(binary, head.size, check, NULL);
		*size = head.size;
		if (!memcmp(check, head.check, DIGEST))
			return binary;
	}
	free(binary);
	return NULL;
}

void *cache_load(struct cache *cache, const char *key, size_t *size)
{
	uint8_t key_digest[DIGEST];
	char name[HEX];
	void *binary;
	int fd;

	if (!cache)
		return NULL;
	digest(key, strlen(key), key_digest, name);
	fd = openat(cache->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	binary = read_checked(fd, key_digest, size);
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
	struct head head = {.size = size};
	char name[HEX], new_name[HEX + 24];
	bool written;
	int fd;

	if (!cache)
		return;
	memcpy(head.magic, magic, sizeof magic);
	digest(key, strlen(key), head.key, name);
	digest(binary, size, head.check, NULL);
	snprintf(new_name, sizeof new_name, "%s.%ld", name, (long)getpid());
	fd = openat(cache->directory, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	/* Locked until it has its final name: see trim(). */
	written = fd >= 0 && !flock(fd, LOCK_EX) && file_write(fd, &head, sizeof head, 0) &&
	          file_write(fd, binary, size, sizeof head);
	if (!written || renameat(cache->directory, new_name, cache->directory, name)) {
		log_warning("a compiled program cannot be kept: %s", strerror(errno));
		unlinkat(cache->directory, new_name, 0);
	}
	file_close(&fd);
	trim(cache);
}
