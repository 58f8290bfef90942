/* Limits, Landlock where the kernel has it, and a seccomp filter.
 *
 * The hard part is how forbidden calls fail. They do not kill: GLib, malloc, codecs and drivers try
 * to open configuration files and work without them. A filter sees numbers, not what pointers point
 * to. So calls that take a path are forbidden, even where the C library uses one (see fstat()
 * below); calls that act on processes or descriptors are allowed only with this process's id or the
 * socket's number.
 *
 * OpenCL drivers are large and need different calls: for them there is a list of what is forbidden.
 * No driver is known to need a call on that list; confine-devices=no is for one that does. */
#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/log.h"
#include "base/memfd.h"
#include "wire/network.h"
#include "wire/wire.h"

enum { CODEC_FDS_MAX = 64, CODEC_THREADS_MAX = 8192 };

_Static_assert(HTTP_OWN_FDS >= 2 * HTTP_SOCKETS_MAX, "listening sockets and a few more");

/* A call whose argument, except for the bits outside the mask, has a value; and whose first
 * argument, a descriptor, is not below `from`: a power of two, 0: any. */
struct restricted_call {
	const char *call;
	unsigned argument;
	uint64_t mask, value;
	uint64_t from;
};

/* Threads: exactly the flags of pthread_create(), so that no process and no namespace begins. */
static const char *const common_calls[] = {
    /* open files */
    "read", "write", "pread64", "lseek", "close", "fstat", "poll",
    /* memory, but none that is executable */
    "munmap", "madvise", "mremap", "brk",
    /* threads and signals */
    "futex", "set_robust_list", "rseq", "rt_sigprocmask", "rt_sigreturn", "restart_syscall",
    "sched_yield", "gettid", "getpid",
    /* clocks, and the end */
    "clock_nanosleep", "clock_gettime", "getrandom", "exit", "exit_group", NULL};

static const struct restricted_call common_restricted[] = {
    {"mmap", 2, PROT_EXEC, 0, 0},
    {"mprotect", 2, PROT_EXEC, 0, 0},
    {"clone", 0, UINT64_MAX,
     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD |
         CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
     0},
    {.call = NULL},
};

static const char *const codec_calls[] = {"pwrite64", "rt_sigaction", "dup",
                                          "sysinfo",  "ppoll",        NULL};

static const struct restricted_call codec_restricted[] = {
    {"sendmsg", 0, UINT32_MAX, WORKER_SOCKET, 0},
    {"recvmsg", 0, UINT32_MAX, WORKER_SOCKET, 0},
    {"prctl", 0, UINT32_MAX, PR_SET_NAME, 0},
    {"sched_getaffinity", 0, UINT32_MAX, 0, 0},
    /* An open file's flags are shared with the process that passed it: they may only be read. */
    {"fcntl", 1, UINT32_MAX, F_GETFL, 0},
    {"fcntl", 1, UINT32_MAX, F_GETFD, 0},
    {"fcntl", 1, UINT32_MAX, F_SETFD, 0},
    {"fcntl", 1, UINT32_MAX, F_DUPFD_CLOEXEC, 0},
    {.call = NULL},
};

static const char *const http_calls[] = {
    "writev",     "pwrite64",       "memfd_create",    "accept4",         "recvfrom",
    "recvmsg",    "sendto",         "sendmsg",         "sendfile",        "getsockname",
    "getsockopt", "epoll_create1",  "epoll_ctl",       "epoll_wait",      "epoll_pwait",
    "eventfd2",   "timerfd_create", "timerfd_settime", "timerfd_gettime", "getrusage",
    NULL};

/* A listening socket is shared with the front: calls that would change it for both are allowed only
 * for the worker's own descriptors, and these may not get the number of such a socket. */
