/* The worker processes. A failed process is first killed, then reaped through its pidfd, and only
 * then reported as down, since it may write to shared memory until it is reaped. */
#include "front/workers/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "base/log.h"
#include "base/memfd.h"
#include "front/base/metrics.h"
#include "front/config/config.h"

enum {
	BACKOFF_FIRST_MS = 20,
	BACKOFF_MAX_MS = 1000,
	STABLE_NS = 5000000000,
	MESSAGES_A_TURN = 32,
	REAP_MS = 2000,          /* time limit for a killed process to end */
	MESSAGES_LEFT_MAX = 1024 /* more than a socket can hold */
};

const char WORKER_STOPPING[] = "stopping", WORKER_LOST[] = "unkillable";

/* The workers' programs, as they were when the front started. */
static struct {
	const char *name;
	int fd;
} programs[] = {{"convolved-codec", -1},
                {"convolved-device", -1},
                {"convolved-http", -1},
                {"convolved-trace", -1}};

/* The workers' environment: our own, and LOG_RELAY, which tells them to log for the relay. */
static char **environment;
static bool mismatched;
static LIST_HEAD(worker_list, worker) workers = LIST_HEAD_INITIALIZER(workers);
/* The ids of processes that did not end after SIGKILL, because they are in an uninterruptible
 * system call. They are reaped when they end. */
static GSList *lost;
static struct loop_timer check;
static uint64_t fini_until; /* loop_now(); 0: no process has been waited for */

static void check_workers(void *context);

enum error supervisor_init(void)
{
	char directory[PATH_MAX], path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);

	if (length < 0)
		return ERR_IO;
	/* The workers' programs: those in this program's directory, or else the installed ones. */
	directory[length] = '\0';
	*strrchr(directory, '/') = '\0';
	snprintf(path, sizeof path, "%s/%s", directory, programs[0].name);
	if (access(path, X_OK))
		snprintf(directory, sizeof directory, "%s", LIBEXECDIR);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		int low;

		snprintf(path, sizeof path, "%s/%s", directory, programs[i].name);
		low = open(path, O_PATH | O_CLOEXEC);
		/* The child replaces descriptors up to WORKER_SOCKET before it executes. */
		programs[i].fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, WORKER_SOCKET + 1);
		if (low >= 0)
			close(low);
		if (programs[i].fd < 0) {
			log_error("cannot open %s: %m", path);
			return ERR_IO;
		}
	}
	environment = g_environ_setenv(g_get_environ(), LOG_RELAY, "1", TRUE);
	if (loop_timer_init(&check, check_workers, NULL))
		return ERR_IO;
	loop_timer_repeat(&check, STALL_LOOK_MS);
	return ERR_OK;
}

void supervisor_fini(void)
{
	g_clear_slist(&lost, NULL);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		close(programs[i].fd);
	loop_timer_fini(&check);
	g_strfreev(environment);
}

bool supervisor_mismatched(void)
{
	return mismatched;
}

/* Starts the process with the worker's end of the socket pair as WORKER_SOCKET, and the writing end
 * of the log pipe as standard output and error. */
static enum error spawn(struct worker *w, int socket, int log)
{
	const char *const argv[] = {w->owner->program, w->name, NULL};
	char path[32];
	posix_spawn_file_actions_t actions;
	size_t program = 0;
	int failed;

