/* The list of forbidden system calls. OpenCL drivers are large and need different calls, so the
 * list says what is forbidden, while the codec worker's says what is allowed. No driver is known to
 * need a call on this list; --unconfined is for one that does. A forbidden call fails with
 * EPERM. */
#include "device/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <seccomp.h>

#include "common/enter_seccomp.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/sanitizer.h"

static const int denied[] = {
    /* other processes */
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(tkill),
    SCMP_SYS(rt_sigqueueinfo),
    SCMP_SYS(rt_tgsigqueueinfo),
    /* mounts and namespaces */
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(quotactl),
    SCMP_SYS(acct),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    /* the kernel and the machine */
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(vhangup),
};

/* Commands that make the kernel send signals on behalf of this process. */
static const struct {
	int call;
	unsigned command;
} denied_commands[] = {
    {SCMP_SYS(fcntl), F_SETOWN},   {SCMP_SYS(fcntl), F_SETOWN_EX}, {SCMP_SYS(fcntl), F_SETSIG},
    {SCMP_SYS(fcntl), F_SETLEASE}, {SCMP_SYS(fcntl), F_NOTIFY},    {SCMP_SYS(ioctl), FIOSETOWN},
    {SCMP_SYS(ioctl), SIOCSPGRP},  {SCMP_SYS(ioctl), TIOCSTI},
};

static int add_rules(scmp_filter_ctx filter, const void *context)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	const scmp_datum_t self = (scmp_datum_t)getpid();
	int failed = 0;

	(void)context;
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		failed |= seccomp_rule_add(filter, refuse, denied[i], 0);
	for (size_t i = 0; i < sizeof denied_commands / sizeof *denied_commands; i++)
		failed |= seccomp_rule_add(
		    filter, refuse, denied_commands[i].call, 1,
		    SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, denied_commands[i].command));
	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(kill), 1, SCMP_A0(SCMP_CMP_NE, self, 0));
	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, self, 0));
	/* A limit on processor time can end another process, as a signal does. */
	failed |=
	    seccomp_rule_add(filter, refuse, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
	                           SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0));
	return failed;
}

enum error confine(const char *cache_dir, const char *state_dir)
{
	const char *temporary = getenv("TMPDIR");
	const char *const writable[] = {
	    cache_dir,
	    state_dir,
	    getenv("POCL_CACHE_DIR"),
	    getenv("CUDA_CACHE_PATH"),
	    temporary ? temporary : "/tmp",
	    "/dev",
	    "/proc/self",
	};
	const struct rlimit none = {0, 0};
	int abi;

	if (setrlimit(RLIMIT_CORE, &none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return ERR_INTERNAL;
	/* LeakSanitizer needs ptrace() on its own process. */
	if (SANITIZER)
		return ERR_OK;
	if (landlock_enter(writable, sizeof writable / sizeof *writable, &abi) ||
	    enter_seccomp(SCMP_ACT_ALLOW, add_rules, NULL))
		return ERR_INTERNAL;
	log_info("confined: seccomp, %s%d", abi ? "Landlock " : "no Landlock: ", abi);
	return ERR_OK;
}
