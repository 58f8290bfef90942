/* The worker processes. A process that has failed is first killed, then reaped through its pidfd,
 * and only then counted as down: until it is reaped it may still write to shared memory. */
#include "front/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "front/metrics.h"

enum { BACKOFF_FIRST_MS = 20, BACKOFF_MAX_MS = 1000, STABLE_NS = 5000000000 };

extern char **environ;

const char WORKER_STOPPING[] = "stopping";

static char program_dir[PATH_MAX];

enum error supervisor_init(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program_dir, sizeof program_dir - 1);
	char *slash;

	if (length < 0)
		return ERR_IO;
	program_dir[length] = '\0';
	slash = strrchr(program_dir, '/');
	*slash = '\0';
	snprintf(path, sizeof path, "%.*s/convolved-codec", (int)sizeof path - 32, program_dir);
	if (access(path, X_OK))
		snprintf(program_dir, sizeof program_dir, "%s", LIBEXECDIR);
	return ERR_OK;
}

/* Starts the process with its end of the socket pair as descriptor WORKER_SOCKET. */
static enum error spawn(struct worker *w, int socket)
{
	char path[PATH_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int failed;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	snprintf(path, sizeof path, "%.*s/%s", (int)sizeof path - 64, program_dir, w->argv[0]);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	failed = posix_spawn(&w->pid, path, &actions, &attributes, w->argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		log_error("cannot start %s: %s", path, strerror(failed));
	return failed ? ERR_IO : ERR_OK;
}

void worker_argument(struct worker *w, const char *argument, const char *value)
{
	int n = 0;

	while (w->argv[n])
		n++;
	assert(n + 2 < (int)(sizeof w->argv / sizeof *w->argv));
	w->argv[n] = strdup(argument);
	if (w->argv[n] && value)
		w->argv[n + 1] = strdup(value);
}

static void free_arguments(struct worker *w)
{
	for (int i = 0; w->argv[i]; i++) {
		free(w->argv[i]);
		w->argv[i] = NULL;
	}
}

static void worker_readable(void *context);
static void worker_ended(void *context);

/* Starts the process and watches it. On failure nothing is left running or open. */
static enum error launch(struct worker *w)
{
	int pair[2], pidfd;

	free_arguments(w);
	w->owner->prepare(w);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return ERR_IO;
	/* The worker's end blocks. */
	fcntl(pair[1], F_SETFL, fcntl(pair[1], F_GETFL) & ~O_NONBLOCK);
	if (spawn(w, pair[1])) {
		close(pair[0]);
		close(pair[1]);
		return ERR_IO;
	}
	close(pair[1]);
	pidfd = pidfd_open(w->pid, 0);
	if (pidfd < 0 || loop_watch(&w->process, pidfd, EPOLLIN, worker_ended, w) ||
	    loop_watch(&w->socket, pair[0], EPOLLIN, worker_readable, w)) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
		loop_unwatch(&w->process);
		if (pidfd >= 0)
			close(pidfd);
		close(pair[0]);
		return ERR_IO;
	}
	w->state = WORKER_STARTING;
	w->kill_reason = NULL;
	loop_timer_start(&w->timer, w->start_ms);
	w->started = loop_now();
	return ERR_OK;
}

static void schedule_restart(struct worker *w)
{
	uint64_t ms = w->failures < 10 ? (uint64_t)BACKOFF_FIRST_MS << w->failures : BACKOFF_MAX_MS;

	w->failures++;
	loop_timer_start(&w->timer, ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS);
}

void worker_stop(struct worker *w)
{
	w->stopped = true;
	if (w->state == WORKER_STOPPED)
		loop_timer_start(&w->timer, 0);
	else
		worker_kill(w, WORKER_STOPPING);
}

void worker_resume(struct worker *w)
{
	w->stopped = false;
	if (w->state == WORKER_STOPPED)
		loop_timer_start(&w->timer, 1);
}

void worker_restart_after(struct worker *w, uint64_t ms)
{
	loop_timer_start(&w->timer, ms);
}

static void timer_due(void *context)
{
	struct worker *w = context;

	if (w->state != WORKER_STOPPED)
		worker_kill(w, "start-timeout");
	else if (launch(w))
		schedule_restart(w);
}

enum error worker_start(struct worker *w)
{
	enum error e;

