/* The surroundings of the front's workers as they are made up: time, descriptors, files, the
 * answers' storage, and processes, which are told only what they can know of. The supervisor and
 * the runs are part of the target, so that their variables can be seen. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memfd.h"
#include "front/config/config.h"
#include "front/jobs/spool.h"
#include "front/workers/codecs.h"
#include "front/workers/device_table.h"
#include "front/workers/discovery.h"
#include "front/workers/relay.h"
#include "front/workers/scheduler.h"
#include "front/workers/self_test.h"
#include "front/workers/tracer.h"
#include "fuzz.h"
#include "quiet.h"
#include "reference/reference.h"
#include "watches.h"
#include "wire/wire.h"

/* Framing is the target of wire.c. */
#define wire_send    framed_send
#define wire_receive framed_receive
#include "../../daemon/wire/wire.c"
#undef wire_send
#undef wire_receive

/* The input ------------------------------------------------------------------------------------ */

static const uint8_t *input;
static size_t input_left;

static unsigned take(unsigned below)
{
	if (!input_left)
		return 0;
	input_left--;
	return *input++ % below;
}

/* Time and descriptors ------------------------------------------------------------------------- */

enum { FD = 1 << 24, FDS = 4096, TIMERS = 256, STEP_MS = 250 };

static const uint64_t ms_ns = 1000000;
static uint64_t now;
static bool fd_open[FDS];
static unsigned fds_open;
static struct timer {
	struct loop_timer *timer;
	uint64_t due, repeat; /* due 0: stopped */
} timers[TIMERS];

static int open_fd(void)
{
	static unsigned last;

	do
		last = (last + 1) % FDS;
	while (fd_open[last]);
	fd_open[last] = true;
	fds_open++;
	return FD + (int)last;
}

static bool is_open(int fd)
{
	return fd >= FD && fd < FD + FDS && fd_open[fd - FD];
}

int close(int fd)
{
	if (fd < FD)
		return (int)syscall(SYS_close, fd);
	must(is_open(fd));
	fd_open[fd - FD] = false;
	fds_open--;
	return 0;
}

void file_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Reads the numbers that a codec worker has gathered. */
bool file_read(int fd, void *to, size_t size, uint64_t offset)
{
	const size_t some = size < input_left ? size : input_left;

	must(is_open(fd) && !offset);
	memset(to, 0, size);
	memcpy(to, input, some);
	input += some;
	input_left -= some;
	return true;
}

bool file_write(int fd, const void *from, size_t size, uint64_t offset)
{
	(void)from, (void)size, (void)offset;
	return is_open(fd);
}

/* Test tiles are mapped. */
enum error memfd_fixed(const char *name, uint64_t size, int *fd)
{
	const bool mapped = !strncmp(name, "self", 4);

	*fd = mapped ? memfd_create(name, MFD_CLOEXEC) : open_fd();
	return mapped && ftruncate(*fd, (off_t)size) ? ERR_IO : ERR_OK;
}

enum error memfd_reopen(int fd, int access, int *again)
{
	(void)access;
	must(is_open(fd));
	*again = open_fd();
	return ERR_OK;
}

bool memfd_seal(int fd)
{
	return is_open(fd);
}

enum error memfd_sealed(const char *name, const void *data, size_t size, int *fd)
{
	(void)name;
	must(data && size);
	*fd = open_fd();
	return ERR_OK;
}

uint64_t loop_now(void)
{
	return now;
}

bool loop_held_up(uint64_t *looked, uint64_t period_ms)
{
	const uint64_t before = *looked;

	*looked = now;
	return before && now - before > (period_ms + 1000) * ms_ns;
}

static struct timer *find_timer(const struct loop_timer *timer)
{
	unsigned i = 0;

	while (i < TIMERS && timers[i].timer != timer)
		i++;
	must(i < TIMERS);
	return &timers[i];
}

enum error loop_timer_init(struct loop_timer *timer, loop_callback *callback, void *context)
{
	*find_timer(NULL) = (struct timer){.timer = timer};
	*timer = (struct loop_timer){{-1, NULL, NULL}, callback, context};
	return ERR_OK;
}

void loop_timer_fini(struct loop_timer *timer)
{
	find_timer(timer)->timer = NULL;
}

void loop_timer_start(struct loop_timer *timer, uint64_t in_ms)
{
	struct timer *t = find_timer(timer);

	t->due = in_ms ? now + in_ms * ms_ns : 0;
	t->repeat = 0;
}

void loop_timer_repeat(struct loop_timer *timer, uint64_t every_ms)
{
	loop_timer_start(timer, every_ms);
	find_timer(timer)->repeat = every_ms * ms_ns;
}

