/* A seccomp filter. Landlock would forbid TCP as well, without a way to allow one port alone where
 * names are resolved by TCP. */
#include "trace/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/enter_seccomp.h"
#include "common/log.h"
#include "common/sanitizer.h"

static const int allowed[] = {
    SCMP_SYS(writev),      SCMP_SYS(readv),       SCMP_SYS(stat),         SCMP_SYS(newfstatat),
    SCMP_SYS(statx),       SCMP_SYS(access),      SCMP_SYS(readlink),     SCMP_SYS(getdents64),
    SCMP_SYS(connect),     SCMP_SYS(bind),        SCMP_SYS(recvfrom),     SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),      SCMP_SYS(sendmsg),     SCMP_SYS(sendmmsg),     SCMP_SYS(shutdown),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),   SCMP_SYS(setsockopt),
    SCMP_SYS(socketpair),  SCMP_SYS(pipe2),       SCMP_SYS(eventfd2),     SCMP_SYS(ppoll),
    SCMP_SYS(fcntl),       SCMP_SYS(ioctl),       SCMP_SYS(rt_sigaction), SCMP_SYS(gettimeofday),
    SCMP_SYS(getuid),      SCMP_SYS(geteuid),     SCMP_SYS(uname),        SCMP_SYS(sysinfo),
};

static const struct restricted_call restricted[] = {
    {SCMP_SYS(open), 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {SCMP_SYS(openat), 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_UNIX},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_NETLINK},
};

static const struct allowed_calls calls = ALLOWED_CALLS(allowed, restricted);

enum error trace_sandbox_enter(void)
{
	static const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) || drop_privileges())
		return ERR_INTERNAL;
	if (SANITIZER)
		return ERR_OK;
	return allow_only(&calls);
}