	while (strcmp(programs[program].name, w->owner->program))
		program++;
	snprintf(path, sizeof path, "/proc/self/fd/%d", programs[program].fd);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
	posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	failed = posix_spawn(&w->pid, path, &actions, NULL, (char *const *)argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		log_error("cannot start %s: %s", w->owner->program, strerror(failed));
	return failed ? ERR_IO : ERR_OK;
}

static void close_process(struct worker *w)
{
	loop_close(&w->socket);
	loop_close(&w->process);
	relay_close(&w->relay);
	loop_timer_start(&w->timer, 0);
	w->state = WORKER_STOPPED;
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

/* Tells the owner that no process runs any more, after scheduling the next start; an unrequested
 * end is counted as a failure. */
static void worker_down(struct worker *w, const char *reason)
{
	uint64_t ms = w->failures < 10 ? (uint64_t)BACKOFF_FIRST_MS << w->failures : BACKOFF_MAX_MS;

	if (!w->stopped && reason == WORKER_STOPPING) {
		worker_resume(w); /* called while it was ending */
	} else if (!w->stopped && !w->owner->once) {
		metric_add(METRIC_WORKER_RESTARTS, w->owner->kind, reason, 1);
		w->restarts++;
		w->failures++;
		loop_timer_start(&w->timer, ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS);
	}
	if (w->owner->down)
		w->owner->down(w, reason);
}

static void worker_readable(void *context);
static void worker_ended(void *context);

/* Starts the process, with a socket and a pipe to the front, and watches it. On failure nothing is
 * left running or open, and the owner is told. */
static void launch(struct worker *w)
{
	int pair[2], log;
	enum error e;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
		worker_down(w, "exec");
		return;
	}
	/* Workers use blocking sockets. */
	fcntl(pair[1], F_SETFL, fcntl(pair[1], F_GETFL) & ~O_NONBLOCK);
	e = loop_adopt(&w->socket, pair[0], EPOLLIN, worker_readable, w);
	if (!e)
		e = relay_open(&w->relay, &log);
	if (!e) {
		e = spawn(w, pair[1], log);
		close(log);
	}
	close(pair[1]);
	if (!e) {
		w->relay.pid = w->pid;
		e = loop_adopt(&w->process, pidfd_open(w->pid, 0), EPOLLIN, worker_ended, w);
		if (e) {
			kill(w->pid, SIGKILL);
			waitpid(w->pid, NULL, 0);
		}
	}
	if (e) {
		close_process(w);
		worker_down(w, "exec");
		return;
	}
	w->state = WORKER_STARTING;
	w->greeted = false;
	w->kill_reason = NULL;
	stall_init(&w->stall, w->pid);
	loop_timer_start(&w->timer, config->start_timeout * 1000);
	w->started = loop_now();
	w->served = w->files_most = 0;
}

static void timer_due(void *context)
{
	struct worker *w = context;

	if (w->state != WORKER_STOPPED)
		worker_kill(w, "start-timeout");
	else
		launch(w);
}

enum error worker_start(struct worker *w, const struct worker_owner *owner, uint32_t number)
{
	enum error e;

