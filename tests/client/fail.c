/* Preloaded: errors of the disk, and ends at any step. FAIL names the call, which fails for files
 * that are open for writing; or says "directories": fsync fails for these. KILL is the number of
 * the call, of all that change files, before which the process ends as if by a power failure.
 * MTIME is the time of files whose mode is set. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void step(void)
{
	static int steps;
	const char *last = getenv("KILL");

	if (last && ++steps == atoi(last))
		raise(SIGKILL);
}

static int chosen(const char *call, int fd)
{
	const char *fail = getenv("FAIL");
	struct stat info;

	if (!fail || fstat(fd, &info))
		return 0;
	if (S_ISDIR(info.st_mode))
		return !strcmp(call, "fsync") && !strcmp(fail, "directories");
	return !strcmp(call, fail) && S_ISREG(info.st_mode) && fcntl(fd, F_GETFL) & O_ACCMODE;
}

static void set_time(int fd)
{
	const char *time = getenv("MTIME");
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
	                                 {.tv_sec = time ? atol(time) : 0}};

	if (time && futimens(fd, times))
		abort();
}

#define NEXT(name, type, parameters) ((type(*) parameters)dlsym(RTLD_NEXT, #name))

/* The call is made all the same: a file is closed. */
#define CALL(name, code, parameters, ...)                                                          \
	int name parameters                                                                        \
	{                                                                                          \
		int fails = chosen(#name, fd), status;                                             \
                                                                                                   \
		if (strcmp(#name, "close") != 0)                                                   \
			step();                                                                    \
		status = NEXT(name, int, parameters)(__VA_ARGS__);                                 \
		if (!strcmp(#name, "fchmod"))                                                      \
			set_time(fd);                                                              \
		if (!fails)                                                                        \
			return status;                                                             \
		errno = code;                                                                      \
		return -1;                                                                         \
	}

CALL(fsync, EIO, (int fd), fd)
CALL(fdatasync, ENOSPC, (int fd), fd)
CALL(fchmod, EPERM, (int fd, mode_t mode), fd, mode)
CALL(close, EDQUOT, (int fd), fd)

#define STEP(name, type, parameters, ...)                                                          \
	type name parameters                                                                       \
	{                                                                                          \
		step();                                                                            \
		return NEXT(name, type, parameters)(__VA_ARGS__);                                  \
	}

STEP(write, ssize_t, (int fd, const void *bytes, size_t size), fd, bytes, size)
STEP(unlink, int, (const char *path), path)
STEP(rename, int, (const char *from, const char *to), from, to)
STEP(renameat2, int, (int a, const char *from, int b, const char *to, unsigned flags), a, from, b,
     to, flags)

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		step();
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return NEXT(open, int, (const char *path, int flags, mode_t mode))(path, flags, mode);
}
