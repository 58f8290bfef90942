/* Preloaded under qemu, which has no seccomp and refuses it: says that the filter is in force.
 * Nothing enforces it there. */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
	unsigned long value[4];
	va_list list;

	if (option == PR_SET_SECCOMP)
		return 0;
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		value[i] = va_arg(list, unsigned long);
	va_end(list);
	return (int)syscall(SYS_prctl, option, value[0], value[1], value[2], value[3]);
}
