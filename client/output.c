/* Results and their temporary files. */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "client/hash.h"
#include "client/interrupt.h"
#include "client/smprint.h"

int output_nameless(void)
{
	const char *directory = getenv("TMPDIR");
	char *path = smprint("%s/convolve-XXXXXX", directory && *directory ? directory : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

/* Waits until a call will not block, since a signal just before the call would not end it. Returns
 * EINTR after a signal, otherwise 0: the call itself reports other errors. */
static int await(int fd, short events)
{
	struct pollfd waits[] = {{.fd = fd, .events = events},
	                         {.fd = interrupt_fd(), .events = POLLIN}};

	poll(waits, 2, -1);
	return interrupt_number() ? EINTR : 0;
}

/* Returns the error of a call that returned this; 0 if there is none, or if it is to be repeated:
 * another process that shares a pipe may have made it non-blocking. */
static int failure(ssize_t returned)
{
	return returned < 0 && errno != EAGAIN && errno != EINTR ? errno : 0;
}

/* Writes all bytes. Returns 0, or an errno (EINTR after a signal). */
static int put_all(int to, const char *bytes, size_t size)
{
	int error = 0;

	while (size && !error) {
		error = await(to, POLLOUT);
		if (!error) {
			/* A ready pipe takes this many. */
			ssize_t put = write(to, bytes, size < PIPE_BUF ? size : PIPE_BUF);

			error = failure(put);
			bytes += put > 0 ? put : 0;
			size -= put > 0 ? (size_t)put : 0;
		}
	}
	return error;
}

int output_copy(int from, int to)
{
	static char buffer[1 << 18];
	ssize_t got = -1;
	int error = 0;

	while (got && !error) {
		error = await(from, POLLIN);
		if (!error) {
			got = read(from, buffer, sizeof buffer);
			error = failure(got);
		}
		if (!error && got > 0)
			error = put_all(to, buffer, (size_t)got);
	}
	return error;
}

int output_make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0777) && errno != EEXIST) {
			int error = errno;

			*slash = '/';
			return error;
		}
		*slash = '/';
	}
	return 0;
}

/* Locks the file of this name and removes it, if a killed run has left it. Returns 0 or an
 * errno. */
static int remove_leftover(const char *path, const struct stat *replaced)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat info;
	int error = fd < 0 || fstat(fd, &info) ? errno : 0;

	if (!error &&
	    (!S_ISREG(info.st_mode) || (info.st_uid != geteuid() &&
	                                !(replaced->st_nlink && info.st_uid == replaced->st_uid))))
		error = EEXIST;
	if (!error && flock(fd, LOCK_EX | LOCK_NB))
		error = EBUSY;
	if (!error && unlink(path))
		error = errno;
	if (fd >= 0)
		close(fd);
	return error == ENOENT ? 0 : error;
}

