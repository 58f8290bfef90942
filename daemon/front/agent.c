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
	AGAIN_MS = 1,
	PAUSE_MS = 1000,
	SOCKETS_MAX = 2 * CONFIG_LIST_MAX /* passed by systemd, and configured */
};

static struct loop_watch sockets[SOCKETS_MAX];
static unsigned count;
static struct loop_timer again;
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

/* Only new clients wake the loop; those that still wait are for the timer. */
static void accept_some(void *context)
{
	const struct loop_watch *socket = context;
	uint64_t ms = AGAIN_MS;

	for (int i = 0; i < ACCEPTED_MOST && ms == AGAIN_MS; i++) {
		int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			answer(fd);
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR && errno != ECONNABORTED)
			ms = PAUSE_MS;
	}
	loop_timer_start(&again, ms);
}

static void accept_all(void *)
{
	for (unsigned i = 0; i < count; i++)
		accept_some(&sockets[i]);
}

enum error agent_init(void)
{
	metric_add(METRIC_AGENT_CHECKS, "ready", NULL, 0);
	metric_add(METRIC_AGENT_CHECKS, "drain", NULL, 0);
	return loop_timer_init(&again, accept_all, NULL);
}

void agent_fini(void)
{
	while (count)
		loop_close(&sockets[--count]);
	loop_timer_fini(&again);
}

enum error agent_serve(int fd)
{
	struct loop_watch *socket = &sockets[count++];

	return loop_adopt(socket, fd, EPOLLIN | EPOLLET, accept_some, socket);
}

void agent_drain(void)
{
	draining = true;
}
