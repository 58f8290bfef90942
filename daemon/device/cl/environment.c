/* The service caches compiled programs itself (cache.h), so PoCL's directory lives as long as the
 * process.
 *
 * POCL_KERNEL_CACHE=0: PoCL deletes a program's files with the program; not in a user's directory,
 * which may be shared. POCL_WORK_GROUP_SPECIALIZATION=0: PoCL compiles a kernel once, not again for
 * each local size at a launch, which gains little and delays a tile. POCL_DEVICES=basic (later also
 * called cpu-minimal): PoCL's driver without threads. Its other driver wakes all its threads at
 * every launch, which takes longer than a small tile does; the worker has threads of its own
 * (pool.h).
 *
 * A directory is locked (flock) while its process lives. Another process may remove a new directory
 * in the moment before it is locked, so it is checked again afterwards. */
#include "device/cl/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"

enum { TRIES = 10, ROOM = 16 << 20 /* bytes: some dozens of programs */ };

static const char random_part[] = "XXXXXX";

static int remove_entry(const char *path, const struct stat *, int, struct FTW *)
{
	return remove(path);
}

void work_directory_remove(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Locks a directory of this user. Returns -1 if another process has the lock, or the path no longer
 * leads to the directory. */
static int lock(const char *path)
{
	struct stat locked, present;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &locked) && !lstat(path, &present) &&
	    locked.st_dev == present.st_dev && locked.st_ino == present.st_ino &&
	    locked.st_uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

static void remove_abandoned(const char *directory, const char *prefix)
{
	const size_t length = strlen(prefix) + sizeof random_part - 1;
	GDir *list = g_dir_open(directory, 0, NULL);
	const char *name;
	char path[4096];
	int fd;

	while (list && (name = g_dir_read_name(list))) {
		if (!g_str_has_prefix(name, prefix) || strlen(name) != length)
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, name);
		fd = lock(path);
		if (fd < 0)
			continue;
		work_directory_remove(path);
		close(fd);
	}
	if (list)
		g_dir_close(list);
}

/* Returns true if a directory has room for a driver's files and may hold code; false with errno. */
static bool is_usable(const char *path)
{
	char name[4096 + 8];
	struct statvfs system;
	int fd, failed;

	if (statvfs(path, &system))
		return false;
	if (system.f_flag & ST_NOEXEC) {
		errno = EACCES;
		return false;
	}
	snprintf(name, sizeof name, "%s/XXXXXX", path);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return false;
	failed = posix_fallocate(fd, 0, ROOM);
	unlink(name);
	close(fd);
	errno = failed;
	return !failed;
}

bool work_directory_make(const char *directory, const char *prefix, char *path, size_t size)
{
	int code;

	if (mkdir(directory, 0700) && errno != EEXIST)
		return false;
	remove_abandoned(directory, prefix);
	for (int i = 0; i < TRIES; i++) {
		bool locked;

		if ((size_t)snprintf(path, size, "%s/%s%s", directory, prefix, random_part) >=
		    size) {
			errno = ENAMETOOLONG;
			return false;
		}
		if (!mkdtemp(path))
			return false;
		locked = lock(path) >= 0; /* stays open until the process ends */
		if (locked && is_usable(path))
			return true;
		code = errno;
		rmdir(path);
		errno = code;
		if (locked)
			return false;
	}
	errno = ENOLCK;
	return false;
}

/* PoCL's directory; empty: its default. */
static char directory[4096];

static char **environment;

/* Chooses the first usable directory: the one that the user configured, or one in the cache, or in
 * a directory that the sandbox leaves writable (sandbox.h). */
static void choose_directory(const char *cache_dir)
{
	const char *configured = getenv("POCL_CACHE_DIR");
	const char *const above[] = {cache_dir, g_get_tmp_dir(), "/dev/shm"};

	if (configured && !g_mkdir_with_parents(configured, 0700) && is_usable(configured))
		return;
	if (configured)
		log_warning("cannot use POCL_CACHE_DIR=%s: %s", configured, strerror(errno));
	for (size_t i = 0; i < sizeof above / sizeof *above; i++) {
		if (work_directory_make(above[i], i ? "convolved-driver-" : "driver-", directory,
		                        sizeof directory)) {
			setenv("POCL_CACHE_DIR", directory, 1);
			setenv("POCL_KERNEL_CACHE", "0", 0);
			return;
		}
		log_warning("cannot keep the driver's files in %s: %s", above[i], strerror(errno));
	}
	*directory = '\0';
}

void environment_set(const char *cache_dir)
{
	char path[4096];

	setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
	setenv("POCL_DEVICES", "basic", 0);
	if (cache_dir) {
		choose_directory(cache_dir);
		snprintf(path, sizeof path, "%.4000s/nvidia", cache_dir);
		setenv("CUDA_CACHE_PATH", path, 0);
		/* In the sandbox only existing directories may be written to. NVIDIA's driver can
		 * do without. */
		if (g_mkdir_with_parents(getenv("CUDA_CACHE_PATH"), 0700))
			log_warning("cannot create CUDA_CACHE_PATH=%s: %s",
			            getenv("CUDA_CACHE_PATH"), strerror(errno));
	}
	environment = g_get_environ();
}

char **environment_unspoiled(void)
{
	return environment;
}

bool environment_is_lost(void)
{
	if (!*directory || is_usable(directory))
		return false;
	log_error("the driver's files in %s are lost: %s", directory, strerror(errno));
	return true;
}
