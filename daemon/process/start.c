#include "process/start.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "wire/wire.h"

void announce(const char *name, unsigned expendable)
{
	struct message message = {.type = MSG_HELLO};
	int type = 0;
	socklen_t size = sizeof type;
	FILE *score;

	if (getsockopt(WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET)
		return;
	prctl(PR_SET_NAME, name);
	/* Raising one's own value needs no privilege: this fails only where there is no /proc. */
	score = fopen("/proc/self/oom_score_adj", "we");
	if (score) {
		fprintf(score, "%u", expendable);
		fclose(score);
	}
	snprintf(message.hello.version, sizeof message.hello.version, "%s", WIRE_VERSION);
	/* If the front has gone, the worker notices later. */
	(void)!wire_send(WORKER_SOCKET, &message, NULL);
}

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

noreturn void usage_error(const struct usage *usage, const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: %s\nTry '%s --help'.\n", usage->program, what, value,
	        usage->program);
	exit(2);
}

void usage_option(const struct usage *usage, int c, char *const *argv, enum log_level *level)
{
	int named;

	switch (c) {
	case 'l':
		named = log_level_parse(optarg);
		if (named < 0)
			usage_error(usage, "no such log level", optarg);
		*level = (enum log_level)named;
		return;
	case 'h':
		fputs(usage->help, stdout);
		exit(0);
	case 'V':
		printf("%s %s\n", usage->program, PACKAGE_VERSION);
		exit(0);
	default:
		usage_error(usage, "bad option", argv[optind - 1]);
	}
}

void usage_end(const struct usage *usage, int argc, char *const *argv)
{
	if (optind < argc)
		usage_error(usage, "unexpected argument", argv[optind]);
}

/* Blocked and ignored signals stay so across exec. nohup and shells rely on that for the signals
 * with which a terminal ends programs. */
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
