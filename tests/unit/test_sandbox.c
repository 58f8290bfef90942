/* Calls that workers may not make, tried from inside: each in a process of its own that has entered
 * the sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* The calls. Each returns below 0, with errno set, if it is refused. ----------------------------
 */

#define TRY(name, expression)                                                                      \
	static long name(void)                                                                     \
	{                                                                                          \
		return (long)(expression);                                                         \
	}

TRY(kill_parent, kill(parent, 0))
TRY(tgkill_parent, syscall(SYS_tgkill, parent, parent, 0))
TRY(tgkill_parent_abort, syscall(SYS_tgkill, parent, parent, SIGABRT))
TRY(tgkill_self_other, syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP))
TRY(tkill_parent, syscall(SYS_tkill, parent, 0))
TRY(sigqueue_parent, syscall(SYS_rt_sigqueueinfo, parent, SIGUSR1, &(siginfo_t){.si_code = -1}))
TRY(pidfd_parent, syscall(SYS_pidfd_open, parent, 0))
TRY(set_owner, fcntl(OTHER_SOCKET, F_SETOWN, parent))
TRY(set_owner_ex, fcntl(OTHER_SOCKET, F_SETOWN_EX, &(struct f_owner_ex){F_OWNER_PID, parent}))
TRY(set_owner_ioctl, ioctl(OTHER_SOCKET, FIOSETOWN, &parent))
TRY(set_signal, fcntl(PIPE_FD, F_SETSIG, SIGKILL))
TRY(set_async, fcntl(PIPE_FD, F_SETFL, O_ASYNC))
TRY(set_nonblock, fcntl(PIPE_FD, F_SETFL, O_NONBLOCK))
TRY(set_lease, fcntl(FILE_FD, F_SETLEASE, F_RDLCK))
TRY(notify, fcntl(FILE_FD, F_NOTIFY, DN_MODIFY))
TRY(add_seals, fcntl(FILE_FD, F_ADD_SEALS, F_SEAL_SEAL))
TRY(seal_final, fcntl(FILE_FD, F_ADD_SEALS, SEALS_FINAL))
TRY(get_flags, fcntl(FILE_FD, F_GETFL))
TRY(dumpable, prctl(PR_SET_DUMPABLE, 1))
TRY(death_signal, prctl(PR_SET_PDEATHSIG, 0))
TRY(ptracer, prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY))
TRY(thread_name, prctl(PR_SET_NAME, "name"))
TRY(stat_path, syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &(struct stat){0}, 0))
TRY(stat_empty_path, syscall(SYS_newfstatat, FILE_FD, "", &(struct stat){0}, AT_EMPTY_PATH))
TRY(stat_file, fstat(FILE_FD, &(struct stat){0}))
TRY(stat_extended, syscall(SYS_statx, AT_FDCWD, "/etc/passwd", 0, 0, (char[256]){0}))
TRY(accessible, access("/etc/passwd", F_OK))
TRY(truncate_file, ftruncate(FILE_FD, 0))
TRY(open_read, open("/etc/passwd", O_RDONLY))
TRY(open_create, open("file", O_RDWR | O_CREAT, 0600))
TRY(make_directory, mkdir("directory", 0700))
TRY(remove_file, unlink("there"))
TRY(rename_file, rename("there", "elsewhere"))
TRY(anonymous_file, memfd_create("more", 0))
TRY(sealed_file, -(long)memfd_sealed("body", "x", 1, &(int){0}))
TRY(inet_socket, socket(AF_INET, SOCK_STREAM, 0))
TRY(netlink_socket, socket(AF_NETLINK, SOCK_RAW, 0))
TRY(unix_socket, socket(AF_UNIX, SOCK_STREAM, 0))
TRY(send_to_front, message(WORKER_SOCKET))
TRY(send_elsewhere, message(OTHER_SOCKET))
TRY(sendto_elsewhere, sendto(OTHER_SOCKET, "x", 1, 0, NULL, 0))
TRY(shut_down, shutdown(OTHER_SOCKET, SHUT_RDWR))
TRY(shut_down_listening, shutdown(LISTENING, SHUT_RD))
TRY(shut_down_long, syscall(SYS_shutdown, INT64_C(1) << 32 | LISTENING, SHUT_RD))
TRY(shut_down_own, shutdown(OWN_SOCKET, SHUT_RD))
TRY(listen_again, listen(LISTENING, 0))
TRY(connect_again, connect(LISTENING, &(struct sockaddr){.sa_family = AF_UNSPEC}, 16))
TRY(set_blocking, ioctl(LISTENING, FIONBIO, &(int){0}))
TRY(set_blocking_fcntl, fcntl(LISTENING, F_SETFL, 0))
TRY(set_timeout,
    setsockopt(LISTENING, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){1, 0}, sizeof(struct timeval)))