static const struct restricted_call http_restricted[] = {
    {"fcntl", 1, UINT32_MAX, F_GETFL, 0},
    {"fcntl", 1, UINT32_MAX, F_GETFD, 0},
    {"fcntl", 1, UINT32_MAX, F_SETFD, 0},
    {"fcntl", 1, UINT32_MAX, F_DUPFD_CLOEXEC, HTTP_OWN_FDS},
    {"ioctl", 1, UINT32_MAX, FIONREAD, 0},
    {"ioctl", 1, UINT32_MAX, SIOCOUTQ, 0},
    {"setsockopt", 1, UINT32_MAX, IPPROTO_TCP, HTTP_OWN_FDS}, /* TCP_NODELAY, TCP_CORK */
    {"shutdown", 1, 0, 0, HTTP_OWN_FDS},
    {.call = NULL},
};

static const char *const trace_calls[] = {
    "writev",      "readv",       "stat",         "newfstatat",
    "statx",       "access",      "readlink",     "getdents64",
    "connect",     "bind",        "recvfrom",     "recvmsg",
    "sendto",      "sendmsg",     "sendmmsg",     "shutdown",
    "getsockname", "getpeername", "getsockopt",   "setsockopt",
    "socketpair",  "pipe2",       "eventfd2",     "ppoll",
    "fcntl",       "ioctl",       "rt_sigaction", "gettimeofday",
    "getuid",      "geteuid",     "uname",        "sysinfo",
    NULL};

static const struct restricted_call trace_restricted[] = {
    {"open", 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY, 0},
    {"openat", 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY, 0},
    {"socket", 0, UINT32_MAX, AF_INET, 0},
    {"socket", 0, UINT32_MAX, AF_INET6, 0},
    {"socket", 0, UINT32_MAX, AF_UNIX, 0},
    {"socket", 0, UINT32_MAX, AF_NETLINK, 0},
    {.call = NULL},
};

/* A file that is replaced meanwhile cannot be opened again, except in an allowed directory. */
static const char *const trace_readable[] = {
    /* names */
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
    "/etc/services", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
    /* certificates */
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/usr/lib/ssl", "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates", "/etc/pki/tls", "/etc/pki/ca-trust", NULL};

static const char *const device_denied[] = {
    /* other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "pidfd_send_signal",
    "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    /* mounts and namespaces */
    "mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree", "move_mount",
    "fsopen", "fsmount", "fspick", "open_by_handle_at", "fanotify_init", "quotactl", "acct",
    "swapon", "swapoff",
    /* the kernel and the machine */
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "keyctl", "add_key", "request_key", "syslog", "settimeofday",
    "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "iopl", "ioperm",
    "vhangup", NULL};

/* Commands that make the kernel send signals on behalf of this process. */
static const struct restricted_call device_denied_commands[] = {
    {"fcntl", 1, UINT32_MAX, F_SETOWN, 0},
    {"fcntl", 1, UINT32_MAX, F_SETOWN_EX, 0},
    {"fcntl", 1, UINT32_MAX, F_SETSIG, 0},
    {"fcntl", 1, UINT32_MAX, F_SETLEASE, 0},
    {"fcntl", 1, UINT32_MAX, F_NOTIFY, 0},
    {"ioctl", 1, UINT32_MAX, FIOSETOWN, 0},
    {"ioctl", 1, UINT32_MAX, SIOCSPGRP, 0},
    {"ioctl", 1, UINT32_MAX, TIOCSTI, 0},
    {.call = NULL},
};

/* Without calls, all are allowed except those denied to a device worker, which also opens any file,
 * and writes files beneath the directories of the access. */
static const struct row {
	const char *const *calls;
	const struct restricted_call *restricted;
	const char *const *readable; /* files, and directories with all beneath */
	bool bounded;                /* has a limit of descriptors, threads and memory */
} rows[] = {
    [SANDBOX_CODEC] = {.calls = codec_calls, .restricted = codec_restricted, .bounded = true},
    [SANDBOX_DEVICE] = {0},
    [SANDBOX_HTTP] = {.calls = http_calls, .restricted = http_restricted},
    [SANDBOX_TRACE] = {.calls = trace_calls,
                       .restricted = trace_restricted,
                       .readable = trace_readable},
};

/* The C library's fstat() may use a call with an empty path, which a filter cannot distinguish from
 * other paths. These replace it, for libraries too. */
int fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

int fstat64(int fd, struct stat64 *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

/* Each version of Landlock adds access rights (landlock(7)), and headers lag behind: each right is
 * requested only from the version that introduced it. */
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2 };

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_AND_MAKE = 0x1ff << 4,
	FS_REFER = 1 << 13,
	FS_TRUNCATE = 1 << 14,
	FS_IOCTL_DEVICE = 1 << 15,
	NET_BIND_AND_CONNECT_TCP = 3,
	NET_CONNECT_TCP = 2,
	SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3,
};

