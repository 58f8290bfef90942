/* Preloaded into the front (LD_PRELOAD): a disk that fails when a test says so. Only calls that
 * change something beneath the directory CONVOLVED_DISK are looked at; in other programs, none.
 *
 * CONVOLVED_DISK_TEST names a directory outside it, for the test:
 *
 * fault   a file that may come and go while the service runs, with a line of
 *
 * 	ACTION NUMBER [PART]
 *
 *         for calls on paths with this part alone; `$` is a path's end. `kill`: the front is
 *         killed just before the NUMBERth call from now on; `tear`: within it, when half of what
 *         it writes is written; `full`: from the NUMBERth write on, writes fail with ENOSPC; `eio`:
 *         from the NUMBERth sync on, syncs fail with EIO, those of a whole file system, too; `ro`:
 *         from the NUMBERth write or change of names on, these fail with EROFS;
 *         `break`: the NUMBERth sync fails, and the front is killed before the next call; `slow`:
 *         each sync takes NUMBER milliseconds longer, or until the file is another.
 * calls   a line for each call: its name and path.
 * shadow  what a loss of power would leave at worst: of each file the contents as of its last sync,
 *         of each directory its names as of its last sync. Files are named by KEY here, for names
 *         change; a directory's has a line for each name, `KEY NAME`, with a slash if that is a
 *         directory; `root` is a link to that of CONVOLVED_DISK. Old files count as synced. */
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, SYNC, SYNC_ALL, CHANGE };

struct call {
	char path[2 * PATH_MAX]; /* with a `$`; empty: none of ours */
	enum kind kind;
	bool tears;
};

static const char *root, *test; /* root: NULL in other programs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is(const char *action, const char *name)
{
	return !strcmp(action, name);
}

static FILE *open_own(const char *name, const char *mode)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", test, name);
	return fopen(path, mode);
}

/* Finds the path of a name in an open directory, or of a descriptor if there is no name. */
static void find_path(int fd, const char *name, char path[2 * PATH_MAX])
{
	const size_t length = root ? strlen(root) : 0;
	char of[64];
	ssize_t size = 0;

	*path = '\0';
	if (!root)
		return;
	if (!name || *name != '/') {
		snprintf(of, sizeof of, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
		size = readlink(of, path, PATH_MAX - 1);
		size = size < 0 ? 0 : size;
		path[size] = '\0';
	}
	if (name)
		snprintf(path + size, PATH_MAX, "%s%s", size ? "/" : "", name);
	if (strncmp(path, root, length) || (path[length] && path[length] != '/'))
		*path = '\0';
}

/* The shadow --------------------------------------------------------------------------------- */

/* Inodes are used again, times of birth are not. */
static bool key_of(const char *path, char key[64], bool *is_directory)
{
	struct statx info;

	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_TYPE | STATX_BTIME, &info))
		return false;
	snprintf(key, 64, "%llx-%llx.%x", (unsigned long long)info.stx_ino,
	         (unsigned long long)info.stx_btime.tv_sec, info.stx_btime.tv_nsec);
	*is_directory = S_ISDIR(info.stx_mode);
	return true;
}

static void list(const char *path, FILE *to)
{
	DIR *directory = opendir(path);
	char entry[2 * PATH_MAX], key[64];
	bool is_directory;

	for (struct dirent *e; directory && (e = readdir(directory));) {
		snprintf(entry, sizeof entry, "%.4000s/%s", path, e->d_name);
		if (!is(e->d_name, ".") && !is(e->d_name, "..") &&
		    key_of(entry, key, &is_directory))
			fprintf(to, "%s %s%s\n", key, e->d_name, is_directory ? "/" : "");
	}
	if (directory)
		closedir(directory);
}

static void copy(const char *path, FILE *to)
{
	FILE *from = fopen(path, "re");
	char piece[65536];

	for (size_t size; from && (size = fread(piece, 1, sizeof piece, from));)
		fwrite(piece, 1, size, to);
	if (from)
		fclose(from);
}

