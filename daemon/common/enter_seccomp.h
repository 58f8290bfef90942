/* Entering a seccomp filter. A header, so that only programs that use it need libseccomp. */
#ifndef COMMON_ENTER_SECCOMP_H
#define COMMON_ENTER_SECCOMP_H

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/error.h"

/* Restricts this thread, and those that it starts, to the rules that add_rules() adds (it returns 0
 * on success); any other system call gets `otherwise`. ERR_INTERNAL with errno set. */
static inline enum error enter_seccomp(uint32_t otherwise, int (*add_rules)(scmp_filter_ctx filter))
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
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

/* A call that is allowed where an argument, but for the bits that are not in the mask, has a value.
 */
struct restricted_call {
	int call;
	unsigned argument;
	uint64_t mask, value;
};

/* Exactly the flags of pthread_create(): no process, no namespace. */
#define RESTRICTED_CLONE                                                                           \
	{                                                                                          \
		SCMP_SYS(clone), 0, UINT64_MAX,                                                    \
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND |            \
		        CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID   \
	}

/* For add_rules(): allows these calls, seal_written(), but no other seals, and what abort() needs.
 * clone3 returns ENOSYS, so that the C library falls back to clone, whose flags a filter can check.
 */
static inline int allow_calls(scmp_filter_ctx filter, const int *allowed, size_t count,
                              const struct restricted_call *restricted, size_t restricted_count)
{
	int failed = 0;

	for (size_t i = 0; i < count; i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < restricted_count; i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, restricted[i].call, 1,
		                           SCMP_CMP(restricted[i].argument, SCMP_CMP_MASKED_EQ,
		                                    restricted[i].mask, restricted[i].value));
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

#endif