uint64_t loop_timer_left(const struct loop_timer *timer)
{
	const struct timer *t = find_timer(timer);

	return t->due > now ? (t->due - now + ms_ns - 1) / ms_ns : 0;
}

void loop_stop(void)
{
}

/* Spools --------------------------------------------------------------------------------------- */

/* The answers' files that are being made. */
static struct awaited {
	struct spool *spool;
	void (*wake)(void *context);
	void *context;
} awaited[16];
static unsigned spools;

enum error spool_open_answer(struct spool *spool, uint64_t expected, const char *client)
{
	must(*client && spool->fd < 0 && !spool->spill);
	if (take(16) == 15)
		return ERR_QUEUE_FULL;
	spools++;
	*spool = (struct spool){.fd = -1, .writer = -1, .most = 2 * expected};
	/* An address that is not looked at: the file is being made. */
	spool->spill = (struct spill *)spool;
	return ERR_OK;
}

bool spool_await(struct spool *spool, void (*wake)(void *context), void *context)
{
	const unsigned i = take(16);

	if (awaited[i].spool)
		return false;
	awaited[i] = (struct awaited){spool, wake, context};
	return i > 7;
}

static void wake_spools(void)
{
	for (unsigned i = 0; i < 16; i++) {
		const struct awaited a = awaited[i];

		awaited[i].spool = NULL;
		if (a.spool && i > 7)
			a.wake(a.context);
	}
}

enum error spool_take_file(struct spool *spool)
{
	if (!spool->spill)
		return ERR_OK;
	if (take(8) == 7)
		return ERR_IO;
	spool->spill = NULL;
	spool->fd = open_fd();
	spool->writer = open_fd();
	return ERR_OK;
}

bool spool_release(struct spool *spool)
{
	must(is_open(spool->fd));
	file_close(&spool->writer);
	return take(4) != 3;
}

enum error spool_settle(struct spool *spool, uint64_t size)
{
	must(is_open(spool->fd));
	spool->size = size;
	return size > spool->most ? ERR_IO : ERR_OK;
}

void spool_close(struct spool *spool)
{
	for (unsigned i = 0; i < 16; i++)
		if (awaited[i].spool == spool)
			awaited[i].spool = NULL;
	spools -= spool->fd >= 0 || spool->spill;
	file_close(&spool->fd);
	file_close(&spool->writer);
	spool->spill = NULL;
}

/* Processes ------------------------------------------------------------------------------------ */

enum { PROCESSES = 16, QUEUE = 40, PID = 1 << 20, KNOWN = 300 };

/* A process, and all that it has been told. */
static struct process {
	bool used, ended, killed, deaf, immortal;
	int front, status; /* the front's end of its socket */
	unsigned queued;
	struct message queue[QUEUE];
	bool started, arena[SELF_TEST_ARENA + 1];
	uint64_t plan[KNOWN], job;
	bool image, whole, answer; /* it has announced its job's image; has been told */
} processes[PROCESSES];

static int last_front;

static struct process *find_process(pid_t pid)
{
	struct process *p = &processes[pid - PID];

	return pid >= PID && pid < PID + PROCESSES && p->used ? p : NULL;
}

static int make_pair(int pair[2])
{
	pair[0] = last_front = open_fd();
	pair[1] = open_fd();
	return 0;
}

static int make_process(pid_t *pid)
{
	unsigned i = 0;

	while (i < PROCESSES && processes[i].used)
		i++;
	if (i == PROCESSES)
		return EAGAIN;
	memset(&processes[i], 0, offsetof(struct process, queue));
	memset(&processes[i].started, 0, sizeof *processes - offsetof(struct process, started));
	processes[i].used = true;
	processes[i].front = last_front;
	*pid = PID + (pid_t)i;
	return 0;
}

static int kill_process(pid_t pid)
{
	struct process *p = find_process(pid);

	must(p);
	p->killed = true;
	return 0;
}

static pid_t wait_for(pid_t pid, int *status)
{
	struct process *p = find_process(pid);

	if (!p)
		return -1;
	if (!p->ended && (!p->killed || p->immortal))
		return 0;
	if (status)
		*status = p->ended ? p->status : SIGKILL;
	p->used = false;
	return pid;
}

static int pass_ms(void)
{
	now += ms_ns;
	return 0;
}

static int limit_process(pid_t pid, struct rlimit *old)
{
	must(find_process(pid));
	if (old)
		*old = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	return 0;
}

enum error relay_open(struct relay *relay, int *end)
{
	relay->fd = open_fd();
	*end = open_fd();
	return ERR_OK;
}

void relay_close(struct relay *relay)
{
	file_close(&relay->fd);
}

void stall_init(struct stall *stall, pid_t pid)
{
	*stall = (struct stall){.pid = pid};
}

