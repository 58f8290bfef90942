/* A worker that sends without end: the loop goes on. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/workers/supervisor.h"
#include "unit.h"

static unsigned heard, heard_most, turns; /* messages, and the most of them in a turn of the loop */
static int flooding;                      /* its end of the socket */

static void flood_message(struct worker *worker, const struct message *message)
{
	(void)worker;
	(void)message;
	heard++;
}

static void flood_down(struct worker *worker, const char *reason)
{
	(void)worker;
	fail_msg("%s", reason);
}

/* The socket is always full. */
static int flood_turn(void)
{
	struct message message = {.type = MSG_OBJECTS};

	heard_most = heard > heard_most ? heard : heard_most;
	heard = 0;
	while (!wire_send(flooding, &message, NULL))
		;
	if (++turns == 20)
		loop_stop();
	return 5000;
}

/* The socket to the process gives way to one that we write to. */
TEST(test_flood)
{
	static const struct worker_owner owner = {.kind = "codec",
	                                          .program = "convolved-codec",
	                                          .message = flood_message,
	                                          .down = flood_down};
	const struct config settings = {.start_timeout = 10, .log_level = 3 /* info */};
	struct worker worker;
	struct message hello = {.type = MSG_HELLO};
	struct message ready = {.type = MSG_READY};
	int pair[2], other;

	strcpy(hello.hello.version, WIRE_VERSION);
	assert_false(loop_init());
	config = &settings;
	assert_false(supervisor_init());
	assert_false(worker_start(&worker, &owner, 0));
	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
	flooding = pair[1];
	assert_false(wire_send(flooding, &hello, NULL) || wire_send(flooding, &ready, NULL));
	other = worker.socket.fd;
	loop_unwatch(&worker.socket);
	assert_false(loop_watch(&worker.socket, pair[0], EPOLLIN, worker.socket.callback, &worker));
	loop_run(flood_turn);
	worker_fini(&worker);
	supervisor_fini();
	loop_fini();
	metrics_fini();
	close(other);
	close(flooding);
	assert_in_range(heard_most, 1, 50);
}
