/* Messages between processes, also those of one that has been taken over. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/descriptors.h"
#include "unit.h"
#include "wire/wire.h"

TEST(test_wire)
{
	struct message out = {.type = MSG_PLAN, .plan = {.plan = 7}}, in;
	int pair[2], fds[MESSAGE_FDS_MAX], extra;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_NOTHING);
	assert_int_equal(wire_send(pair[0], &out, (int[]){pair[0]}), ERR_OK);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_MESSAGE);
	assert_int_equal(in.type, MSG_PLAN);
	assert_int_equal(in.plan.plan, 7);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	close(fds[0]);
	extra = dup(0); /* the lowest free descriptor, to see that none leaks below */
	close(extra);
	assert_int_equal(send(pair[0], &out, 5, 0), 5);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_BROKEN);
	out.type = 99;
	assert_true(send(pair[0], &out, 24, 0) == 24);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_BROKEN);
	assert_int_equal(dup(0), extra);
	close(extra);
	close(pair[0]);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_CLOSED);
	close(pair[1]);
}

/* Descriptors that come with a message beyond its type's are closed, and never written past the
 * caller's array. */
TEST(test_wire_descriptors)
{
	const struct message cancel = {.type = MSG_CANCEL}, job = {.type = MSG_JOB};
	struct message in;
	struct {
		int fds[MESSAGE_FDS_MAX], behind[64];
	} room;
	int pair[2], lowest;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	lowest = dup(0);
	close(lowest);
	memset(&room, 0xa5, sizeof room);
	for (unsigned count = 1; count <= 64; count++) {
		assert_true(
		    send_with_descriptors(pair[0], &cancel, 8 + sizeof cancel.cancel, count) > 0);
		assert_int_equal(wire_receive(pair[1], &in, room.fds), WIRE_BROKEN);
		if (count == message_fds(MSG_JOB))
			continue;
		assert_true(send_with_descriptors(pair[0], &job, 8 + sizeof job.job, count) > 0);
		assert_int_equal(wire_receive(pair[1], &in, room.fds), WIRE_BROKEN);
	}
	for (size_t i = 0; i < 64; i++)
		assert_int_equal((unsigned)room.behind[i], 0xa5a5a5a5);
	assert_int_equal(dup(0), lowest);
	close(lowest);
	close(pair[0]);
	close(pair[1]);
}
