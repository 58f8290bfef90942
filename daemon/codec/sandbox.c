/* The sandbox: limits, and a list of the system calls that decoding needs. Everything else fails with
 * EACCES and does not kill, since libraries probe for files and go on without them. */
#include "codec/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"

static const int allowed[] = {
    SCMP_SYS(read),          SCMP_SYS(write),        SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),      SCMP_SYS(lseek),        SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),    SCMP_SYS(futex),        SCMP_SYS(mmap),
    SCMP_SYS(munmap),        SCMP_SYS(mprotect),     SCMP_SYS(madvise),
    SCMP_SYS(mremap),        SCMP_SYS(brk),          SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),          SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigaction),  SCMP_SYS(exit),         SCMP_SYS(exit_group),
    SCMP_SYS(getrandom),     SCMP_SYS(sched_yield),  SCMP_SYS(sched_getaffinity),
    SCMP_SYS(prctl),         SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(close),
    SCMP_SYS(dup),           SCMP_SYS(fcntl),        SCMP_SYS(ftruncate),
    SCMP_SYS(sysinfo),       SCMP_SYS(gettid),       SCMP_SYS(getpid),
    SCMP_SYS(tgkill),        SCMP_SYS(sendmsg),      SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),        SCMP_SYS(recvfrom),     SCMP_SYS(poll),
    SCMP_SYS(epoll_wait),    SCMP_SYS(restart_syscall),
};

/* Bytes of address space that the process has. */
static uint64_t address_space(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%llu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int limit(int resource, uint64_t value)
{
	struct rlimit r = {value, value};

	return setrlimit(resource, &r);
}

static int add_rules(scmp_filter_ctx filter)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	/* Threads, but no processes; clone3 hides its flags in memory, so the C library is told to use clone. */
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
	                           SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return failed;
}

enum error sandbox_enter(uint64_t memory)
{
	scmp_filter_ctx filter;
	int failed;

	if (limit(RLIMIT_CORE, 0) || limit(RLIMIT_NOFILE, 64) ||
	    limit(RLIMIT_AS, address_space() + memory) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		log_error("cannot limit this process: %m");
		return ERR_IO;
	}
	filter = seccomp_init(SCMP_ACT_ERRNO(EACCES));
	if (!filter)
		return ERR_MEMORY;
	failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) || add_rules(filter) ||
	         seccomp_load(filter);
	seccomp_release(filter);
	if (failed)
		log_error("cannot restrict system calls");
	return failed ? ERR_IO : ERR_OK;
}
