/* Results and their temporary files. */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/interrupt.h"

static char *format_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *format_path(const char *format, ...)
{
	va_list args;
	char *path = NULL;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		abort();
	va_end(args);
	return path;
}

int output_nameless(void)
{
	const char *directory = getenv("TMPDIR");
	char *path =
	    format_path("%s/convolve-XXXXXX", directory && *directory ? directory : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

/* After a failed call: 0 if it is to be repeated, else the errno. Another process that shares a
 * pipe may have made it non-blocking. */
static int await(int fd, short events)
{
	struct pollfd waits[] = {{.fd = fd, .events = events},
	                         {.fd = interrupt_fd(), .events = POLLIN}};
	int error = errno;

	if (error == EAGAIN)
		poll(waits, 2, -1);
	else if (error != EINTR)
		return error;
	return interrupt_number() ? EINTR : 0;
}

int output_copy(int from, int to)
{
	static char buffer[1 << 18];
	ssize_t got;
	int error;

	while ((got = read(from, buffer, sizeof buffer)) != 0) {
		error = got < 0 ? await(from, POLLIN) : 0;
		for (ssize_t done = 0; !error && done < got;) {
			ssize_t put = write(to, buffer + done, (size_t)(got - done));

			error = put < 0 ? await(to, POLLOUT) : 0;
			done += put > 0 ? put : 0;
		}
		if (error)
			return error;
	}
	return 0;
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

/* Creates a temporary file in the output's directory, so that it can be renamed. */
static int open_beside(struct output *output)
{
	char *slash = strrchr(output->place, '/');
	mode_t mask = umask(0);
	int error;

	umask(mask);
	error = output_make_directories(output->place);
	if (error)
		return error;
	output->temporary = format_path(
	    "%.*s.convolve-XXXXXX", slash ? (int)(slash + 1 - output->place) : 0, output->place);
	output->fd = mkostemp(output->temporary, O_CLOEXEC);
	if (output->fd < 0) {
		error = errno;
		free(output->temporary);
		output->temporary = NULL;
		return error;
	}
	/* Sets the mode; file systems without modes (FAT, CIFS) keep the one that they gave. */
	return fchmod(output->fd, 0666 & ~mask) && errno != EPERM ? errno : 0;
}

int output_open(struct output *output, const char *path)
{
	struct stat there;
	int error = 0;

	*output = (struct output){.fd = -1, .stream = -1};
	if (!strcmp(path, "-")) {
		output->stream = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	} else if (!stat(path, &there) && !S_ISREG(there.st_mode)) {
		output->stream = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		output->place = realpath(path, NULL); /* for a symbolic link, its target */
		if (!output->place)
			output->place = format_path("%s", path);
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

/* A full disk or a quota may show only now: network file systems write late. */
static int close_synced(int *fd)
{
	int error = fsync(*fd) ? errno : 0;

	if (close(*fd) && !error)
		error = errno;
	*fd = -1;
	return error;
}

/* The output's place is checked last: before its directories existed, links and letter case could
 * not be resolved. */
static int take_place(struct output *output, const struct guard *guard, const char **guarded)
{
	struct stat there;

	*guarded = lstat(output->place, &there) ? NULL : guard_find(guard, &there);
	if (*guarded)
		return EEXIST;
	if (rename(output->temporary, output->place))
		return errno;
	free(output->temporary);
	output->temporary = NULL;
	return 0;
}

int output_commit(struct output *output, const struct guard *guard, const char **guarded,
                  struct stat *info)
{
	int error;

	*guarded = NULL;
	if (output->stream >= 0) {
		error = lseek(output->fd, 0, SEEK_SET) ? errno
		                                       : output_copy(output->fd, output->stream);
		if (close(output->stream) && !error)
			error = errno;
		output->stream = -1;
	} else {
		error = fstat(output->fd, info) ? errno : close_synced(&output->fd);
		if (!error)
			error = take_place(output, guard, guarded);
	}
	output_discard(output);
	return error;
}

char *output_directory(const struct output *output)
{
	const char *slash = output->place ? strrchr(output->place, '/') : NULL;

	if (!output->place)
		return NULL;
	return slash ? format_path("%.*s", (int)(slash + 1 - output->place), output->place)
	             : format_path(".");
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
	if (output->stream >= 0)
		close(output->stream);
	free(output->temporary);
	free(output->place);
	*output = (struct output){.fd = -1, .stream = -1};
}
