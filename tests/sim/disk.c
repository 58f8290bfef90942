/* A disk that is slow, full or fails: the front's calls for files, and SQLite's. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "sim.h"

static uint64_t full_until;

/* Lets a thread wait for the disk. Returns 0, or errno of a failure. */
static int use_disk(bool writes)
{
	if (!sim_in_thread())
		return 0;
	sim_thread_pause(sim_fault(FAULT_DISK_SLOW) ? sim_while(2 * SIM_S) : sim_while(SIM_MS));
	if (!writes)
		return 0;
	if (sim_fault(FAULT_DISK_FULL))
		full_until = sim_now + sim_while(20 * SIM_S);
	if (sim_now < full_until && !sim_calm) {
		sim_counts[COUNT_DISK]++;
		return ENOSPC;
	}
	if (!sim_fault(FAULT_DISK_ERROR))
		return 0;
	sim_counts[COUNT_DISK]++;
	return EIO;
}

static int failed(bool writes)
{
	errno = use_disk(writes);
	return errno ? -1 : 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	va_list list;
	unsigned mode;

	va_start(list, flags);
	mode = va_arg(list, unsigned);
	va_end(list);
	return failed((flags & O_ACCMODE) != O_RDONLY) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);

int __wrap_openat(int directory, const char *path, int flags, ...)
{
	va_list list;
	unsigned mode;

	va_start(list, flags);
	mode = va_arg(list, unsigned);
	va_end(list);
	return failed(flags & O_CREAT) ? -1 : __real_openat(directory, path, flags, mode);
}

ssize_t __real_sendfile(int to, int from, off_t *at, size_t size);
ssize_t __wrap_sendfile(int to, int from, off_t *at, size_t size);

ssize_t __wrap_sendfile(int to, int from, off_t *at, size_t size)
{
	return failed(true) ? -1 : __real_sendfile(to, from, at, size);
}

int __real_unlinkat(int directory, const char *path, int flags);
int __wrap_unlinkat(int directory, const char *path, int flags);

int __wrap_unlinkat(int directory, const char *path, int flags)
{
	return failed(false) || (sim_in_thread() && sim_fault(FAULT_DISK_ERROR) && (errno = EIO))
	           ? -1
	           : __real_unlinkat(directory, path, flags);
}

/* Nothing need be on a disk: nobody loses power. */
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	(void)fd;
	return failed(true);
}

int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
	(void)fd;
	return failed(true);
}

int __wrap_syncfs(int fd);

int __wrap_syncfs(int fd)
{
	(void)fd;
	return failed(true);
}

int __wrap_sync_file_range(int fd, off_t at, off_t size, unsigned flags);

int __wrap_sync_file_range(int fd, off_t at, off_t size, unsigned flags)
{
	(void)fd, (void)at, (void)size, (void)flags;
	return 0;
}

/* ---- SQLite's ---- */

static ssize_t (*write_at)(int fd, const void *data, size_t size, off_t at);

static ssize_t database_write(int fd, const void *data, size_t size, off_t at)
{
	return failed(true) ? -1 : write_at(fd, data, size, at);
}

void sim_disk_init(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	const char *name = "pwrite64";

	if (!vfs->xGetSystemCall(vfs, name))
		name = "pwrite";
	write_at = (ssize_t(*)(int, const void *, size_t, off_t))vfs->xGetSystemCall(vfs, name);
	must(write_at);
	must(vfs->xSetSystemCall(vfs, name, (sqlite3_syscall_ptr)database_write) == SQLITE_OK);
}

static sqlite3 *database;

int __real_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs)
{
	const int result = __real_sqlite3_open_v2(path, db, flags, vfs);

	database = *db;
	return result;
}

/* The front never closes it, as a disk may hang. */
void sim_disk_reset(void)
{
	sqlite3_stmt *statement;

	full_until = 0;
	if (!database)
		return;
	while ((statement = sqlite3_next_stmt(database, NULL)))
		sqlite3_finalize(statement);
	sqlite3_close_v2(database);
	database = NULL;
}
