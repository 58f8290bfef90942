/* Limits, Landlock where the kernel has it, and a seccomp filter. What libraries ask for in vain
 * fails with EACCES, which they bear. */
#include "http/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <seccomp.h>

#include "common/enter_seccomp.h"
#include "common/fstat.h"
#include "common/landlock.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/sanitizer.h"

static const int allowed[] = {
    SCMP_SYS(writev),          SCMP_SYS(pwrite64),       SCMP_SYS(memfd_create),
    SCMP_SYS(accept4),         SCMP_SYS(recvfrom),       SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),          SCMP_SYS(sendmsg),        SCMP_SYS(sendfile),
    SCMP_SYS(getsockname),     SCMP_SYS(getsockopt),     SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),       SCMP_SYS(epoll_wait),     SCMP_SYS(epoll_pwait),
    SCMP_SYS(eventfd2),        SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime), SCMP_SYS(getrusage),
};

/* Calls that are allowed with a particular argument only. A listening socket is shared with the
 * front: what would change it for all is allowed for the worker's own descriptors, and it may not
 * become one of those. */
static const struct restricted_call restricted[] = {
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFD, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFD, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_DUPFD_CLOEXEC, HTTP_OWN_FDS},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, FIONREAD, 0},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, SIOCOUTQ, 0},
    {SCMP_SYS(setsockopt), 1, UINT32_MAX, IPPROTO_TCP, HTTP_OWN_FDS}, /* TCP_NODELAY, TCP_CORK */
    {SCMP_SYS(shutdown), 1, 0, 0, HTTP_OWN_FDS},
};

static const struct allowed_calls calls = ALLOWED_CALLS(allowed, restricted);

/* Descriptors are for connections. The front bounds files: a write beyond the bound is to fail. */
static int set_limits(void)
{
	static const struct rlimit none = {0, 0};
	struct rlimit files;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_CORE, &none) || getrlimit(RLIMIT_NOFILE, &files))
		return -1;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files);
}

/* What libraries read from files once: the zone of local time, GnuTLS's priorities. */
static void prepare_libraries(void)
{
	time_t now = time(NULL);
	struct tm parts;

	tzset();
	gmtime_r(&now, &parts);
	gnutls_global_init();
}

enum error http_sandbox_enter(void)
{
	int abi = 0;

	prepare_libraries();
	if (set_limits() || drop_privileges())
		return ERR_INTERNAL;
	if (SANITIZER)
		return ERR_OK;
	if (landlock_enter(NULL, 0, &abi) || allow_only(&calls))
		return ERR_INTERNAL;
	log_debug("in a sandbox: limits, seccomp, %s%d", abi ? "Landlock " : "no Landlock: ", abi);
	return ERR_OK;
}

_Static_assert(HTTP_OWN_FDS >= 2 * HTTP_SOCKETS_MAX, "listening sockets and a few more");

/* The number that the front's next descriptor gets. It takes them from above. */
static int spare;

void http_sandbox_keep_numbers(void)
{
	int fd;

	while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd < HTTP_OWN_FDS)
		spare = fd + 1;
	close(fd);
	spare--;
}

void http_sandbox_leave_number(void)
{
	close(spare);
}
