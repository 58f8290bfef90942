/* The simulated workers' processes: their start, their messages, the ways in which any of them
 * fails, and their end; and the system's calls by which the front starts and watches them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "process/start.h"
#include "sim.h"

/* REAL_FDS: more than the front has of the system's own. */
enum { FIRST_PID = 1000000, FIRST_CLOCK = 1 << 20, REAL_FDS = 64 };

struct process *sim_processes;
static unsigned process_count;
/* That the front has with a silent HTTP worker, less what a pause may take. */
static const uint64_t PATIENCE = 4 * SIM_S;
static const struct program *const programs[] = {&sim_codec, &sim_device, &sim_http};

struct process *sim_process_of(pid_t pid)
{
	struct process *p = sim_processes;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

void sim_workers_reset(void)
{
	struct process *p;

	while ((p = sim_processes)) {
		sim_processes = p->next;
		must(p->has_ended);
		free(p->state);
		free(p);
	}
	process_count = 0;
}

/* ---- processor time ---- */

static uint64_t time_used(const struct process *p)
{
	return p->worked +
	       (p->works && !p->is_hung && !p->is_stopped ? sim_now - p->works_since : 0);
}

void sim_work(struct process *p, bool works)
{
	p->worked = time_used(p);
	p->works_since = sim_now;
	p->works = works;
}

static void hang(struct process *p, bool stopped)
{
	p->worked = time_used(p);
	p->is_hung = true;
	p->is_stopped |= stopped;
}

/* ---- the end ---- */

void sim_exit(struct process *p, int status)
{
	if (p->has_ended)
		return;
	sim_trace("%s ends with status %d", p->name, status);
	p->status = status;
	p->has_ended = true;
	sim_counts[COUNT_ENDED]++;
	if (p->program->down)
		p->program->down(p);
	check_process_ended(p);
	loop_close(&p->socket);
	close(p->log);
}

static void die(void *context, uint64_t status)
{
	sim_exit(context, (int)status);
}

bool sim_may_fail(struct process *p)
{
	if (p->has_ended)
		return true;
	if (sim_fault(FAULT_CRASH))
		sim_exit(p, SIGSEGV);
	else if (sim_fault(FAULT_KILLED))
		sim_exit(p, SIGKILL);
	else if (sim_fault(FAULT_STOPPED))
		hang(p, true);
	else if (sim_fault(FAULT_HANG))
		hang(p, false);
	return p->has_ended;
}

/* ---- messages ---- */

void sim_send(struct process *p, const struct message *message)
{
	if (p->has_ended || p->is_hung)
		return;
	if (wire_send(p->socket.fd, message, NULL)) {
		must(errno == EPIPE || errno == EAGAIN);
		sim_exit(p, errno == EPIPE ? 0 : SIGABRT); /* a real one would wait */
	}
}

static void say_hello(void *context, uint64_t number)
{
	struct process *p = context;
	struct message hello = {.type = MSG_HELLO};

	(void)number;
	snprintf(hello.hello.version, sizeof hello.hello.version, "%s", WIRE_VERSION);
	sim_send(p, &hello);
}

static void get_ready(void *context, uint64_t number)
{
	struct process *p = context;
	struct message ready = {.type = MSG_READY};

	(void)number;
	if (p->has_ended || p->is_hung)
		return;
	if (p->is_probe) {
		p->program->message(p, NULL, NULL);
		say_hello(p, 0);
		return;
	}
	if (p->program->prepare)
		p->program->prepare(p, &ready.ready);
	p->is_up = true;
	sim_work(p, false);
	sim_send(p, &ready);
}

static void receive_start(struct process *p, int fd)
{
	struct start start;

	must(file_read(fd, &start, sizeof start, 0));
	close(fd);
	p->is_probe = p->program == &sim_device && !start.has_device;
	if (sim_fault(FAULT_NO_START))
		sim_exit(p, 1 << 8);
	else
		sim_after(sim_fault(FAULT_SLOW_START) ? sim_while(8 * SIM_S) : sim_while(SIM_MS),
		          get_ready, p, 0);
}

static void receive(void *context)
{
	enum { A_TURN = 8 };
	struct process *p = context;
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	for (int i = 0; i < A_TURN && !p->has_ended && !p->is_hung; i++) {
		switch (wire_receive(p->socket.fd, &message, fds)) {
		case WIRE_MESSAGE:
			sim_trace("%s receives %s", p->name, message_name(message.type));
			if (message.type == MSG_START)
				receive_start(p, fds[0]);
			else
				p->program->message(p, &message, fds);
			break;
		case WIRE_NOTHING:
			return;
		case WIRE_CLOSED:
			sim_exit(p, 0);
			return;
		case WIRE_BROKEN:
			violated("%s got a broken message", p->name);
		}
	}
}

/* ---- the system's calls ---- */

static int spawn_socket, spawn_log;

int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int from, int to);

