/* The sandbox: resource limits, Landlock where the kernel supports it, and a seccomp filter.
 *
 * The hard part is how forbidden calls fail. They return EACCES and do not kill: GLib, malloc and
 * the codecs try to open configuration files and work without them. Threads are allowed, processes
 * are not.
 *
 * A filter sees numbers, not what pointers point to. So calls that take a path are forbidden, even
 * where the C library uses one (see common/fstat.h); calls that act on processes or descriptors are
 * allowed only with this process's id or the socket's number. */
#include "codec/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <seccomp.h>

#include "common/enter_seccomp.h"
#include "common/fstat.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/sanitizer.h"
#include "common/wire.h"

enum { DESCRIPTORS_MAX = 64, THREADS_MAX = 8192 };

static const int allowed[] = {
    SCMP_SYS(pwrite64), SCMP_SYS(rt_sigaction), SCMP_SYS(dup), SCMP_SYS(sysinfo), SCMP_SYS(ppoll),
};

/* Calls that are allowed with a particular argument only. */
static const struct restricted_call restricted[] = {
    {SCMP_SYS(sendmsg), 0, UINT32_MAX, WORKER_SOCKET, 0},
    {SCMP_SYS(recvmsg), 0, UINT32_MAX, WORKER_SOCKET, 0},
    {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME, 0},
    {SCMP_SYS(sched_getaffinity), 0, UINT32_MAX, 0, 0},
    /* An open file's flags are shared with the process that passed it: they may be read, not set.
     */
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFD, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFD, 0},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_DUPFD_CLOEXEC, 0},
};

static const struct allowed_calls calls = ALLOWED_CALLS(allowed, restricted);

/* Decoders start a thread for each core that they may use. A worker is to use one, as there is one
 * a core; and its filter forbids the call that asks for a thread's. */
int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *cores)
{
	(void)thread;
	memset(cores, 0, size);
	CPU_SET_S(0, size, cores);
	return 0;
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

/* The process stays dumpable (PR_SET_DUMPABLE). Otherwise, with the unit's ProtectProc=, the front
 * could not see it in /proc and could not account for its memory. Device workers run as the same
 * user; Landlock and their own filter keep them from reading its memory. */
enum error sandbox_enter(uint64_t memory)
{
	int abi;

	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails */
	if (limit(RLIMIT_CORE, 0) || limit(RLIMIT_NOFILE, DESCRIPTORS_MAX) ||
	    limit(RLIMIT_NPROC, THREADS_MAX) || drop_privileges())
		return ERR_INTERNAL;
	/* Sanitizers reserve terabytes of address space and read /proc. */
	if (SANITIZER)
		return ERR_OK;
	if (limit(RLIMIT_DATA, memory) || landlock_enter(NULL, 0, &abi) || allow_only(&calls))
		return ERR_INTERNAL;
	memory_limit = memory;
	log_debug("in a sandbox: limits, seccomp, %s%d", abi ? "Landlock " : "no Landlock: ", abi);
	return ERR_OK;
}