struct ruleset {
	uint64_t files, net, scopes;
};

struct beneath {
	uint64_t allowed;
	int32_t directory;
} __attribute__((packed));

static bool allow_beneath(int ruleset, const char *path, uint64_t files)
{
	struct beneath rule = {.allowed = files, .directory = open(path, O_PATH | O_CLOEXEC)};
	struct stat status;
	long failed;

	if (rule.directory < 0)
		return true;
	if (!fstat(rule.directory, &status) && !S_ISDIR(status.st_mode))
		rule.allowed &= FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE;
	failed = syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
	close(rule.directory);
	return !failed;
}

/* Files, TCP, and signals and abstract sockets to processes outside, as far as the kernel's version
 * of Landlock (*abi, 0: none, which is no error) can forbid them. */
static bool enter_landlock(const struct row *row, const struct sandbox_access *access, int *abi)
{
	const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset rules = {.files = FS_WRITE_FILE | FS_REMOVE_AND_MAKE};
	bool done = true;
	int fd;

	*abi = version > 0 ? (int)version : 0;
	if (!*abi)
		return true;
	if (*abi >= 2)
		rules.files |= FS_REFER;
	if (*abi >= 3)
		rules.files |= FS_TRUNCATE;
	if (*abi >= 4)
		rules.net = NET_BIND_AND_CONNECT_TCP;
	if (*abi >= 6)
		rules.scopes = SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS;
	if (row->calls)
		rules.files |=
		    FS_EXECUTE | FS_READ_FILE | FS_READ_DIR | (*abi >= 5 ? FS_IOCTL_DEVICE : 0);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules,
	                  *abi < 4   ? offsetof(struct ruleset, net)
	                  : *abi < 6 ? offsetof(struct ruleset, scopes)
	                             : sizeof rules,
	                  0);
	if (fd < 0)
		return false;
	for (size_t i = 0; done && !row->calls && i < access->writable_count; i++)
		if (access->writable[i])
			done = allow_beneath(fd, access->writable[i], rules.files);
	for (size_t i = 0; done && row->readable && row->readable[i]; i++)
		done = allow_beneath(fd, row->readable[i], FS_READ_FILE | FS_READ_DIR);
	for (size_t i = 0; done && rules.net && i < access->port_count; i++) {
		const struct {
			uint64_t allowed, port;
		} rule = {NET_CONNECT_TCP, access->ports[i]};

		done = !syscall(SYS_landlock_add_rule, fd, RULE_NET_PORT, &rule, 0);
	}
	done = done && !syscall(SYS_landlock_restrict_self, fd, 0);
	close(fd);
	return done;
}