TRY(set_linger,
    setsockopt(LISTENING, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)))
TRY(set_filter, setsockopt(LISTENING, SOL_SOCKET, SO_LOCK_FILTER, &(int){1}, sizeof(int)))
TRY(set_hops, setsockopt(LISTENING, IPPROTO_IP, IP_TTL, &(int){1}, sizeof(int)))
TRY(set_hops_6, setsockopt(LISTENING, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &(int){1}, sizeof(int)))
TRY(set_defer, setsockopt(LISTENING, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){9}, sizeof(int)))
TRY(set_defer_long, syscall(SYS_setsockopt, INT64_C(1) << 32 | LISTENING, IPPROTO_TCP,
                            TCP_DEFER_ACCEPT, &(int){9}, sizeof(int)))
TRY(set_no_delay_own, setsockopt(OWN_SOCKET, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
TRY(duplicate_listening, fcntl(LISTENING, F_DUPFD_CLOEXEC, HTTP_OWN_FDS))
TRY(duplicate_listening_plain, fcntl(LISTENING, F_DUPFD, HTTP_OWN_FDS))
TRY(duplicate_own, fcntl(OWN_SOCKET, F_DUPFD_CLOEXEC, 0))
TRY(move_listening, dup2(LISTENING, HTTP_OWN_FDS))
TRY(move_listening_3, dup3(LISTENING, HTTP_OWN_FDS, O_CLOEXEC))
TRY(socket_pair, socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}))
TRY(map, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
TRY(map_code, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
TRY(make_code, mprotect(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096,
                        PROT_READ | PROT_EXEC))
TRY(fork_plain, syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
TRY(fork_shared, syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0))
TRY(new_user_space, syscall(SYS_unshare, CLONE_NEWUSER))
TRY(run_program, execl("/bin/true", "true", NULL))
TRY(trace_parent, ptrace(PTRACE_ATTACH, parent, 0, 0))
TRY(read_parent,
    syscall(SYS_process_vm_readv, parent, &(struct iovec){0}, 1, &(struct iovec){0}, 1, 0))
TRY(open_parent,
    open((snprintf(directory, sizeof directory, "/proc/%d/mem", parent), directory), O_RDWR))
TRY(open_parent_to_read,
    open((snprintf(directory, sizeof directory, "/proc/%d/mem", parent), directory), O_RDONLY))
TRY(affinity_parent, syscall(SYS_sched_getaffinity, parent, 128, (char[128]){0}))
TRY(raise_limit, setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}))
TRY(limit_parent, syscall(SYS_prlimit64, parent, RLIMIT_CORE, &(uint64_t[2]){0, 0}, NULL))
TRY(get_limit, getrlimit(RLIMIT_NOFILE, &(struct rlimit){0}))
TRY(ring, syscall(SYS_io_uring_setup, 1, (char[256]){0}))
TRY(bpf, syscall(SYS_bpf, 0, NULL, 0))
TRY(performance, syscall(SYS_perf_event_open, (char[256]){0}, 0, -1, -1, 0))
TRY(fault_handler, syscall(SYS_userfaultfd, 0))
TRY(keys, syscall(SYS_keyctl, 0, -3, 0, 0, 0))
TRY(mount_something, syscall(SYS_mount, "none", directory, "tmpfs", 0, NULL))
TRY(change_root, chroot(directory))
TRY(write_beyond, pwrite(FILE_FD, "x", 1, FILE_LIMIT))
TRY(write_within, pwrite(FILE_FD, "x", 1, FILE_LIMIT - 1))

static long start_thread(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, nothing, NULL);
	return errno ? -1 : pthread_join(thread, NULL);
}

static long many_descriptors(void)
{
	for (int i = 0; i < 100; i++)
		if (dup(FILE_FD) < 0)
			return -1;
	return 0;
}

static long abort_self(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static long dump_core(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_CORE, &limit) || limit.rlim_max ? -1 : 0;
}

/* ------------------------------------------------------------------------------------------------
 */

enum outcome { OK = 0, ABORTED = -SIGABRT };

struct row {
	const char *name;
	long (*call)(void);
	int codec, device, http; /* 0, the errno, or a signal below 0 */
};

enum { ANY = 1000 }; /* not tried */