/* A process always works. */
const char *stall_look(struct stall *stall, bool busy)
{
	(void)busy;
	stall->worked_ns += STALL_LOOK_MS * ms_ns;
	return NULL;
}

static struct process *process_of(const struct worker *w)
{
	return w->state == WORKER_STOPPED ? NULL : find_process(w->pid);
}

static uint64_t *find_plan(struct process *p, uint64_t plan)
{
	unsigned i = 0;

	while (i < KNOWN && p->plan[i] != plan)
		i++;
	must(i < KNOWN);
	return &p->plan[i];
}

/* A process may be told only what fits what it knows. */
static void tell(struct process *p, const struct message *m)
{
	switch (m->type) {
	case MSG_START:
		must(!p->started);
		p->started = true;
		break;
	case MSG_ARENA:
		must(m->arena.arena <= SELF_TEST_ARENA && !p->arena[m->arena.arena]);
		p->arena[m->arena.arena] = true;
		break;
	case MSG_ARENA_DROP:
		must(p->arena[m->arena_drop.arena]);
		p->arena[m->arena_drop.arena] = false;
		break;
	case MSG_PLAN:
		must(m->plan.plan && image_valid(&m->plan.image));
		*find_plan(p, 0) = m->plan.plan;
		break;
	case MSG_PLAN_DROP:
		*find_plan(p, m->plan_drop.plan) = 0;
		break;
	case MSG_TILE:
		must(m->tile.plan && *find_plan(p, m->tile.plan) && p->arena[m->tile.tile.arena]);
		break;
	case MSG_JOB:
		must(!p->job && p->arena[m->job.arena]);
		p->job = m->job.job;
		p->image = p->whole = p->answer = false;
		break;
	case MSG_WHOLE:
		must(m->whole.job == p->job && p->image && !p->whole);
		p->whole = true;
		break;
	case MSG_ANSWER:
		must(m->answer.job == p->job && p->image && !p->answer);
		p->answer = true;
		break;
	case MSG_TILE_DONE:
		must(m->tile_done.job == p->job && p->image);
		break;
	case MSG_CANCEL:
		must(m->cancel.job == p->job);
		break;
	default:
		must(m->type == MSG_SPAN);
	}
}

enum error wire_send(int socket, const struct message *message, const int *fds)
{
	struct process *p = processes;

	must(is_open(socket) && message->type < MESSAGES);
	for (unsigned i = 0; i < message_fds(message->type); i++)
		must(is_open(fds[i]) || (fds[i] >= 0 && fds[i] < FD));
	while (p < processes + PROCESSES && (!p->used || p->front != socket))
		p++;
	must(p < processes + PROCESSES);
	errno = p->deaf ? EAGAIN : EPIPE;
	if (p->deaf || p->ended)
		return ERR_IO;
	tell(p, message);
	return ERR_OK;
}

enum wire_result wire_receive(int socket, struct message *message, int fds[MESSAGE_FDS_MAX])
{
	struct process *p = processes;

	while (p < processes + PROCESSES && (!p->used || p->front != socket))
		p++;
	must(p < processes + PROCESSES);
	if (!p->queued)
		return p->ended || p->killed ? WIRE_CLOSED : WIRE_NOTHING;
	*message = p->queue[0];
	memmove(p->queue, p->queue + 1, --p->queued * sizeof *p->queue);
	if (message->type >= MESSAGES)
		return WIRE_BROKEN;
	for (unsigned i = 0; i < message_fds(message->type); i++)
		fds[i] = open_fd();
	/* The front learns of it now. */
	if (message->type == MSG_IMAGE)
		p->image = true;
	else if (message->type == MSG_DEVICE && message->device.type == DEVICE_NONE)
		p->started = false;
	else if (message->type == MSG_JOB_DONE && message->job_done.job == p->job)
		p->job = 0;
	return WIRE_MESSAGE;
}

#ifndef LIBEXECDIR
#define LIBEXECDIR "/nowhere"
#endif
#define socketpair(domain, type, protocol, pair)             make_pair(pair)
#define fcntl(fd, ...)                                       (is_open(fd) - 1)
#define posix_spawn(pid, path, actions, attributes, argv, e) make_process(pid)
#define pidfd_open(pid, flags)                               open_fd()
#define kill(pid, signal)                                    kill_process(pid)
#define waitpid(pid, status, options)                        wait_for(pid, status)
#define nanosleep(time, left)                                pass_ms()
#define prlimit(pid, resource, set, old)                     limit_process(pid, old)
#include "../../daemon/front/workers/supervisor.c"
#undef socketpair
#undef fcntl
#undef posix_spawn
#undef pidfd_open
#undef kill
#undef waitpid
#undef nanosleep
#undef prlimit
#include "../../daemon/front/workers/runs.c"