/* Has the shadow know a file or directory as it is now. */
static int keep(const char *path, const struct stat *info, int flag, struct FTW *ftw)
{
	char key[64], written[PATH_MAX], kept[PATH_MAX];
	bool is_directory;
	FILE *to;

	(void)info, (void)flag, (void)ftw;
	pthread_mutex_lock(&lock);
	if (key_of(path, key, &is_directory) && (to = open_own("shadow/new", "we"))) {
		(is_directory ? list : copy)(path, to);
		fclose(to);
		snprintf(written, sizeof written, "%s/shadow/new", test);
		snprintf(kept, sizeof kept, "%s/shadow/%s", test, key);
		rename(written, kept);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	char name[16] = "", key[64], shadow[PATH_MAX];
	bool is_directory;

	prctl(PR_GET_NAME, name);
	if (is(name, "convolved"))
		test = getenv("CONVOLVED_DISK_TEST");
	if (!test || !key_of(getenv("CONVOLVED_DISK"), key, &is_directory))
		return;
	snprintf(shadow, sizeof shadow, "%s/shadow", test);
	mkdir(shadow, 0700);
	strcat(shadow, "/root");
	symlink(key, shadow);
	nftw(getenv("CONVOLVED_DISK"), keep, 16, FTW_PHYS);
	root = getenv("CONVOLVED_DISK");
}

/* Faults ------------------------------------------------------------------------------------- */

static void read_fault(char line[PATH_MAX])
{
	FILE *file = open_own("fault", "re");

	if (!file || !fgets(line, PATH_MAX, file))
		*line = '\0';
	if (file)
		fclose(file);
}

/* Finds what the test says of a call: returns true if it is the one, or one of those. */
static bool is_due(const struct call *call, char line[PATH_MAX], char action[16], long *number)
{
	static char last[PATH_MAX];
	static long count;
	char part[PATH_MAX] = "";
	bool once;

	read_fault(line);
	if (strcmp(line, last))
		count = 0;
	strcpy(last, line);
	*action = '\0';
	if (sscanf(line, "%15s %ld %4000s", action, number, part) < 2 ||
	    !(strstr(call->path, part) || (is(action, "eio") && call->kind == SYNC_ALL)))
		return false;
	once = is(action, "kill") || is(action, "tear") || is(action, "break");
	if (is(action, "ro") && (call->kind == SYNC || call->kind == SYNC_ALL))
		return false;
	if (!is(action, "kill") && !is(action, "tear") && !is(action, "ro") &&
	    (call->kind == CHANGE || (call->kind == WRITE) != is(action, "full")))
		return false;
	count++;
	return is(action, "slow") || count == *number || (!once && count > *number);
}

/* Before a call on a descriptor, or on a name in that directory. Returns false, with errno, if it
 * is not to be made. */
static bool begins(struct call *call, enum kind kind, const char *name, int fd, const char *file)
{
	static bool doomed;
	char line[PATH_MAX], now[PATH_MAX], action[16];
	long number = 0;
	FILE *calls;
	bool due;

	*call = (struct call){.kind = kind};
	find_path(fd, file, call->path);
	if (!*call->path)
		return true;
	pthread_mutex_lock(&lock);
	if ((calls = open_own("calls", "ae"))) {
		fprintf(calls, "%s %s\n", name, call->path + strlen(root));
		fclose(calls);
	}
	strcat(call->path, "$");
	due = is_due(call, line, action, &number);
	call->tears = due && is(action, "tear") && kind == WRITE;
	if (doomed || (due && !call->tears && (is(action, "kill") || is(action, "tear"))))
		kill(getpid(), SIGKILL);
	doomed = due && is(action, "break");
	if (!call->tears) /* else nobody changes anything until the end */
		pthread_mutex_unlock(&lock);
	for (strcpy(now, line); due && is(action, "slow") && number > 0 && !strcmp(line, now);
	     number -= 10) {
		usleep(10000);
		read_fault(now);
	}
	errno = is(action, "full") ? ENOSPC : is(action, "ro") ? EROFS : EIO;
	return !due || call->tears || is(action, "slow");
}

/* After a call that has been made. */
static void ends(const struct call *call, int fd, bool succeeded)
{
	const int error = errno;
	char path[64];

	if (call->tears)
		kill(getpid(), SIGKILL);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (*call->path && call->kind == SYNC && succeeded)
		keep(path, NULL, 0, NULL);
	if (*call->path && call->kind == SYNC_ALL && succeeded)
		nftw(root, keep, 16, FTW_PHYS);
	errno = error;
}

/* Defines the function that stands for this one. half: what makes half of a write; the further
 * arguments are those of the call. */
#define CALL(type, function, kind, fd, file, half, parameters, ...)                                \
	type wrap_##function parameters __asm__(#function);                                        \
	type wrap_##function parameters                                                            \
	{                                                                                          \
		__typeof__(&function) real =                                                       \
		    (__typeof__(&function))(intptr_t)dlsym(RTLD_NEXT, #function);                  \
		struct call call;                                                                  \
		type returned;                                                                     \
                                                                                                   \
		if (!begins(&call, kind, #function, fd, file))                                     \
			return -1;                                                                 \
		if (call.tears)                                                                    \
			half;                                                                      \
		returned = real(__VA_ARGS__);                                                      \
		ends(&call, fd, returned >= 0);                                                    \
		return returned;                                                                   \
	}
#define WRITES(function, parameters, ...)                                                          \
	CALL(ssize_t, function, WRITE, fd, NULL, n /= 2, parameters, __VA_ARGS__)
#define SYNCS(function, kind) CALL(int, function, kind, fd, NULL, (void)0, (int fd), fd)
#define CHANGES(function, fd, file, parameters, ...)                                               \
	CALL(int, function, CHANGE, fd, file, (void)0, parameters, __VA_ARGS__)
/* Opening changes something if it may make a file or empty one. */
#define OPENS(function, fd, parameters, ...)                                                       \
	CHANGES(function, MAKES ? fd : -1, MAKES ? file : NULL, parameters, __VA_ARGS__, mode)
#define MAKES (flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE)

WRITES(write, (int fd, const void *b, size_t n), fd, b, n)
WRITES(pwrite, (int fd, const void *b, size_t n, off_t at), fd, b, n, at)
WRITES(pwrite64, (int fd, const void *b, size_t n, off64_t at), fd, b, n, at)
WRITES(pwritev, (int fd, const struct iovec *b, int n, off_t at), fd, b, n, at)
WRITES(sendfile, (int fd, int from, off_t *at, size_t n), fd, from, at, n)
WRITES(copy_file_range, (int from, off64_t *at, int fd, off64_t *to, size_t n, unsigned flags),
       from, at, fd, to, n, flags)
SYNCS(fsync, SYNC)
SYNCS(fdatasync, SYNC)
SYNCS(syncfs, SYNC_ALL)
CHANGES(ftruncate, fd, NULL, (int fd, off_t size), fd, size)
CHANGES(ftruncate64, fd, NULL, (int fd, off64_t size), fd, size)
CHANGES(rename, AT_FDCWD, to, (const char *from, const char *to), from, to)
CHANGES(renameat, fd, to, (int old, const char *from, int fd, const char *to), old, from, fd, to)
CHANGES(linkat, fd, to, (int old, const char *from, int fd, const char *to, int flags), old, from,
        fd, to, flags)
CHANGES(unlink, AT_FDCWD, file, (const char *file), file)
CHANGES(unlinkat, fd, file, (int fd, const char *file, int flags), fd, file, flags)
CHANGES(mkdir, AT_FDCWD, file, (const char *file, mode_t mode), file, mode)
OPENS(open, AT_FDCWD, (const char *file, int flags, mode_t mode), file, flags)
OPENS(open64, AT_FDCWD, (const char *file, int flags, mode_t mode), file, flags)
OPENS(openat, fd, (int fd, const char *file, int flags, mode_t mode), fd, file, flags)
OPENS(openat64, fd, (int fd, const char *file, int flags, mode_t mode), fd, file, flags)
