/* Signals: blocked and ignored ones stay so across exec. */
#include "common/signals.h"

#include <signal.h>
#include <stddef.h>

void signals_reset(void)
{
	struct sigaction action;
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &action) && action.sa_handler == SIG_IGN)
			signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
