/* Arenas: which of them a worker hears of. */
#include <sys/socket.h>
#include <unistd.h>

#include "front/workers/arenas.h"
#include "front/workers/supervisor.h"
#include "unit.h"

/* Tells whether the next message to a worker is of this type and arena; or, of no type, there is
 * none. */
static bool hears(int socket, uint32_t type, unsigned arena)
{
	struct message message = {.type = 0};
	int fds[MESSAGE_FDS_MAX];
	enum wire_result result = wire_receive(socket, &message, fds);

	if (!type)
		return result == WIRE_NOTHING;
	for (unsigned i = 0; result == WIRE_MESSAGE && i < message_fds(message.type); i++)
		close(fds[i]);
	return result == WIRE_MESSAGE && message.type == type &&
	       (type == MSG_ARENA ? message.arena.arena : message.arena_drop.arena) == arena;
}

/* A worker hears of the arenas that are open when it joins, and of each change until it leaves. */
TEST(test_arenas)
{
	struct worker worker = {.state = WORKER_UP};
	struct arena_user user = {.worker = NULL};
	int pair[2];

	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
	worker.socket.fd = pair[0];
	arenas_leave(&user);
	arenas_close(3);
	assert_null(arenas_get(3));
	assert_int_equal(arenas_open(3, 4096), ERR_OK);
	assert_int_equal(arenas_get(3)->size, 4096);
	arenas_join(&user, &worker, true);
	assert_true(user.fresh);
	assert_true(hears(pair[1], MSG_ARENA, 3));
	user.fresh = false;
	assert_int_equal(arenas_open(0, 4096), ERR_OK);
	assert_true(hears(pair[1], MSG_ARENA, 0) && user.fresh);
	arenas_close(3);
	arenas_close(3);
	assert_true(hears(pair[1], MSG_ARENA_DROP, 3));
	assert_true(hears(pair[1], 0, 0));
	arenas_leave(&user);
	arenas_leave(&user);
	arenas_close(0);
	assert_true(hears(pair[1], 0, 0));
	worker.state = WORKER_DYING; /* takes nothing any more */
	assert_int_equal(arenas_open(1, 4096), ERR_OK);
	arenas_join(&user, &worker, false);
	arenas_leave(&user);
	arenas_close(1);
	assert_true(hears(pair[1], 0, 0));
	close(pair[0]);
	close(pair[1]);
}