/* Adds both lists to a filter; fails if libseccomp does not know a name. */
static int add_calls(scmp_filter_ctx filter, uint32_t action, const char *const *calls,
                     const struct restricted_call *restricted)
{
	int failed = 0;

	for (; *calls; calls++)
		failed |= seccomp_rule_add(filter, action, seccomp_syscall_resolve_name(*calls), 0);
	for (const struct restricted_call *one = restricted; one->call; one++) {
		const int call = seccomp_syscall_resolve_name(one->call);
		uint64_t bit = one->from;

		/* The kernel reads a descriptor from the lower half of its register, so the whole
		 * cannot be compared: one of the higher bits must be set. */
		do {
			failed |= seccomp_rule_add(
			    filter, action, call, bit ? 2 : 1,
			    SCMP_CMP(one->argument, SCMP_CMP_MASKED_EQ, one->mask, one->value),
			    SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
			bit <<= 1;
		} while (bit && bit <= INT32_MAX);
	}
	return failed;
}

/* SEALS_FINAL but no other seals are allowed, and what abort() needs. clone3 returns ENOSYS, so
 * that the C library falls back to clone, whose flags a filter can check. */
static int allow_only(scmp_filter_ctx filter, const struct row *row)
{
	int failed = add_calls(filter, SCMP_ACT_ALLOW, common_calls, common_restricted) |
	             add_calls(filter, SCMP_ACT_ALLOW, row->calls, row->restricted);

	failed |=
	    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 2,
	                     SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)F_ADD_SEALS),
	                     SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)SEALS_FINAL));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2,
	                           SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0),
	                           SCMP_A2(SCMP_CMP_EQ, SIGABRT, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return failed;
}

static int deny_some(scmp_filter_ctx filter)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	const scmp_datum_t self = (scmp_datum_t)getpid();
	int failed = add_calls(filter, refuse, device_denied, device_denied_commands);

	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(kill), 1, SCMP_A0(SCMP_CMP_NE, self, 0));
	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, self, 0));
	/* A limit on processor time can end another process, like a signal. */
	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
	                           SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0));
	return failed;
}

static bool enter_seccomp(const struct row *row)
{
	scmp_filter_ctx filter = seccomp_init(row->calls ? SCMP_ACT_ERRNO(EACCES) : SCMP_ACT_ALLOW);
	int failed;

	if (!filter)
		return false;
	failed = row->calls ? allow_only(filter, row) : deny_some(filter);
	if (!failed)
		failed = seccomp_load(filter);
	seccomp_release(filter);
	errno = failed < 0 ? -failed : EINVAL;
	return !failed;
}

static uint64_t memory_limit = UINT64_MAX;

uint64_t sandbox_memory(void)
{
	return memory_limit;
}

/* Lowers a limit; leaves it if it is already lower. */
static int limit(int resource, uint64_t value)
{
	struct rlimit both;

	if (getrlimit((__rlimit_resource_t)resource, &both))
		return -1;
	if (both.rlim_max > value)
		both.rlim_max = value;
	if (both.rlim_cur > both.rlim_max)
		both.rlim_cur = both.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &both);
}

/* The process stays dumpable (PR_SET_DUMPABLE), because otherwise, with the unit's ProtectProc=,
 * the front could not account for its memory. Landlock and their own filter keep device workers,
 * which run as the same user, from reading it. */
enum error sandbox_enter(enum sandbox sandbox, const struct sandbox_access *access)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
	const struct row *row = &rows[sandbox];
	int abi;

	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails */
	if (limit(RLIMIT_CORE, 0) || (row->bounded && (limit(RLIMIT_NOFILE, CODEC_FDS_MAX) ||
	                                               limit(RLIMIT_NPROC, CODEC_THREADS_MAX))))
		return ERR_INTERNAL;
	/* Capabilities go for good, without libcap. A service manager may have dropped all of them,
	 * and forbidden capset(). */
	if (row->calls && (syscall(SYS_capget, &header, held) ||
	                   (memcmp(held, none, sizeof none) && syscall(SYS_capset, &header, none))))
		return ERR_INTERNAL;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return ERR_INTERNAL;
	/* Sanitizers reserve terabytes of address space, read /proc, and trace themselves. */
	if (SANITIZER)
		return ERR_OK;
	if ((row->bounded && limit(RLIMIT_DATA, access->memory)) ||
	    !enter_landlock(row, access, &abi) || !enter_seccomp(row))
		return ERR_INTERNAL;
	if (row->bounded)
		memory_limit = access->memory;
	log_event(row->calls ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, NULL, "confined: seccomp, %s%d",
	          abi ? "Landlock " : "no Landlock: ", abi);
	return ERR_OK;
}
