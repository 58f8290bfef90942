/* convolved-trace: sends the spans of requests, which the front tells it, to a collector by OTLP
 * over HTTP. It ends when the front does, after a last attempt to send what it has. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/log.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "trace/sender.h"
#include "wire/wire.h"

enum { EXPENDABLE = 1000, FLUSH_MS = 800 };

static enum error start(const char *endpoint)
{
	struct message ready = {.type = MSG_READY};
	int flags = fcntl(WORKER_SOCKET, F_GETFL);
	uint16_t ports[SENDER_PORTS_MAX];
	struct sandbox_access access = {.ports = ports};
	enum error e;

	if (flags < 0 || fcntl(WORKER_SOCKET, F_SETFL, flags | O_NONBLOCK))
		return ERR_IO;
	access.port_count = sender_ports(endpoint, ports);
	e = sandbox_enter(SANDBOX_TRACE, &access);
	if (!e)
		e = sender_init(endpoint);
	return e ? e : wire_send(WORKER_SOCKET, &ready, NULL);
}

/* Receives all spans that have come. Returns false when there will be no more. */
static bool receive_spans(void)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	for (;;) {
		switch (wire_receive(WORKER_SOCKET, &message, fds)) {
		case WIRE_NOTHING:
			return true;
		case WIRE_MESSAGE:
			if (message.type == MSG_SPAN) {
				sender_add(&message.span.span);
				break;
			}
			log_error("cannot continue after the message %s",
			          message_name(message.type));
			exit(1);
		case WIRE_CLOSED:
			return false;
		case WIRE_BROKEN:
			log_error("the front sent an invalid message");
			exit(1);
		}
	}
}

int main(void)
{
	static struct start how;
	struct message lost = {.type = MSG_SPANS_LOST};

	start_receive("convolved-trace", EXPENDABLE, &how);
	if (start(how.endpoint)) {
		log_error("cannot start: %m");
		return 1;
	}
	while (!sender_wait(WORKER_SOCKET) || receive_spans()) {
		lost.spans_lost.count = sender_lost();
		if (lost.spans_lost.count && wire_send(WORKER_SOCKET, &lost, NULL))
			log_debug("the front does not take a message: %m");
	}
	sender_flush(FLUSH_MS);
	return 0;
}
