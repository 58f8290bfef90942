/* Answers agent checks. The line fits the empty buffer of a new socket, so each connection is
 * closed in the turn that accepts it, whatever its client does. */
#include "front/agent.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"

enum {
	ACCEPTED_MOST = 8 /* a turn */,
	PAUSE_MS = 1000,
	SOCKETS_MAX = 2 * CONFIG_LIST_MAX /* passed by systemd, and configured */
};

static struct agent_socket {
	struct loop_watch watch;
	int fd;
} sockets[SOCKETS_MAX];
static unsigned count;
static struct loop_timer pause_over;
static bool draining;

/* Sends `ready` each time, not only after a start: a balancer that could not ask for a while keeps
 * the node out until it hears the word. */
static void answer(int fd)
{
	char line[24] = "drain\n";
	int size = 6;

	if (!draining)
		size = snprintf(line, sizeof line, "ready up %.0f%%\n",
		                fmax(1, round(100 * admission_free())));
	if (send(fd, line, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) == size)
		metric_add(METRIC_AGENT_CHECKS, draining ? "drain" : "ready", NULL, 1);
	close(fd);
}

static void stop_watching(void)
{
	for (unsigned i = 0; i < count; i++)
		loop_unwatch(&sockets[i].watch);
}

static void accept_some(void *context)
{
	struct agent_socket *s = context;

	for (int i = 0; i < ACCEPTED_MOST; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			answer(fd);
			continue;
		}
		/* Waiting clients would wake the loop again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			stop_watching();
			loop_timer_start(&pause_over, PAUSE_MS);
		}
		return;
	}
}

static void watch_again(void *context)
{
	(void)context;
	for (unsigned i = 0; i < count; i++) {
		struct agent_socket *s = &sockets[i];

		if (s->watch.fd < 0 && loop_watch(&s->watch, s->fd, EPOLLIN, accept_some, s))
			loop_timer_start(&pause_over, PAUSE_MS);
	}
}

enum error agent_init(void)
{
	metric_add(METRIC_AGENT_CHECKS, "ready", NULL, 0);
	metric_add(METRIC_AGENT_CHECKS, "drain", NULL, 0);
	return loop_timer_init(&pause_over, watch_again, NULL);
}

void agent_fini(void)
{
	stop_watching();
	while (count)
		close(sockets[--count].fd);
	loop_timer_fini(&pause_over);
}

enum error agent_serve(int fd)
{
	struct agent_socket *s = &sockets[count++];

	s->fd = fd;
	return loop_watch(&s->watch, s->fd, EPOLLIN, accept_some, s);
}

void agent_drain(void)
{
	draining = true;
}