	if (w->state == WORKER_UP) {
		w->owner = owner;
		w->state = WORKER_STARTING;
		w->greeted = false;
		return ERR_OK;
	}
	worker_fini(w);
	*w = (struct worker){.owner = owner,
	                     .number = number,
	                     .socket.fd = -1,
	                     .process.fd = -1,
	                     .relay = {owner->kind, w->name, owner->program, .fd = -1}};
	snprintf(w->name, sizeof w->name, "%s-%u", owner->kind, number);
	e = loop_timer_init(&w->timer, timer_due, w);
	LIST_INSERT_HEAD(&workers, w, place);
	if (!e)
		launch(w);
	return e;
}

/* Marks the worker as dying; check_dying() kills it if it does not end soon. */
static void expect_end(struct worker *w)
{
	if (w->state != WORKER_DYING)
		w->dying_since = loop_now();
	w->state = WORKER_DYING;
	loop_close(&w->socket);
}

void worker_kill(struct worker *w, const char *reason)
{
	if (w->state == WORKER_STOPPED)
		return;
	expect_end(w);
	if (!w->kill_reason) {
		w->kill_reason = reason;
		w->dying_since = loop_now();
	}
	kill(w->pid, SIGKILL);
}

void worker_limit_files(struct worker *w, uint64_t size)
{
	struct rlimit limit;

	if (w->state != WORKER_UP || size == w->files_most ||
	    prlimit(w->pid, RLIMIT_FSIZE, NULL, &limit))
		return;
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	if (prlimit(w->pid, RLIMIT_FSIZE, &limit, NULL))
		log_warning("%s: cannot limit its files: %m", w->name);
	else
		w->files_most = size;
}

bool worker_send(struct worker *w, const struct message *message, const int *fds)
{
	if (w->state != WORKER_UP)
		return false;
	if (!wire_send(w->socket.fd, message, fds))
		return true;
	log_notice("%s does not take %s: %m", w->name, message_name(message->type));
	if (errno == EAGAIN)
		worker_kill(w, "stuck");
	else
		expect_end(w);
	return false;
}

void worker_refuse(struct worker *w, const char *what)
{
	log_warning("%s sent an invalid %s", w->name, what);
	worker_kill(w, "protocol");
}

/* Sends the worker the data that it needs before it is confined. But its first message must have
 * this build's version; otherwise no message could be understood. Restarting the worker would not
 * help, since its program stays open: the service stops, and finds a matching program when it is
 * started again. */
static void worker_greets(struct worker *w, const struct message *message)
{
	struct start start = {.log_level = (uint32_t)(LOG_LEVEL_ERROR + config->log_level)};
	const struct message answer = {.type = MSG_START};
	int fd;

	if (message->type != MSG_HELLO) {
		worker_refuse(w, message_name(message->type));
		return;
	}
	w->greeted = true;
	if (strncmp(message->hello.version, WIRE_VERSION, sizeof message->hello.version)) {
		log_error("%s is of version %.63s, convolved of version %s: stopping, because they "
		          "cannot work together (is an upgrade in progress or incomplete?)",
		          w->owner->program, message->hello.version, WIRE_VERSION);
		mismatched = true;
		worker_kill(w, "version");
		loop_stop();
		return;
	}
	if (w->owner->prepare)
		w->owner->prepare(w, &start);
	if (memfd_sealed("start", &start, sizeof start, &fd)) {
		log_error("cannot start %s: %m", w->name);
		worker_kill(w, "exec");
		return;
	}
	if (wire_send(w->socket.fd, &answer, &fd))
		expect_end(w);
	close(fd);
}

/* Handles one message: first HELLO, second READY (unless it is `once`), which is not repeated. */
static void handle_message(struct worker *w, const struct message *message)
{
	bool first = w->state == WORKER_STARTING;

	if (!w->greeted) {
		worker_greets(w, message);
		return;
	}
	w->state = WORKER_UP;
	if (first && !w->owner->once && message->type == MSG_READY) {
		loop_timer_start(&w->timer, 0);
		log_debug("%s is up after %u ms", w->name, message->ready.startup_ms);
		if (w->owner->up)
			w->owner->up(w, &message->ready);
	} else if ((first && !w->owner->once) || !w->owner->message) {
		worker_refuse(w, message_name(message->type));
	} else {
		w->owner->message(w, message);
	}
}

static void receive_messages(struct worker *w, unsigned max)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	for (unsigned i = 0; i < max && w->socket.fd >= 0; i++) {
		switch (wire_receive(w->socket.fd, &message, fds)) {
		case WIRE_MESSAGE:
			/* Messages to the front carry no descriptors, but a faulty worker's may. */
			for (unsigned f = 0; f < message_fds(message.type); f++)
				close(fds[f]);
			handle_message(w, &message);
			break;
		case WIRE_NOTHING:
			return;
		case WIRE_CLOSED:
			expect_end(w);
			return;
		case WIRE_BROKEN:
			worker_refuse(w, "packet");
			return;
		}
	}
}

/* Limits messages per turn, so that a flooding worker does not block the loop. */
static void worker_readable(void *context)
{
	receive_messages(context, MESSAGES_A_TURN);
}

bool worker_was_killed(const char *reason)
{
	return !strcmp(reason, "killed") || !strcmp(reason, "stopped");
}

