/* Calls that workers may not make, tried from inside: each in a process of its own that has entered
 * the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memfd.h"
#include "process/sandbox.h"
#include "unit.h"
#include "wire/wire.h"

enum {
	FILE_FD = 10,
	PIPE_FD,
	OTHER_SOCKET,
	LISTENING,
	OWN_SOCKET = HTTP_OWN_FDS + 5,
	FILE_LIMIT = 1 << 20
};

static char path[32] = ".";
static pid_t parent;

/* Descriptors as a worker has them, and some that it should not have. */
static void prepare(void)
{
	const struct rlimit files = {FILE_LIMIT, RLIM_INFINITY};
	int pair[2], ends[2];

	parent = getppid();
	mkdir("cache", 0700);
	mkdir("state", 0700);
	mknod("there", S_IFREG | 0600, 0);
	mknod("state/there", S_IFREG | 0600, 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || pipe(ends) ||
	    dup2(memfd_create("file", MFD_ALLOW_SEALING), FILE_FD) < 0 ||
	    ftruncate(FILE_FD, 4096) || dup2(pair[1], OTHER_SOCKET) < 0 ||
	    setrlimit(RLIMIT_FSIZE, &files) || dup2(ends[1], PIPE_FD) < 0 ||
	    dup2(pair[0], WORKER_SOCKET) < 0 ||
	    dup2(socket(AF_INET, SOCK_STREAM, 0), LISTENING) < 0 || listen(LISTENING, 1) ||
	    dup2(socket(AF_INET, SOCK_STREAM, 0), OWN_SOCKET) < 0 || listen(OWN_SOCKET, 1))
		_exit(200);
}

static long message(int socket)
{
	struct iovec part = {"x", 1};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	return sendmsg(socket, &header, MSG_NOSIGNAL);
}

static void *nothing(void *data)
{
	return data;
}

static long new_thread(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, nothing, NULL);
	return errno ? -1 : pthread_join(thread, NULL);
}

static long descriptors(void)
{
	for (int i = 0; i < 100; i++)
		if (dup(FILE_FD) < 0)
			return -1;
	return 0;
}

static long abort_here(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static long core_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_CORE, &limit) || limit.rlim_max ? -1 : 0;
}

/* A collector's port, and another: nothing listens at either. */
enum { COLLECTOR = 4318, ANOTHER = 4319 };

static const char *const writable[] = {"cache", NULL, "nowhere", "state", "/dev", "/proc/self"};
static const uint16_t ports[] = {53, COLLECTOR};

/* The access of each worker. */
static const struct sandbox_access access_of[] = {
    [SANDBOX_CODEC] = {.memory = UINT64_C(1) << 30},
    [SANDBOX_DEVICE] = {.writable = writable, .writable_count = 6},
    [SANDBOX_HTTP] = {0},
    [SANDBOX_TRACE] = {.ports = ports, .port_count = 2},
};

enum { OK, ABORTED = -SIGABRT, ANY = 1000 };

/* Returns the version of Landlock; 0 or less without it. */
static long landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

/* Returns true in a process of its own that has entered the sandbox, for a call; and false here,
 * once that has ended as expected: with an errno, 0, or by a signal, below 0. A sanitizer's build
 * has no sandbox, but what is allowed must be; a device's denies no access without Landlock. */
static bool inside(enum sandbox sandbox, const char *name, int expected)
{
	int status, found;
	pid_t pid;

	if (expected == ANY || (SANITIZER && expected != OK) ||
	    (sandbox == SANDBOX_DEVICE && expected == EACCES && landlock() <= 0))
		return false;
	pid = fork();
	if (!pid) {
		alarm(20);
		prepare();
		if (sandbox_enter(sandbox, &access_of[sandbox]))
			_exit(201);
		return true;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	found = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	if (found != expected)
		fail_msg("%s gives %d (%s), not %d", name, found, found > 0 ? strerror(found) : "",
		         expected);
	return false;
}

/* Tries a call, which gives a number below 0 and an errno if it is refused. */
#define TRY(sandbox, name, expected, expression)                                                   \
	if (inside(sandbox, name, expected))                                                       \
	_exit((long)(expression) < 0 ? errno : 0)

static void try_all(enum sandbox sandbox)
{
#define CALL(name, codec, device, http, expression)                                                \
	TRY(sandbox, #name,                                                                        \
	    sandbox == SANDBOX_CODEC  ? codec                                                      \
	    : sandbox == SANDBOX_HTTP ? http                                                       \
	                              : device,                                                    \
	    expression);
#include "sandbox.def"
#undef CALL
}

TEST(test_codec)
{
	try_all(SANDBOX_CODEC);
}

/* The files that a device worker keeps must remain its own to change. */
TEST(test_device)
{
	try_all(SANDBOX_DEVICE);
	TRY(SANDBOX_DEVICE, "cache_file", OK, open("cache/file", O_RDWR | O_CREAT | O_TRUNC, 0600));
	TRY(SANDBOX_DEVICE, "state_file", OK, rename("state/there", "state/renamed"));
	TRY(SANDBOX_DEVICE, "null_device", OK, open("/dev/null", O_RDWR));
}

TEST(test_http)
{
	try_all(SANDBOX_HTTP);
}

static long connect_to(uint16_t port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
	                               .sin_port = htons(port),
	                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&to, sizeof to);
}

static long listen_here(void)
{
	const struct sockaddr_in here = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return bind(fd, (const struct sockaddr *)&here, sizeof here) || listen(fd, 1) ? -1 : 0;
}

TEST(test_trace)
{
	const int file = landlock() >= 1 ? EACCES : ANY, port = landlock() >= 4 ? EACCES : ANY;

	TRY(SANDBOX_TRACE, "open_hosts", OK, open("/etc/hosts", O_RDONLY));
	TRY(SANDBOX_TRACE, "connect_collector", ECONNREFUSED, connect_to(COLLECTOR));
	TRY(SANDBOX_TRACE, "connect_another", port, connect_to(ANOTHER));
	TRY(SANDBOX_TRACE, "listen_here", EACCES, listen_here());
	TRY(SANDBOX_TRACE, "open_read", file, open("/etc/passwd", O_RDONLY));
	TRY(SANDBOX_TRACE, "open_own", file, open("there", O_RDONLY));
	TRY(SANDBOX_TRACE, "open_memory", file, open("/proc/self/mem", O_RDONLY));
	TRY(SANDBOX_TRACE, "list_home", file, open(".", O_RDONLY | O_DIRECTORY));
	TRY(SANDBOX_TRACE, "open_create", EACCES, open("file", O_RDWR | O_CREAT, 0600));
	TRY(SANDBOX_TRACE, "run_program", EACCES, execl("/bin/true", "true", NULL));
}