#define ROW(call, codec, device, http)                                                             \
	{                                                                                          \
#call, call, codec, device, http                                                   \
	}

static const struct row rows[] = {
    ROW(kill_parent, EACCES, EPERM, EACCES),
    ROW(tgkill_parent, EACCES, EPERM, EACCES),
    ROW(tgkill_parent_abort, EACCES, EPERM, EACCES),
    ROW(tgkill_self_other, EACCES, ANY, EACCES),
    ROW(tkill_parent, EACCES, EPERM, EACCES),
    ROW(sigqueue_parent, EACCES, EPERM, EACCES),
    ROW(pidfd_parent, EACCES, ANY, EACCES),
    ROW(set_owner, EACCES, EPERM, EACCES),
    ROW(set_owner_ex, EACCES, EPERM, EACCES),
    ROW(set_owner_ioctl, EACCES, EPERM, EACCES),
    ROW(set_signal, EACCES, EPERM, EACCES),
    ROW(set_async, EACCES, ANY, EACCES),
    ROW(set_nonblock, EACCES, OK, EACCES),
    ROW(set_lease, EACCES, EPERM, EACCES),
    ROW(notify, EACCES, EPERM, EACCES),
    ROW(add_seals, EACCES, ANY, EACCES),
    ROW(seal_final, OK, ANY, OK),
    ROW(get_flags, OK, OK, OK),
    ROW(dumpable, EACCES, ANY, EACCES),
    ROW(death_signal, EACCES, ANY, EACCES),
    ROW(ptracer, EACCES, ANY, EACCES),
    ROW(thread_name, OK, OK, EACCES),
    ROW(stat_path, EACCES, OK, EACCES),
    ROW(stat_empty_path, EACCES, OK, EACCES),
    ROW(stat_file, OK, OK, OK),
    ROW(stat_extended, EACCES, OK, EACCES),
    ROW(accessible, EACCES, OK, EACCES),
    ROW(truncate_file, EACCES, OK, EACCES),
    ROW(open_read, EACCES, OK, EACCES),
    ROW(open_create, EACCES, EACCES, EACCES),
    ROW(make_directory, EACCES, EACCES, EACCES),
    ROW(remove_file, EACCES, EACCES, EACCES),
    ROW(rename_file, EACCES, EACCES, EACCES),
    ROW(anonymous_file, EACCES, OK, OK),
    ROW(sealed_file, EACCES, OK, OK),
    ROW(inet_socket, EACCES, EAFNOSUPPORT, EACCES),
    ROW(netlink_socket, EACCES, EAFNOSUPPORT, EACCES),
    ROW(unix_socket, EACCES, OK, EACCES),
    ROW(send_to_front, OK, OK, OK),
    ROW(send_elsewhere, EACCES, OK, OK),
    ROW(sendto_elsewhere, EACCES, OK, OK),
    ROW(shut_down, EACCES, OK, EACCES),
    ROW(shut_down_listening, EACCES, ANY, EACCES),
    ROW(shut_down_long, EACCES, ANY, EACCES),
    ROW(shut_down_own, EACCES, ANY, OK),
    ROW(listen_again, EACCES, ANY, EACCES),
    ROW(connect_again, EACCES, ANY, EACCES),
    ROW(set_blocking, EACCES, ANY, EACCES),
    ROW(set_blocking_fcntl, EACCES, ANY, EACCES),
    ROW(set_timeout, EACCES, ANY, EACCES),
    ROW(set_linger, EACCES, ANY, EACCES),
    ROW(set_filter, EACCES, ANY, EACCES),
    ROW(set_hops, EACCES, ANY, EACCES),
    ROW(set_hops_6, EACCES, ANY, EACCES),
    ROW(set_defer, EACCES, ANY, EACCES),
    ROW(set_defer_long, EACCES, ANY, EACCES),
    ROW(set_no_delay_own, EACCES, ANY, OK),
    ROW(duplicate_listening, ANY, ANY, EACCES),
    ROW(duplicate_listening_plain, ANY, ANY, EACCES),
    ROW(duplicate_own, ANY, ANY, OK),
    ROW(move_listening, ANY, ANY, EACCES),
    ROW(move_listening_3, EACCES, ANY, EACCES),
    ROW(socket_pair, EACCES, ANY, EACCES),
    ROW(map, OK, OK, OK),
    ROW(map_code, EACCES, OK, EACCES),
    ROW(make_code, EACCES, OK, EACCES),
    ROW(start_thread, OK, OK, OK),
    ROW(fork_plain, EACCES, ANY, EACCES),
    ROW(fork_shared, EACCES, ANY, EACCES),
    ROW(new_user_space, EACCES, EPERM, EACCES),
    ROW(run_program, EACCES, OK, EACCES),
    ROW(trace_parent, EACCES, EPERM, EACCES),
    ROW(read_parent, EACCES, EPERM, EACCES),
    ROW(open_parent, EACCES, EACCES, EACCES),
    ROW(open_parent_to_read, EACCES, EACCES, EACCES),
    ROW(affinity_parent, EACCES, OK, EACCES),
    ROW(raise_limit, EACCES, ANY, EACCES),
    ROW(limit_parent, EACCES, EPERM, EACCES),
    ROW(get_limit, ANY, OK, ANY),
    ROW(ring, EACCES, EPERM, EACCES),
    ROW(bpf, EACCES, EPERM, EACCES),
    ROW(performance, EACCES, EPERM, EACCES),
    ROW(fault_handler, EACCES, EPERM, EACCES),
    ROW(keys, EACCES, EPERM, EACCES),
    ROW(mount_something, EACCES, EPERM, EACCES),
    ROW(change_root, EACCES, EPERM, EACCES),
    ROW(write_beyond, EFBIG, ANY, EFBIG),
    ROW(write_within, OK, ANY, OK),
    ROW(many_descriptors, EMFILE, ANY, EACCES),
    ROW(abort_self, ABORTED, ABORTED, ABORTED),
    ROW(dump_core, EACCES, OK, EACCES),
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

static void expect(const struct row *row, const char *who, int found, int expected)
{
	if (found != expected)
		fail_msg("%s: %s gives %d (%s), not %d", who, row->name, found,
		         found > 0 ? strerror(found) : "", expected);
}

/* A sanitizer's build has no sandbox, but what is allowed must be. */
static bool expected_here(int expected)
{
	return expected != ANY && (!SANITIZER || expected == OK);
}

static void test_codec(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (expected_here(rows[i].codec))
			expect(&rows[i], "codec", attempt(enter_codec, rows[i].call),
			       rows[i].codec);
}

static void test_http(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (expected_here(rows[i].http))
			expect(&rows[i], "http", attempt(enter_http, rows[i].call), rows[i].http);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static void test_device(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (expected_here(rows[i].device) && (rows[i].device != EACCES || has_landlock()))
			expect(&rows[i], "device", attempt(enter_device, rows[i].call),
			       rows[i].device);
}

/* The files that a device worker keeps must remain its own to change. */
TRY(cache_file, open("cache/file", O_RDWR | O_CREAT | O_TRUNC, 0600))
TRY(state_file, rename("state/there", "state/renamed"))
TRY(null_device, open("/dev/null", O_RDWR))

static void test_device_directories(void **state)
{
	(void)state;
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

static void test_trace(void **state)
{
	static const struct {
		struct row row;
		int abi; /* version of Landlock from which on it is so */
	} cases[] = {
	    {ROW(open_hosts, OK, ANY, ANY), 0},
	    {ROW(connect_collector, ECONNREFUSED, ANY, ANY), 0},
	    {ROW(connect_another, EACCES, ANY, ANY), 4},
	    {ROW(listen_here, EACCES, ANY, ANY), 0},
	    {ROW(open_read, EACCES, ANY, ANY), 1},
	    {ROW(open_own, EACCES, ANY, ANY), 1},
	    {ROW(open_memory, EACCES, ANY, ANY), 1},
	    {ROW(list_home, EACCES, ANY, ANY), 1},
	    {ROW(open_create, EACCES, ANY, ANY), 0},
	    {ROW(run_program, EACCES, ANY, ANY), 0},
	};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (expected_here(cases[i].row.codec) && (!cases[i].abi || abi >= cases[i].abi))
			expect(&cases[i].row, "trace", attempt(enter_trace, cases[i].row.call),
			       cases[i].row.codec);
}

static int make_directory_tree(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(directory) || chdir(directory) || mkdir("cache", 0700) || mkdir("state", 0700))
		return -1;
	snprintf(path, sizeof path, "%s/state/there", directory);
	return close(open(path, O_CREAT | O_WRONLY, 0600)) ||
	       close(open("there", O_CREAT | O_WRONLY, 0600));
}

static int remove_directory_tree(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return chdir("/") || system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_codec), cmocka_unit_test(test_device),
	    cmocka_unit_test(test_http),  cmocka_unit_test(test_device_directories),
	    cmocka_unit_test(test_trace),
	};

	return cmocka_run_group_tests(tests, make_directory_tree, remove_directory_tree);
}