	w->socket.fd = w->process.fd = -1;
	w->state = WORKER_STOPPED;
	e = loop_timer_init(&w->timer, timer_due, w);
	if (!e && launch(w))
		schedule_restart(w);
	return e;
}

static void close_watch(struct loop_watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(watch);
	if (fd >= 0)
		close(fd);
}

void worker_kill(struct worker *w, const char *reason)
{
	if (w->state == WORKER_STOPPED)
		return;
	if (!w->kill_reason)
		w->kill_reason = reason;
	w->state = WORKER_DYING;
	close_watch(&w->socket);
	kill(w->pid, SIGKILL);
}

bool worker_send(struct worker *w, const struct message *message, const int *fds)
{
	if (w->state != WORKER_UP)
		return false;
	if (!wire_send(w->socket.fd, message, fds))
		return true;
	log_error("%s-%u does not take %s: %m", w->kind, w->number, message_name(message->type));
	worker_kill(w, errno == EAGAIN ? "stuck" : "socket");
	return false;
}

static void close_fds(const struct message *message, const int fds[MESSAGE_FDS_MAX])
{
	/* No message to the front carries descriptors, but a broken worker may send some. */
	static const int counts[MESSAGES] = {
#define MESSAGE(symbol, member, count) count,
#include "common/messages.def"
#undef MESSAGE
	};

	for (int i = 0; i < counts[message->type]; i++)
		close(fds[i]);
}

/* One message. The first must be READY (of the probe: DEVICE) and READY comes only once. */
static void worker_take(struct worker *w, const struct message *message)
{
	if (w->state == WORKER_STARTING) {
		w->state = WORKER_UP;
		if (message->type == MSG_READY) {
			loop_timer_start(&w->timer, 0);
			log_debug("%s-%u is up after %u ms", w->kind, w->number,
			          message->ready.startup_ms);
			w->owner->up(w, &message->ready);
			return;
		}
	}
	w->owner->message(w, message);
}

static void worker_readable(void *context)
{
	struct worker *w = context;
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	while (w->socket.fd >= 0) {
		switch (wire_receive(w->socket.fd, &message, fds)) {
		case WIRE_MESSAGE:
			close_fds(&message, fds);
			worker_take(w, &message);
			break;
		case WIRE_NOTHING:
			return;
		case WIRE_CLOSED:
			/* Its end follows; what it was doing is known only then. */
			close_watch(&w->socket);
			return;
		case WIRE_BROKEN:
			worker_kill(w, "protocol");
			return;
		}
	}
}

/* How a process ended, in a word for the metrics. */
static const char *end_reason(const struct worker *w, int status)
{
	if (w->kill_reason)
		return w->kill_reason;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL ? "killed" : "signal";
	return WEXITSTATUS(status) ? "error" : "exit";
}

/* It has ended by itself, or for what it did or did not do. */
static void worker_failed(struct worker *w, const char *reason, int status)
{
	char name[32];

	snprintf(name, sizeof name, "%s-%u", w->kind, w->number);
	log_event(LOG_LEVEL_WARNING,
	          LOG_FIELDS(.worker = name, .error = reason,
	                     .duration_us = (loop_now() - w->started) / 1000),
	          "%s (pid %d) has ended: %s, %s %d", name, (int)w->pid, reason,
	          WIFSIGNALED(status) ? "signal" : "status",
	          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	metric_add(METRIC_WORKER_RESTARTS, w->kind, reason, 1);
	w->restarts++;
	if (loop_now() - w->started > STABLE_NS)
		w->failures = 0;
	schedule_restart(w);
}

static void worker_ended(void *context)
{
	struct worker *w = context;
	const char *reason;
	int status = 0;

	if (waitpid(w->pid, &status, WNOHANG) != w->pid)
		return;
	reason = end_reason(w, status);
	close_watch(&w->socket);
	close_watch(&w->process);
	loop_timer_start(&w->timer, 0);
	w->state = WORKER_STOPPED;
	if (!w->stopped && reason == WORKER_STOPPING)
		worker_resume(w); /* asked for meanwhile */
	else if (!w->stopped && !w->once)
		worker_failed(w, reason, status);
	w->owner->down(w, reason);
}

void worker_fini(struct worker *w)
{
	if (w->state != WORKER_STOPPED) {
		worker_kill(w, WORKER_STOPPING);
		waitpid(w->pid, NULL, 0);
	}
	close_watch(&w->socket);
	close_watch(&w->process);
	loop_timer_fini(&w->timer);
	free_arguments(w);
}
