/* The binary travels in a memfd, at descriptor APART_FD of the other process; it takes the place of
 * the socket to the front, which is none of its business. */
#include "device/apart.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/stall.h"
#include "common/wire.h"

enum { APART_FD = WORKER_SOCKET, LIMIT_S = 300, TRIES_MAX = 2 };

extern char **environ;

static bool start(pid_t *pid, const struct program_source *source, const char *file,
                  const char *options, enum pixel_type type, int fd)
{
	char platform[16], index[16], pixels[16];
	const char *argv[] = {"convolved-device",
	                      "--compile",
	                      file ? file : "",
	                      "--options",
	                      options,
	                      "--pixels",
	                      pixels,
	                      "--platform",
	                      platform,
	                      "--device",
	                      index,
	                      source->kernel_dir ? "--kernel-dir" : NULL,
	                      source->kernel_dir,
	                      NULL};
	posix_spawn_file_actions_t actions;
	int code;

	snprintf(platform, sizeof platform, "%u", source->device->platform);
	snprintf(index, sizeof index, "%u", source->device->index);
	snprintf(pixels, sizeof pixels, "%d", (int)type);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, APART_FD);
	code = posix_spawn(pid, "/proc/self/exe", &actions, NULL, (char **)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (code)
		log_error("cannot start a compiler: %s", strerror(code));
	return code == 0;
}

/* Waits until it ends, or stands still. True if it has ended. */
static bool await_end(pid_t pid)
{
	struct pollfd wait = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	const char *why = NULL;
	struct stall stall;

	stall_init(&stall, pid);
	while (!why && wait.fd >= 0 && poll(&wait, 1, STALL_LOOK_MS) <= 0)
		why = stall_look(&stall, true);
	if (wait.fd >= 0)
		close(wait.fd);
	if (why)
		log_error("a compiler is %s: it is left to itself", why);
	return !why;
}

/* True if it ended well. *again: what ended it may have had nothing to do with the program. One
 * that stands still is not waited for: it ends with this process, which may kill nobody. */
static bool finish(pid_t pid, bool *again)
{
	int status;

	*again = !await_end(pid);
	if (*again)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	*again = WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM;
	if (WIFSIGNALED(status))
		log_error(*again ? "a compiler ended by signal %d"
		                 : "a compiler took more than %d s",
		          *again ? WTERMSIG(status) : LIMIT_S);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static unsigned char *read_binary(int fd, size_t *size)
{
	struct stat status;
	unsigned char *binary;

	if (fstat(fd, &status) || status.st_size <= 0)
		return NULL;
	*size = (size_t)status.st_size;
	binary = malloc(*size);
	if (binary && pread(fd, binary, *size, 0) != (ssize_t)*size) {
		free(binary);
		binary = NULL;
	}
	return binary;
}

/* One try; *again: another may do better. */
static unsigned char *compile(const struct program_source *source, const char *file,
                              const char *options, enum pixel_type type, size_t *size, bool *again)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	unsigned char *binary = NULL;
	pid_t pid;

	*again = false;
	if (fd < 0) {
		log_error("cannot start a compiler: %s", strerror(errno));
		return NULL;
	}
	if (start(&pid, source, file, options, type, fd) && finish(pid, again))
		binary = read_binary(fd, size);
	close(fd);
	return binary;
}

unsigned char *apart_compile(const struct program_source *source, const char *file,
                             const char *options, enum pixel_type type, size_t *size)
{
	unsigned char *binary = NULL;
	bool again = true;

	for (int i = 0; !binary && again && i < TRIES_MAX; i++)
		binary = compile(source, file, options, type, size, &again);
	return binary;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

/* PoCL's files are not for two processes: a folder within the worker's, which goes with that. With
 * POCL_KERNEL_CACHE the program's name in a folder, which is kept in its binary, comes from what it
 * is made of, not from chance. */
static bool make_folder(char *path, size_t size)
{
	const char *above = getenv("POCL_CACHE_DIR");

	snprintf(path, size, "%s/apart-XXXXXX", above ? above : "/tmp");
	if (above)
		mkdir(above, 0700);
	return mkdtemp(path) && !setenv("POCL_CACHE_DIR", path, 1) &&
	       !setenv("POCL_KERNEL_CACHE", "1", 1);
}

static bool write_binary(const unsigned char *binary, size_t size)
{
	return write(APART_FD, binary, size) == (ssize_t)size;
}

int apart_serve(const struct apart *apart, unsigned platform, unsigned index,
                const char *kernel_dir)
{
	struct device device = {0};
	struct program_source source = {&device, kernel_dir, NULL};
	char folder[4096];
	unsigned char *binary = NULL;
	size_t size = 0;
	bool done = false, own = make_folder(folder, sizeof folder);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S); /* which ends it: its parent may not */
	if (!own)
		log_warning("there is no folder for a compiler: %s", strerror(errno));
	else if (!device_open(&device, platform, index) &&
	         !program_compile(&source, *apart->file ? apart->file : NULL, apart->options,
	                          (enum pixel_type)apart->type, &binary, &size))
		done = write_binary(binary, size);
	free(binary);
	if (own)
		nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return done ? 0 : 1;
}
