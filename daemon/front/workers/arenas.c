/* The open arenas, and the workers that know them. */
#include "front/workers/arenas.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"

static struct arena_files arenas[ARENAS_MAX]; /* size 0: not open */
static LIST_HEAD(arena_users, arena_user) users;

const struct arena_files *arenas_get(unsigned i)
{
	return arenas[i].size ? &arenas[i] : NULL;
}

static void close_files(struct arena_files *arena)
{
	file_close(&arena->in);
	file_close(&arena->in_read_only);
	file_close(&arena->out);
	arena->size = 0;
}

void arenas_tell(unsigned i, struct worker *worker, bool read_only)
{
	const struct arena_files *arena = &arenas[i];
	int fds[] = {read_only ? arena->in_read_only : arena->in, arena->out};
	struct message message = {
	    .type = MSG_ARENA,
	    .arena = {.arena = i, .in_size = arena->size, .out_size = arena->size}};

	worker_send(worker, &message, fds);
}

static void tell_user(unsigned i, struct arena_user *user)
{
	user->fresh = true;
	arenas_tell(i, user->worker, user->read_only);
}

enum error arenas_open(unsigned i, uint64_t size)
{
	struct arena_files *arena = &arenas[i];
	struct arena_user *user;
	enum error e;

	*arena = (struct arena_files){.in = -1, .in_read_only = -1, .out = -1, .size = size};
	e = memfd_fixed("tiles-in", size, &arena->in);
	if (!e)
		e = memfd_reopen(arena->in, O_RDONLY, &arena->in_read_only);
	if (!e)
		e = memfd_fixed("tiles-out", size, &arena->out);
	if (e) {
		log_error("cannot allocate an arena: %m");
		close_files(arena);
		return e;
	}
	for (user = LIST_FIRST(&users); user; user = LIST_NEXT(user, place))
		tell_user(i, user);
	return ERR_OK;
}

void arenas_close(unsigned i)
{
	struct message message = {.type = MSG_ARENA_DROP, .arena_drop = {i}};
	struct arena_user *user;

	if (!arenas[i].size)
		return;
	close_files(&arenas[i]);
	for (user = LIST_FIRST(&users); user; user = LIST_NEXT(user, place))
		worker_send(user->worker, &message, NULL);
}

void arenas_join(struct arena_user *user, struct worker *worker, bool read_only)
{
	arenas_leave(user);
	*user = (struct arena_user){.worker = worker, .read_only = read_only};
	LIST_INSERT_HEAD(&users, user, place);
	for (unsigned i = 0; i < ARENAS_MAX; i++)
		if (arenas_get(i))
			tell_user(i, user);
}

void arenas_leave(struct arena_user *user)
{
	if (user->worker)
		LIST_REMOVE(user, place);
	user->worker = NULL;
}
