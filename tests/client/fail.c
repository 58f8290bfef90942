/* Preloaded: errors of the disk. FAIL names the call, which fails for files that are open for
 * writing; or says "directories": fsync fails for these. */
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

	if (!fail || fstat(fd, &info))
		return 0;
	if (S_ISDIR(info.st_mode))
		return !strcmp(call, "fsync") && !strcmp(fail, "directories");
	return !strcmp(call, fail) && S_ISREG(info.st_mode) && fcntl(fd, F_GETFL) & O_ACCMODE;
}

/* The call is made all the same: a file is closed. */
#define CALL(name, code, parameters, ...)                                                          \
	int name parameters                                                                        \
	{                                                                                          \
		int(*next) parameters = (int(*) parameters)dlsym(RTLD_NEXT, #name);                \
		int fails = chosen(#name, fd), status = next(__VA_ARGS__);                         \
                                                                                                   \
		if (!fails)                                                                        \
			return status;                                                             \
		errno = code;                                                                      \
		return -1;                                                                         \
	}

CALL(fsync, EIO, (int fd), fd)
CALL(fchmod, EPERM, (int fd, mode_t mode), fd, mode)
CALL(close, EDQUOT, (int fd), fd)
