/* A seccomp filter, and Landlock where the kernel has it: what is left are the files by which names
 * are resolved and certificates checked, and TCP to the collector and to servers of names. Before
 * Landlock's version 4 TCP has no bounds, and UDP never has. */
#include "trace/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/enter_seccomp.h"
#include "common/landlock.h"
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
    {SCMP_SYS(open), 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY, 0},
    {SCMP_SYS(openat), 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY, 0},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET, 0},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6, 0},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_UNIX, 0},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_NETLINK, 0},
};

static const struct allowed_calls calls = ALLOWED_CALLS(allowed, restricted);

/* A file that is replaced while the worker runs is not found again, but in directories it is. */
static const char *const readable[] = {
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/usr/lib/ssl",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
};

enum error trace_sandbox_enter(const uint16_t *ports, size_t count)
{
	static const struct rlimit none = {0, 0};
	const struct landlock_client client = {readable, sizeof readable / sizeof *readable, ports,
	                                       count};
	int abi;

	if (setrlimit(RLIMIT_CORE, &none) || drop_privileges())
		return ERR_INTERNAL;
	if (SANITIZER)
		return ERR_OK;
	if (landlock_enter_client(&client, &abi) || allow_only(&calls))
		return ERR_INTERNAL;
	log_debug("in a sandbox: limits, seccomp, %s%d", abi ? "Landlock " : "no Landlock: ", abi);
	return ERR_OK;
}
