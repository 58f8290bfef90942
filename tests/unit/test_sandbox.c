/* Calls that workers may not make, tried from inside: each in a process of its own that has entered
 * the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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

static char directory[] = "/tmp/test_sandbox.XXXXXX";
static pid_t parent;

/* Descriptors as a worker has them, and some that it should not have. */
static void prepare(void)
{
	const struct rlimit files = {FILE_LIMIT, RLIM_INFINITY};
	int pair[2], ends[2];

	parent = getppid();
	if (chdir(directory) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || pipe(ends) ||
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

enum kind { CODEC, DEVICE, HTTP, KINDS };
enum { OK, ABORTED = -SIGABRT, ANY = 1000 };

static const struct {
	const char *name;
	long (*call)(void);
	int expected[KINDS];
} rows[] = {
#define CALL(name, codec, device, http, expression) {#name, name, {codec, device, http}},
#include "sandbox.def"
#undef CALL
};

static enum error enter_codec(void)
{
	return sandbox_enter(SANDBOX_CODEC, &(struct sandbox_access){.memory = UINT64_C(1) << 30});
}

static enum error enter_device(void)
{
	static const char *const writable[] = {"cache", NULL,   "nowhere",
	                                       "state", "/dev", "/proc/self"};

	return sandbox_enter(SANDBOX_DEVICE,
	                     &(struct sandbox_access){.writable = writable, .writable_count = 6});
}

static enum error enter_http(void)
{
	return sandbox_enter(SANDBOX_HTTP, &(struct sandbox_access){0});
}

/* Returns the errno of a call, 0, or the signal that ended it, below 0. */
static int attempt(enum error (*enter)(void), long (*call)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(20);
		prepare();
		if (enter())
			_exit(201);
		_exit(call() < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* A sanitizer's build has no sandbox, but what is allowed must be. */
static void expect(const char *name, enum error (*enter)(void), long (*call)(void), int expected)
{
	int found;

	if (expected == ANY || (SANITIZER && expected != OK))
		return;
	found = attempt(enter, call);
	if (found != expected)
		fail_msg("%s gives %d (%s), not %d", name, found, found > 0 ? strerror(found) : "",
		         expected);
}

/* Returns the version of Landlock; 0 or less without it. */
static long landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

static void expect_all(enum error (*enter)(void), enum kind kind)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (kind != DEVICE || rows[i].expected[kind] != EACCES || landlock() > 0)
			expect(rows[i].name, enter, rows[i].call, rows[i].expected[kind]);
}

TEST(test_codec)
{
	expect_all(enter_codec, CODEC);
}

TEST(test_device)
{
	expect_all(enter_device, DEVICE);
}

TEST(test_http)
{
	expect_all(enter_http, HTTP);
}

/* The files that a device worker keeps must remain its own to change. */
TRY(cache_file, open("cache/file", O_RDWR | O_CREAT | O_TRUNC, 0600))
TRY(state_file, rename("state/there", "state/renamed"))
TRY(null_device, open("/dev/null", O_RDWR))

TEST(test_device_directories)
{
	assert_int_equal(attempt(enter_device, cache_file), 0);
	assert_int_equal(attempt(enter_device, state_file), 0);
	assert_int_equal(attempt(enter_device, null_device), 0);
}

/* The trace worker's: nothing listens at either port. */
enum { COLLECTOR = 4318, ANOTHER = 4319 };

static enum error enter_trace(void)
{
	static const uint16_t ports[] = {53, COLLECTOR};

	return sandbox_enter(SANDBOX_TRACE,
	                     &(struct sandbox_access){.ports = ports, .port_count = 2});
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
			expect(cases[i].name, enter_trace, cases[i].call, cases[i].expected);
}

static bool make_directory_tree(void)
{
	char path[64];

	if (!mkdtemp(directory) || chdir(directory) || mkdir("cache", 0700) || mkdir("state", 0700))
		return false;
	snprintf(path, sizeof path, "%s/state/there", directory);
	return !close(open(path, O_CREAT | O_WRONLY, 0600)) &&
	       !close(open("there", O_CREAT | O_WRONLY, 0600));
}

static bool remove_directory_tree(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", directory);
	return !chdir("/") && !system(command);
}

int main(void)
{
	int failed;

	if (!make_directory_tree())
		return 1;
	failed = unit_run();
	return failed || !remove_directory_tree();
}
