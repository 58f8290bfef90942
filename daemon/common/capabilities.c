/* Capabilities, without libcap. */
#include "common/capabilities.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum error capabilities_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
	static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, held))
		return ERR_INTERNAL;
	/* A service manager may have dropped them all, and forbidden capset(). */
	if (!memcmp(held, none, sizeof none) || !syscall(SYS_capset, &header, none))
		return ERR_OK;
	return ERR_INTERNAL;
}
