#include "process/start.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "wire/wire.h"

bool start_is_worker(void)
{
	int type = 0;
	socklen_t size = sizeof type;

	return !getsockopt(WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) &&
	       type == SOCK_SEQPACKET;
}

void start_announce(const char *name, unsigned expendable)
{
	struct message message = {.type = MSG_HELLO};
	FILE *score;

	prctl(PR_SET_NAME, name);
	/* Raising one's own value needs no privilege: it fails only without /proc. */
	score = fopen("/proc/self/oom_score_adj", "we");
	if (score) {
		fprintf(score, "%u", expendable);
		fclose(score);
	}
	snprintf(message.hello.version, sizeof message.hello.version, "%s", WIRE_VERSION);
	/* If the front has gone, the worker notices later. */
	(void)!wire_send(WORKER_SOCKET, &message, NULL);
}

void start_receive(const char *name, unsigned expendable, struct start *start)
{
	/* A terminal sends most of these to all, but only the front decides when to end. */
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	log_init(name, LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
	if (!start_is_worker()) {
		log_error("this program is started by convolved");
		exit(2);
	}
	start_announce(name, expendable);
	signals_reset();
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	if (wire_receive(WORKER_SOCKET, &message, fds) != WIRE_MESSAGE ||
	    message.type != MSG_START || !file_read(fds[0], start, sizeof *start, 0)) {
		log_error("the front does not say how to start");
		exit(1);
	}
	close(fds[0]);
	log_init(name, (enum log_level)start->log_level, LOG_FORMAT_AUTO);
}

/* Blocked and ignored signals stay so across exec; a parent that ignores SIGCHLD would never learn
 * of a child's end. */
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
