/* A worker that sends without end: the loop goes on; and one that is started for another owner. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/workers/supervisor.h"
#include "unit.h"

static unsigned heard, heard_most, turns; /* messages, and the most of them in a turn of the loop */
static struct worker worker;
static int ours, others; /* its end of the socket; that of the process, which is not used */
static struct message hello = {.type = MSG_HELLO};

/* The socket to the process gives way to one that we write to. */
static void start_worker(const struct worker_owner *owner)
{
	static const struct config settings = {.start_timeout = 10, .log_level = 3 /* info */};
	int pair[2];

	strcpy(hello.hello.version, WIRE_VERSION);
	assert_false(loop_init());
	config = &settings;
	assert_false(supervisor_init());
	assert_false(worker_start(&worker, owner, 0));
	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
	ours = pair[1];
	others = worker.socket.fd;
	loop_unwatch(&worker.socket);
	assert_false(loop_watch(&worker.socket, pair[0], EPOLLIN, worker.socket.callback, &worker));
}

static void end_worker(void)
{
	worker_fini(&worker);
	supervisor_fini();
	loop_fini();
	metrics_fini();
	close(others);
	close(ours);
}

static void flood_message(struct worker *, const struct message *)
{
	heard++;
}

static void flood_down(struct worker *, const char *reason)
{
	fail_msg("%s", reason);
}

/* The socket is always full. */
static int flood_turn(void)
{
	struct message message = {.type = MSG_OBJECTS};

	heard_most = heard > heard_most ? heard : heard_most;
	heard = 0;
	while (!wire_send(ours, &message, NULL))
		;
	if (++turns == 20)
		loop_stop();
	return 5000;
}

TEST(test_flood)
{
	static const struct worker_owner owner = {.kind = "codec",
	                                          .program = "convolved-codec",
	                                          .message = flood_message,
	                                          .down = flood_down};
	struct message ready = {.type = MSG_READY};

	start_worker(&owner);
	assert_false(wire_send(ours, &hello, NULL) || wire_send(ours, &ready, NULL));
	loop_run(flood_turn);
	end_worker();
	assert_in_range(heard_most, 1, 50);
}

static unsigned prepared, up;

static void first_prepare(const struct worker *, struct start *start)
{
	start->stack = 1;
}

static void second_prepare(const struct worker *, struct start *start)
{
	start->stack = 2;
	prepared++;
}

static void second_up(struct worker *, const struct message_ready *)
{
	up++;
}

static void first_message(struct worker *w, const struct message *message)
{
	static const struct worker_owner second = {.kind = "device",
	                                           .program = "convolved-codec",
	                                           .prepare = second_prepare,
	                                           .up = second_up};

	assert_int_equal(message->type, MSG_DEVICE);
	assert_false(worker_start(w, &second, w->number));
}

static uint32_t read_stack(void)
{
	struct message message;
	struct start start;
	int fds[MESSAGE_FDS_MAX];

	assert_int_equal(wire_receive(ours, &message, fds), WIRE_MESSAGE);
	assert_int_equal(message.type, MSG_START);
	assert_true(file_read(fds[0], &start, sizeof start, 0));
	close(fds[0]);
	return start.stack;
}

static int second_turn(void)
{
	if (up || worker.state == WORKER_DYING)
		loop_stop();
	return 100;
}

/* No other process: the one that is up begins anew, and is restarted from now on. */
TEST(test_second_owner)
{
	static const struct worker_owner first = {.kind = "device",
	                                          .once = true,
	                                          .program = "convolved-codec",
	                                          .prepare = first_prepare,
	                                          .message = first_message};
	struct message device = {.type = MSG_DEVICE}, ready = {.type = MSG_READY};
	pid_t pid;

	start_worker(&first);
	pid = worker.pid;
	assert_false(wire_send(ours, &hello, NULL) || wire_send(ours, &device, NULL) ||
	             wire_send(ours, &hello, NULL) || wire_send(ours, &ready, NULL));
	loop_run(second_turn);
	assert_int_equal(worker.state, WORKER_UP);
	assert_int_equal(worker.pid, pid);
	assert_int_equal(worker.restarts, 0);
	assert_false(worker.owner->once);
	assert_int_equal(prepared, 1);
	assert_int_equal(read_stack(), 1);
	assert_int_equal(read_stack(), 2);
	end_worker();
}
