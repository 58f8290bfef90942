/* A seccomp filter. Landlock would forbid TCP as well, without a way to allow one port alone where
 * names are resolved by TCP. */
#include "trace/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/capabilities.h"
#include "common/enter_seccomp.h"
#include "common/log.h"
#include "common/sanitizer.h"

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(stat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(access),
    SCMP_SYS(readlink),
    SCMP_SYS(getdents64),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(shutdown),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
    SCMP_SYS(getsockopt),
    SCMP_SYS(setsockopt),
    SCMP_SYS(socketpair),
    SCMP_SYS(pipe2),
    SCMP_SYS(eventfd2),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(fcntl),
    SCMP_SYS(ioctl),
    SCMP_SYS(futex),
    SCMP_SYS(munmap),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(getrandom),
    SCMP_SYS(sched_yield),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
};

static const struct restricted_call restricted[] = {
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    {SCMP_SYS(open), 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {SCMP_SYS(openat), 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_UNIX},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_NETLINK},
    RESTRICTED_CLONE,
};

static int add_rules(scmp_filter_ctx filter)
{
	return allow_calls(filter, allowed, sizeof allowed / sizeof *allowed, restricted,
	                   sizeof restricted / sizeof *restricted);
}

enum error trace_sandbox_enter(void)
{
	static const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) || capabilities_drop() ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return ERR_INTERNAL;
	if (SANITIZER)
		return ERR_OK;
	return enter_seccomp(SCMP_ACT_ERRNO(EACCES), add_rules);
}
