/* Entering a seccomp filter. A header, so that only programs that use it need libseccomp. */
#ifndef COMMON_ENTER_SECCOMP_H
#define COMMON_ENTER_SECCOMP_H

#include <errno.h>
#include <seccomp.h>

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

#endif