/* Creates and locks the temporary file. Between the two another run may take it for a leftover. */
static int open_temporary(struct output *output)
{
	struct stat info;
	int error = EBUSY;

	for (unsigned attempts = 0; attempts < 10 && error == EBUSY; attempts++) {
		output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (output->fd < 0) {
			error = errno == EEXIST
			            ? remove_leftover(output->temporary, &output->replaced)
			            : errno;
			if (error)
				return error;
			error = EBUSY;
			continue;
		}
		/* A file system without locks has none to break. */
		error = flock(output->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK ? EBUSY : 0;
		if (!error && (fstat(output->fd, &info) || !info.st_nlink))
			error = EBUSY;
		if (error)
			close(output->fd);
	}
	if (error)
		output->fd = -1;
	return error;
}

/* Creates a temporary file in the output's directory, so that it can be renamed. */
static int open_beside(struct output *output)
{
	const char *slash = strrchr(output->place, '/');
	const char *name = slash ? slash + 1 : output->place;
	mode_t mask = umask(0);
	int error;

	umask(mask);
	output->mode = 0666 & ~mask;
	error = output_make_directories(output->place);
	if (error)
		return error;
	if (lstat(output->place, &output->replaced) || !S_ISREG(output->replaced.st_mode))
		output->replaced.st_nlink = 0;
	else
		output->mode = output->replaced.st_mode & 0777;
	output->temporary = smprint("%.*s.convolve-%016" PRIx64, (int)(name - output->place),
	                            output->place, hash_short(hash_text(HASH_START, name)));
	error = open_temporary(output);
	if (error) {
		free(output->temporary);
		output->temporary = NULL;
		return error;
	}
	output->lock = fcntl(output->fd, F_DUPFD_CLOEXEC, 3);
	return 0;
}

int output_open(struct output *output, const char *path)
{
	struct stat there;
	int error = 0;

	*output = (struct output){.fd = -1, .lock = -1, .stream = -1};
	if (!strcmp(path, "-")) {
		output->stream = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (!stat(path, &there) && !S_ISREG(there.st_mode)) {
		output->stream = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		output->place = smprint("%s", path);
		error = open_beside(output);
		if (error)
			output_discard(output);
		return error;
	}
	if (output->stream >= 0)
		output->fd = output_nameless();
	if (output->fd < 0) {
		error = errno;
		output_discard(output);
	}
	return error;
}

void output_rename(struct output *output, const char *path)
{
	if (!output->place)
		return;
	free(output->place);
	output->place = smprint("%s", path);
}

/* Gives the result owner, access list and mode of the file that it replaces. Without its access
 * list, or its group, the group of the result may do what all others may: nobody may read a result
 * who could not read that file. File systems without modes (FAT, CIFS) keep the one that they
 * gave. */
static int set_access(struct output *output)
{
	static const char list[] = "system.posix_acl_access";
	const struct stat *old = &output->replaced;
	char acl[1 << 12];
	ssize_t size = old->st_nlink ? lgetxattr(output->place, list, acl, sizeof acl) : 0;
	bool lost = size < 0 && errno == ERANGE;

	if (old->st_nlink) {
		/* Only the superuser can give a file away. */
		lost |= fchown(output->fd, old->st_uid, (gid_t)-1) && errno != EPERM;
		lost |= fchown(output->fd, (uid_t)-1, old->st_gid) != 0;
	}
	if (size > 0)
		lost |= fsetxattr(output->fd, list, acl, (size_t)size, 0) != 0;
	if (lost)
		output->mode &= ~070u | (output->mode & 07) << 3;
	return fchmod(output->fd, output->mode) && errno != EPERM ? errno : 0;
}

static bool has_same_time(const struct stat *one, const struct stat *other)
{
	return one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
	       one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* Gets the status of the result. Times may be as coarse as 2 s (FAT). */
static int make_different(struct output *output, struct stat *info)
{
	struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {0}};

	if (fstat(output->fd, info))
		return errno;
	if (!output->differs || !has_same_time(info, &output->replaced))
		return 0;
	times[1].tv_sec = info->st_mtim.tv_sec + 2;
	return futimens(output->fd, times) || fstat(output->fd, info) ? errno : 0;
}

/* A full disk or a quota may show only now: network file systems write late. */
static int close_synced(int *fd)
{
	int error = fsync(*fd) ? errno : 0;

	if (close(*fd) && !error)
		error = errno;
	*fd = -1;
	return error;
}

int output_finish(struct output *output, struct stat *info)
{
	int error;

	if (output->stream < 0) {
		error = set_access(output);
		if (!error)
			error = make_different(output, info);
		return error ? error : close_synced(&output->fd);
	}
	error = lseek(output->fd, 0, SEEK_SET) ? errno : output_copy(output->fd, output->stream);
	if (close(output->stream) && !error)
		error = errno;
	output->stream = -1;
	return error;
}

/* A file system that cannot refuse to replace a file (NFS, FAT) is asked whether there is one. */
static int rename_to_nothing(const char *from, const char *to)
{
	struct stat there;

	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	errno = EEXIST;
	return lstat(to, &there) ? rename(from, to) : -1;
}

int output_take_place(struct output *output, bool replace)
{
	if (!output->temporary)
		return 0;
	if (replace ? rename(output->temporary, output->place)
	            : rename_to_nothing(output->temporary, output->place))
		return errno;
	free(output->temporary);
	output->temporary = NULL;
	return 0;
}

char *output_directory(const struct output *output)
{
	const char *slash = output->place ? strrchr(output->place, '/') : NULL;

	if (!output->place)
		return NULL;
	return slash ? smprint("%.*s", (int)(slash + 1 - output->place), output->place)
	             : smprint(".");
}

int output_sync_directory(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno == EACCES ? 0
		                       : errno; /* the directory may be writable but not readable */
	if (fsync(fd) && errno != EINVAL)       /* the file system does not support it */
		error = errno;
	close(fd);
	return error;
}

void output_discard(struct output *output)
{
	if (output->temporary)
		unlink(output->temporary);
	if (output->fd >= 0)
		close(output->fd);
	if (output->lock >= 0)
		close(output->lock);
	if (output->stream >= 0)
		close(output->stream);
	free(output->temporary);
	free(output->place);
	*output = (struct output){.fd = -1, .lock = -1, .stream = -1};
}
