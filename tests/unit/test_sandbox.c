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

#define TRY(name, expression)                                                                      \
	static long name(void)                                                                     \
	{                                                                                          \
		return (long)(expression);                                                         \
	}
#define CALL(name, codec, device, http, expression) TRY(name, expression)
#include "sandbox.def"
#undef CALL

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

static const struct {
	const char *name;
	long (*call)(void);
	int expected[SANDBOX_TRACE];
} rows[] = {
#define CALL(name, codec, device, http, expression)                                                \
	{#name, name, {[SANDBOX_CODEC] = codec, [SANDBOX_DEVICE] = device, [SANDBOX_HTTP] = http}},
#include "sandbox.def"
#undef CALL
};

/* Returns the errno of a call, 0, or the signal that ended it, below 0. */
static int attempt(enum sandbox sandbox, long (*call)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(20);
		prepare();
		if (sandbox_enter(sandbox, &access_of[sandbox]))
			_exit(201);
		_exit(call() < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* A sanitizer's build has no sandbox, but what is allowed must be. */
static void expect(const char *name, enum sandbox sandbox, long (*call)(void), int expected)
{
	int found;

	if (expected == ANY || (SANITIZER && expected != OK))
		return;
	found = attempt(sandbox, call);
	if (found != expected)
		fail_msg("%s gives %d (%s), not %d", name, found, found > 0 ? strerror(found) : "",
		         expected);
}

/* Returns the version of Landlock; 0 or less without it. */
static long landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

static void expect_all(enum sandbox sandbox)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (sandbox != SANDBOX_DEVICE || rows[i].expected[sandbox] != EACCES ||
		    landlock() > 0)
			expect(rows[i].name, sandbox, rows[i].call, rows[i].expected[sandbox]);
}

TEST(test_codec)
{
	expect_all(SANDBOX_CODEC);
}

/* The files that a device worker keeps must remain its own to change. */
TRY(cache_file, open("cache/file", O_RDWR | O_CREAT | O_TRUNC, 0600))
TRY(state_file, rename("state/there", "state/renamed"))
TRY(null_device, open("/dev/null", O_RDWR))

TEST(test_device)
{
	expect_all(SANDBOX_DEVICE);
	assert_int_equal(attempt(SANDBOX_DEVICE, cache_file), 0);
	assert_int_equal(attempt(SANDBOX_DEVICE, state_file), 0);
	assert_int_equal(attempt(SANDBOX_DEVICE, null_device), 0);
}

TEST(test_http)
{
	expect_all(SANDBOX_HTTP);
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

TRY(connect_collector, connect_to(COLLECTOR))
TRY(connect_another, connect_to(ANOTHER))
TRY(open_hosts, open("/etc/hosts", O_RDONLY))
TRY(open_own, open("there", O_RDONLY))
TRY(open_memory, open("/proc/self/mem", O_RDONLY))
TRY(list_home, open(".", O_RDONLY | O_DIRECTORY))

TEST(test_trace)
{
	static const struct {
		const char *name;
		long (*call)(void);
		int expected;
		int version; /* Landlock's, from which on it is so */
	} cases[] = {
	    {"open_hosts", open_hosts, OK, 0},
	    {"connect_collector", connect_collector, ECONNREFUSED, 0},
	    {"connect_another", connect_another, EACCES, 4},
	    {"listen_here", listen_here, EACCES, 0},
	    {"open_read", open_read, EACCES, 1},
	    {"open_own", open_own, EACCES, 1},
	    {"open_memory", open_memory, EACCES, 1},
	    {"list_home", list_home, EACCES, 1},
	    {"open_create", open_create, EACCES, 0},
	    {"run_program", run_program, EACCES, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!cases[i].version || landlock() >= cases[i].version)
			expect(cases[i].name, SANDBOX_TRACE, cases[i].call, cases[i].expected);
}
