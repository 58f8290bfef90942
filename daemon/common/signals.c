/* Signals: blocked and ignored signals stay so across exec. nohup and shells rely on that for the
 * signals with which a terminal ends programs. */
#include "common/signals.h"

#include <signal.h>
#include <stddef.h>

void signals_reset(void)
{
	struct sigaction action;
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (i != SIGHUP && i != SIGINT && i != SIGQUIT && !sigaction(i, NULL, &action) &&
		    action.sa_handler == SIG_IGN)
			signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
