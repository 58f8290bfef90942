/* A directory is locked (flock) for as long as its process lives; if it is not locked, the process
 * is gone. Another process may remove a new directory in the moment before its lock, so it is
 * looked at again once it is locked. */
#include "device/cl/work_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { TRIES = 10, ROOM = 16 << 20 /* bytes: some dozens of programs */ };

static const char random_part[] = "XXXXXX";

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

void work_directory_remove(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Locks a directory of this user. -1 if another process has the lock, or the path no longer leads
 * to the directory. */
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
	size_t length = strlen(prefix);
	DIR *list = opendir(directory);
	struct dirent *entry;
	char path[4096];
	int fd;

	while (list && (entry = readdir(list))) {
		if (strncmp(entry->d_name, prefix, length) ||
		    strlen(entry->d_name) != length + sizeof random_part - 1)
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		fd = lock(path);
		if (fd < 0)
			continue;
		work_directory_remove(path);
		close(fd);
	}
	if (list)
		closedir(list);
}

bool work_directory_usable(const char *path)
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
		if ((size_t)snprintf(path, size, "%s/%s%s", directory, prefix, random_part) >=
		    size) {
			errno = ENAMETOOLONG;
			return false;
		}
		if (!mkdtemp(path))
			return false;
		if (lock(path) < 0) { /* stays open until the process ends */
			rmdir(path);
			continue;
		}
		if (work_directory_usable(path))
			return true;
		code = errno;
		rmdir(path);
		errno = code;
		return false;
	}
	errno = ENOLCK;
	return false;
}
