/* Preloaded: errors of the disk. FAIL names the call, which fails for files that are open for
 * writing; with FAIL_DIRECTORIES no directory can be synced. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int chosen(const char *call, int fd)
{
	const char *fail = getenv("FAIL");
	struct stat info;

	return fail && !strcmp(fail, call) && !fstat(fd, &info) && S_ISREG(info.st_mode) &&
	       fcntl(fd, F_GETFL) & O_ACCMODE;
}

static int is_directory(int fd)
{
	struct stat info;

	return !fstat(fd, &info) && S_ISDIR(info.st_mode);
}

int fsync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	if (!chosen("fsync", fd) && !(is_directory(fd) && getenv("FAIL_DIRECTORIES")))
		return next(fd);
	errno = EIO;
	return -1;
}

int fchmod(int fd, mode_t mode)
{
	int (*next)(int, mode_t) = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");

	if (!chosen("fchmod", fd))
		return next(fd, mode);
	errno = EPERM;
	return -1;
}

int close(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
	int fails = chosen("close", fd), status = next(fd);

	if (!fails)
		return status;
	errno = EDQUOT;
	return -1;
}
