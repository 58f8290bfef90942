/* The sandbox: limits, and a seccomp filter.
 *
 * The hard part is what happens on a forbidden call. It fails with EACCES and does not kill: GLib,
 * malloc and the codecs try to open files of configuration, and live without. clone3 fails with
 * ENOSYS, whereupon the C library falls back to clone, whose flags a filter can see: threads, but
 * no processes. */
#include "codec/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <seccomp.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif

static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(futex),
    SCMP_SYS(munmap),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(getrandom),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(prctl),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(close),
    SCMP_SYS(dup),
    SCMP_SYS(fcntl),
    SCMP_SYS(ftruncate),
    SCMP_SYS(sysinfo),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(tgkill),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(epoll_wait),
};

static int add_rules(scmp_filter_ctx filter)
{
	const unsigned thread = CLONE_VM | CLONE_THREAD;
	int failed = 0;

	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
	                           SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
	                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
	                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return failed;
}

static enum error enter_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EACCES));
	int failed;

	if (!filter)
		return ERR_INTERNAL;
	failed = add_rules(filter);
	if (!failed)
		failed = seccomp_load(filter);
	seccomp_release(filter);
	errno = failed < 0 ? -failed : EINVAL;
	return failed ? ERR_INTERNAL : ERR_OK;
}

static int limit(int resource, uint64_t value)
{
	const struct rlimit both = {value, value};

	return setrlimit((__rlimit_resource_t)resource, &both);
}

enum error sandbox_enter(uint64_t memory)
{
	if (limit(RLIMIT_CORE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return ERR_INTERNAL;
	/* Sanitizers reserve terabytes, and read their own /proc. */
	if (SANITIZER)
		return ERR_OK;
	return limit(RLIMIT_DATA, memory) ? ERR_INTERNAL : enter_filter();
}