int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int from, int to)
{
	(void)actions;
	if (to == WORKER_SOCKET)
		spawn_socket = from;
	else
		spawn_log = from;
	return 0;
}

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const env[]);

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
	struct process *p = calloc(1, sizeof *p);

	(void)path, (void)actions, (void)attributes, (void)env;
	must(p);
	for (int fd = STDERR_FILENO + 1; fd < REAL_FDS; fd++)
		if (!fcntl(fd, F_GETFD))
			violated("%s inherits descriptor %d", argv[1], fd);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (!strcmp(programs[i]->name, argv[0]))
			p->program = programs[i];
	must(p->program);
	snprintf(p->name, sizeof p->name, "%s", argv[1]);
	p->number = (unsigned)atoi(strrchr(p->name, '-') + 1);
	p->pid = *pid = FIRST_PID + (pid_t)process_count++;
	p->log = sim_duplicate(spawn_log);
	p->next = sim_processes;
	sim_processes = p;
	must(!loop_watch(&p->socket, sim_duplicate(spawn_socket), EPOLLIN, receive, p));
	sim_set_far(p->socket.fd, p);
	sim_work(p, true);
	sim_trace("%s starts as %d", p->name, (int)p->pid);
	sim_after(sim_while(SIM_MS), say_hello, p, 0);
	return 0;
}

int __wrap_pidfd_open(pid_t pid, unsigned flags);

int __wrap_pidfd_open(pid_t pid, unsigned flags)
{
	(void)flags;
	if (sim_lacks_descriptor()) {
		errno = EMFILE;
		return -1;
	}
	return sim_pidfd(sim_process_of(pid));
}

int __wrap_kill(pid_t pid, int number);

int __wrap_kill(pid_t pid, int number)
{
	struct process *p = sim_process_of(pid);

	must(p && !p->is_reaped && number == SIGKILL);
	sim_trace("%s is killed", p->name);
	/* An HTTP worker that reads is never killed: all its connections would be lost. */
	if (p->program == &sim_http && sim_loop_runs() && p->is_up && !p->is_hung &&
	    !sim_faults[FAULT_NO_DESCRIPTOR] && sim_now - p->heard < PATIENCE &&
	    sim_now - sim_excuse > PATIENCE)
		violated("%s is killed, though it is well", p->name);
	hang(p, false);
	p->is_killed = true;
	sim_after(sim_fault(FAULT_UNKILLABLE) ? sim_while(6 * SIM_S) : sim_while(2 * SIM_MS), die,
	          p, SIGKILL);
	return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options);

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	struct process *p = sim_process_of(pid);

	must(p);
	if (!options) /* it has been killed */
		sim_exit(p, SIGKILL);
	if (p->is_reaped) {
		errno = ECHILD;
		return -1;
	}
	if (!p->has_ended)
		return 0;
	p->is_reaped = true;
	if (status)
		*status = p->status;
	return pid;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	const struct process *p = sim_process_of((pid_t)id);

	(void)type, (void)options;
	must(p && !p->is_reaped);
	if (!p->is_stopped)
		return 0;
	info->si_pid = (pid_t)id;
	info->si_code = CLD_STOPPED;
	return 0;
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before);

/* The front's handler of crashes would hide them. */
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	(void)number, (void)action, (void)before;
	return 0;
}

int __wrap_prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *new,
                   struct rlimit *old);

int __wrap_prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *new,
                   struct rlimit *old)
{
	(void)pid, (void)resource, (void)new;
	if (old)
		*old = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	return 0;
}

int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock);

int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	*clock = FIRST_CLOCK + pid - FIRST_PID;
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	const uint64_t since_1970 = UINT64_C(1700000000) * SIM_S;
	const struct process *p =
	    clock >= FIRST_CLOCK ? sim_process_of(FIRST_PID + clock - FIRST_CLOCK) : NULL;
	uint64_t ns = loop_now();

	if (clock == CLOCK_REALTIME)
		ns += since_1970;
	else if (p)
		ns = time_used(p);
	now->tv_sec = (time_t)(ns / SIM_S);
	now->tv_nsec = (long)(ns % SIM_S);
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

/* The front sleeps only at its end, for processes that it has killed. */
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	sim_now += (uint64_t)time->tv_nsec;
	for (struct process *p = sim_processes; p; p = p->next)
		if (p->is_killed && sim_once_in(3))
			sim_exit(p, SIGKILL);
	return 0;
}
