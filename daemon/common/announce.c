/* The first steps of a worker's program. */
#include "common/announce.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common/wire.h"

/* Raising one's own value needs no privilege: this fails only where there is no /proc. */
static void stand_in_line(unsigned expendable)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (!file)
		return;
	fprintf(file, "%u", expendable);
	fclose(file);
}

void announce(const char *name, unsigned expendable)
{
	struct message message = {.type = MSG_HELLO};
	int type = 0;
	socklen_t size = sizeof type;

	if (getsockopt(WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET)
		return;
	prctl(PR_SET_NAME, name);
	stand_in_line(expendable);
	snprintf(message.hello.version, sizeof message.hello.version, "%s", WIRE_VERSION);
	/* If the front has gone, the worker notices later. */
	(void)!wire_send(WORKER_SOCKET, &message, NULL);
}