/* Names the way in which a process ended, as a label for the metrics. */
static const char *end_reason(const struct worker *w, int status)
{
	/* A process gets these signals because of its own actions; others come from elsewhere. */
	static const int own[] = {SIGABRT, SIGBUS,  SIGFPE,  SIGILL, SIGSEGV,
	                          SIGSYS,  SIGTRAP, SIGXCPU, SIGXFSZ};

	if (w->kill_reason)
		return w->kill_reason;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status) ? "error" : "exit";
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i] == WTERMSIG(status))
			return "signal";
	return "killed";
}

static void worker_ended(void *context)
{
	struct worker *w = context;
	const char *reason;
	int status = 0;

	receive_messages(w, MESSAGES_LEFT_MAX);
	if (waitpid(w->pid, &status, WNOHANG) != w->pid) {
		/* A tracer (a debugger, say) reaps it first. */
		loop_close(&w->process);
		expect_end(w);
		return;
	}
	reason = end_reason(w, status);
	close_process(w);
	if (!w->stopped && !w->owner->once && reason != WORKER_STOPPING) {
		log_event(LOG_LEVEL_WARNING,
		          LOG_FIELDS(.worker = w->name, .error = reason,
		                     .duration_us = (loop_now() - w->started) / 1000),
		          "%s (pid %d) has ended: %s, %s %d", w->name, (int)w->pid, reason,
		          WIFSIGNALED(status) ? "signal" : "status",
		          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		if (w->served || loop_now() - w->started > STABLE_NS)
			w->failures = 0;
	}
	worker_down(w, reason);
}

/* Kills a worker that has not ended although its socket is closed; abandons one that SIGKILL does
 * not end, so that its owner must replace the memory that it shares. */
static void check_dying(struct worker *w)
{
	uint64_t dying_ms = (loop_now() - w->dying_since) / 1000000;

	/* A loop that was held up may not know of the end yet. */
	if (w->process.fd < 0 || dying_ms > REAP_MS)
		worker_ended(w);
	if (w->state != WORKER_DYING || dying_ms <= (w->kill_reason ? REAP_MS : REAP_MS / 2))
		return;
	if (!w->kill_reason) {
		worker_kill(w, "socket");
		return;
	}
	lost = g_slist_prepend(lost, GINT_TO_POINTER(w->pid));
	log_error("%s (pid %d) has not ended %d s after SIGKILL: it is abandoned", w->name,
	          (int)w->pid, (int)(REAP_MS / 1000));
	close_process(w);
	worker_down(w, WORKER_LOST);
}

static void check_workers(void *)
{
	struct worker *w;
	const char *reason;

	for (GSList *at = lost, *next; at; at = next) {
		const pid_t pid = GPOINTER_TO_INT(at->data);

		next = at->next;
		if (waitpid(pid, NULL, WNOHANG) == 0)
			continue;
		log_notice("abandoned process %d has ended", (int)pid);
		lost = g_slist_delete_link(lost, at);
	}
	LIST_FOREACH(w, &workers, place) {
		if (w->state == WORKER_DYING) {
			check_dying(w);
		} else if (w->state != WORKER_STOPPED) {
			reason = stall_look(&w->stall, w->state == WORKER_UP && w->owner->busy &&
			                                   w->owner->busy(w));
			if (reason)
				worker_kill(w, reason);
		}
	}
}

void worker_fini(struct worker *w)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	if (!w->owner)
		return;
	if (w->state != WORKER_STOPPED) {
		worker_kill(w, WORKER_STOPPING);
		if (!fini_until)
			fini_until = loop_now() + REAP_MS * UINT64_C(1000000);
		while (waitpid(w->pid, NULL, WNOHANG) == 0 && loop_now() < fini_until)
			nanosleep(&pause, NULL);
	}
	close_process(w);
	loop_timer_fini(&w->timer);
	LIST_REMOVE(w, place);
	w->owner = NULL;
}
