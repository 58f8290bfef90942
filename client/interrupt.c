/* Signals. The handler only sets a flag and writes to a descriptor that can be polled. */
#include "client/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static volatile sig_atomic_t number;
static int event = -1;

static void caught(int signal)
{
	static const uint64_t one = 1;
	int kept = errno;

	number = signal;
	if (write(event, &one, sizeof one) < 0)
		number = signal; /* cannot fail: the counter is far from full */
	errno = kept;
}

void interrupt_init(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
	/* Without SA_RESTART, so that a blocking read returns. */
	struct sigaction action = {.sa_handler = caught}, old;

	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		/* When a terminal closes, both the kernel and the shell send SIGHUP. */
		action.sa_flags = ends[i] == SIGHUP ? 0 : (int)SA_RESETHAND;
		if (!sigaction(ends[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int interrupt_number(void)
{
	return number;
}

int interrupt_fd(void)
{
	return event;
}

void interrupt_end(void)
{
	if (!number)
		return;
	/* An exit status of 130 would let a shell's loop go on. */
	signal(number, SIG_DFL);
	raise(number);
}
