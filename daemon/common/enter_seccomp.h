/* Entering a seccomp filter. A header, so that only programs that use it need libseccomp. */
#ifndef COMMON_ENTER_SECCOMP_H
#define COMMON_ENTER_SECCOMP_H

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/capabilities.h"
#include "common/error.h"

/* Restricts this thread, and those that it starts, to the rules that add_rules() adds with this
 * context (it returns 0 on success); any other system call gets `otherwise`. ERR_INTERNAL with
 * errno set. */
static inline enum error
enter_seccomp(uint32_t otherwise, int (*add_rules)(scmp_filter_ctx filter, const void *context),
              const void *context)
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
	int failed;

	if (!filter)
		return ERR_INTERNAL;
	failed = add_rules(filter, context);
	if (!failed)
		failed = seccomp_load(filter);
	seccomp_release(filter);
	errno = failed < 0 ? -failed : EINVAL;
	return failed ? ERR_INTERNAL : ERR_OK;
}

/* A call that is allowed where an argument, but for the bits that are not in the mask, has a value;
 * and where the first argument, a descriptor, is not below `from`: a power of two, 0: any. */
struct restricted_call {
	int call;
	unsigned argument;
	uint64_t mask, value;
	uint64_t from;
};

/* What a worker may call beside what all may. */
struct allowed_calls {
	const int *whole;
	size_t whole_count;
	const struct restricted_call *restricted;
	size_t restricted_count;
};

#define ALLOWED_CALLS(whole, restricted)                                                           \
	{                                                                                          \
		whole, sizeof(whole) / sizeof *(whole), restricted,                                \
		    sizeof(restricted) / sizeof *(restricted)                                      \
	}

static inline int allow_calls(scmp_filter_ctx filter, const struct allowed_calls *calls)
{
	int failed = 0;

	for (size_t i = 0; i < calls->whole_count; i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls->whole[i], 0);
	for (size_t i = 0; i < calls->restricted_count; i++) {
		const struct restricted_call *one = &calls->restricted[i];
		uint64_t bit = one->from;

		/* The kernel reads a descriptor from the lower half of its register, so that the
		 * whole cannot be compared: one of the higher bits must be set. */
		do {
			failed |= seccomp_rule_add(
			    filter, SCMP_ACT_ALLOW, one->call, bit ? 2 : 1,
			    SCMP_CMP(one->argument, SCMP_CMP_MASKED_EQ, one->mask, one->value),
			    SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
			bit <<= 1;
		} while (bit && bit <= INT32_MAX);
	}
	return failed;
}

/* What reading and writing what is open, memory that is not executable, threads (exactly the flags
 * of pthread_create(): no process, no namespace), clocks and the end need. */
static const struct allowed_calls calls_of_all =
    ALLOWED_CALLS(((const int[]){
                      SCMP_SYS(read),
                      SCMP_SYS(write),
                      SCMP_SYS(pread64),
                      SCMP_SYS(lseek),
                      SCMP_SYS(close),
                      SCMP_SYS(fstat),
                      SCMP_SYS(poll),
                      SCMP_SYS(futex),
                      SCMP_SYS(munmap),
                      SCMP_SYS(madvise),
                      SCMP_SYS(mremap),
                      SCMP_SYS(brk),
                      SCMP_SYS(set_robust_list),
                      SCMP_SYS(rseq),
                      SCMP_SYS(rt_sigprocmask),
                      SCMP_SYS(rt_sigreturn),
                      SCMP_SYS(restart_syscall),
                      SCMP_SYS(exit),
                      SCMP_SYS(exit_group),
                      SCMP_SYS(getrandom),
                      SCMP_SYS(sched_yield),
                      SCMP_SYS(clock_nanosleep),
                      SCMP_SYS(clock_gettime),
                      SCMP_SYS(gettid),
                      SCMP_SYS(getpid),
                  }),
                  ((const struct restricted_call[]){
                      {SCMP_SYS(mmap), 2, PROT_EXEC, 0, 0},
                      {SCMP_SYS(mprotect), 2, PROT_EXEC, 0, 0},
                      {SCMP_SYS(clone), 0, UINT64_MAX,
                       CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND |
                           CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
                       0},
                  }));

/* For enter_seccomp(): allows calls_of_all and these, SEALS_FINAL but no other seals, and what
 * abort() needs. clone3 returns ENOSYS, so that the C library falls back to clone, whose flags a
 * filter can check. */
static inline int add_allowed(scmp_filter_ctx filter, const void *context)
{
	int failed = allow_calls(filter, &calls_of_all) | allow_calls(filter, context);

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

/* Drops capabilities and new privileges for good. ERR_INTERNAL with errno set. */
static inline enum error drop_privileges(void)
{
	return capabilities_drop() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? ERR_INTERNAL
	                                                                     : ERR_OK;
}

/* Forbids all other calls: they fail with EACCES. */
static inline enum error allow_only(const struct allowed_calls *calls)
{
	return enter_seccomp(SCMP_ACT_ERRNO(EACCES), add_allowed, calls);
}

#endif
