/* The compiler process inherits two descriptors. COMPILER_MEMORY is a memfd shared with the worker;
 * it takes the number of the worker's socket to the front, which a compiler must not have. Its
 * first page holds the end of the compiler's pause; the binary follows. COMPILER_SOCKET carries
 * requests and replies: the binary's size, 0 if there is none.
 *
 * The worker may not send signals (sandbox.h), so a timer interrupts the compiler after every
 * TURN_MS of processor time; the signal handler reads the page and sleeps if it must. */
#include "device/cl/compile_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "device/cl/environment.h"
#include "process/stall.h"
#include "wire/wire.h"

enum {
	COMPILER_MEMORY = WORKER_SOCKET,
	COMPILER_SOCKET,
	PAGE = 4096,
	LIMIT_S = 300,
	TRIES_MAX = 2,
	TURN_MS = 10,  /* processor time between two looks at the page */
	ASIDE_MS = 90, /* the longest pause at each look */
	NAP_MS = 5
};

struct request {
	char file[64], options[320]; /* as for program_make() */
	int32_t type;                /* enum pixel_type */
};

struct compile_process {
	const struct program_source *source;
	bool patient;
	int stop_fd, memory;
	_Atomic uint64_t *aside_until; /* in the memory: end of the pause, in now_ns()'s time */
	int socket;                    /* to the process; -1: closed */
	pid_t pid;                     /* the last process, until it is reaped; 0: none */
	struct stall stall;
};

struct compile_process *compile_process_new(const struct program_source *source, bool patient,
                                            int stop_fd)
{
	struct compile_process *p = calloc(1, sizeof *p);
	int memory;

	if (!p)
		return NULL;
	*p = (struct compile_process){
	    .source = source, .patient = patient, .stop_fd = stop_fd, .socket = -1};
	/* Above the numbers that the process inherits: see start(). */
	memory = memfd_create("program", MFD_CLOEXEC);
	p->memory = memory < 0 ? -1 : fcntl(memory, F_DUPFD_CLOEXEC, COMPILER_SOCKET + 1);
	p->aside_until = p->memory < 0 || ftruncate(p->memory, PAGE)
	                     ? MAP_FAILED
	                     : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0);
	if (p->aside_until == MAP_FAILED) {
		log_error("cannot set up a compiler process: %s", strerror(errno));
		p->aside_until = NULL;
		compile_process_free(&p);
	}
	file_close(&memory);
	return p;
}

void compile_process_rest(struct compile_process *p)
{
	file_close(&p->socket);
}

void compile_process_free(struct compile_process **process)
{
	struct compile_process *p = *process;

	if (!p)
		return;
	compile_process_rest(p);
	if (p->aside_until)
		munmap(p->aside_until, PAGE);
	file_close(&p->memory);
	free(p);
	*process = NULL;
}

void compile_process_stand_back(struct compile_process *p, uint64_t until_ns)
{
	atomic_store(p->aside_until, until_ns);
}

/* Waits for a reply. Returns NULL if the process has replied or ended; otherwise the reason why it
 * is stalled, or "" if the worker is stopping. */
static const char *await(struct compile_process *p)
{
	struct pollfd wait[2] = {{.fd = p->socket, .events = POLLIN},
	                         {.fd = p->stop_fd, .events = POLLIN}};
	const char *why = NULL;
	int count = 0;

	while (count <= 0 && !why) {
		count = poll(wait, 2, STALL_LOOK_MS);
		/* A patient process may get no processor time for a while; that is no stall. */
		if (count <= 0)
			why = stall_look(&p->stall, !p->patient);
	}
	return count > 0 && wait[1].revents ? "" : why;
}

/* Reaps a process that has ended. Returns true if a signal other than the time limit's killed it:
 * the program may not be the cause, so another attempt is worth while. *deadly: a signal killed
 * it. */
static bool reap(struct compile_process *p, bool *deadly)
{
	int status = 0;

	compile_process_rest(p);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	p->pid = 0;
	*deadly = WIFSIGNALED(status);
	if (*deadly && WTERMSIG(status) == SIGALRM) {
		log_error("a compiler took more than %d s", LIMIT_S);
		return false;
	}
	if (*deadly)
		log_error("a compiler was killed by signal %d", WTERMSIG(status));
	return *deadly;
}

/* Starts a process; false, logged, on failure. */
static bool start(struct compile_process *p)
{
	const struct device *device = p->source->device;
	char platform[16], index[16];
	const char *argv[] = {"convolved-device",
	                      p->patient ? "--compile-patiently" : "--compile",
	                      "--platform",
	                      platform,
	                      "--device",
	                      index,
	                      p->source->kernel_dir ? "--kernel-dir" : NULL,
	                      p->source->kernel_dir,
	                      NULL};
	struct pollfd stop = {.fd = p->stop_fd, .events = POLLIN};
	posix_spawn_file_actions_t actions;
	int pair[2], code;

	/* Only one process runs at a time; the last one must have ended. */
	stall_init(&p->stall, p->pid);
	while (p->pid && waitpid(p->pid, NULL, WNOHANG) == 0) {
		if (poll(&stop, 1, NAP_MS) > 0)
			return false;
		if (stall_look(&p->stall, false))
			break; /* stopped by a signal; it ends when it is continued */
	}
	p->pid = 0;
	snprintf(platform, sizeof platform, "%u", device->platform);
	snprintf(index, sizeof index, "%u", device->index);
	code = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ? errno : 0;
	if (!code) {
		p->socket = pair[0];
		posix_spawn_file_actions_init(&actions);
		/* The socket may have either number, the memory neither. */
		posix_spawn_file_actions_adddup2(&actions, pair[1], COMPILER_SOCKET);
		posix_spawn_file_actions_adddup2(&actions, p->memory, COMPILER_MEMORY);
		code = posix_spawn(&p->pid, "/proc/self/exe", &actions, NULL, (char **)argv,
		                   environment_unspoiled());
		posix_spawn_file_actions_destroy(&actions);
		close(pair[1]);
	}
	if (!code) {
		stall_init(&p->stall, p->pid);
		return true;
	}
	log_error("cannot start a compiler: %s", strerror(code));
	compile_process_rest(p);
	p->pid = 0;
	return false;
}

/* Makes one attempt. *again: another attempt may succeed. */
static struct binary compile(struct compile_process *p, const struct request *request, bool *again)
{
	struct binary binary = {0};
	uint64_t size = 0;
	const char *why = NULL;

	*again = false;
	if (p->socket < 0 && !start(p))
		return binary;
	if (send(p->socket, request, sizeof *request, MSG_NOSIGNAL) == sizeof *request)
		why = await(p);
	if (why) {
		*again = binary.deadly = *why;
		if (*why)
			log_error("a compiler is %s; no longer waiting for it", why);
		/* This process may not kill the compiler, which ends when this process does. */
		compile_process_rest(p);
		p->pid = 0;
		return binary;
	}
	if (recv(p->socket, &size, sizeof size, MSG_DONTWAIT) != sizeof size) {
		*again = reap(p, &binary.deadly);
		return binary;
	}
	binary.size = size;
	binary.data = size ? malloc(size) : NULL;
	if (binary.data && !file_read(p->memory, binary.data, size, PAGE)) {
		free(binary.data);
		binary.data = NULL;
	}
	return binary;
}

struct binary compile_process_compile(struct compile_process *p, const char *file,
                                      const char *options, enum pixel_type type)
{
	struct request request = {.type = (int32_t)type};
	struct binary binary = {0};
	bool again = true;

	snprintf(request.file, sizeof request.file, "%s", file);
	snprintf(request.options, sizeof request.options, "%s", options);
	for (int i = 0; !binary.data && again && i < TRIES_MAX; i++)
		binary = compile(p, &request, &again);
	return binary;
}

/* ---- in the compiler process ---- */

static const _Atomic uint64_t *aside_until;
static int turns; /* timer signals during the current compilation */

/* Handles the timer's signal. Renews the alarm: LIMIT_S limits processor time, not pauses. */
static void look(int)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
	int error = errno;

	if (++turns < LIMIT_S * 1000 / TURN_MS)
		alarm(LIMIT_S);
	for (int ms = 0; ms < ASIDE_MS && now_ns() < atomic_load(aside_until); ms += NAP_MS)
		nanosleep(&nap, NULL);
	errno = error;
}

/* Answers one request. Returns false if there are no more. The parent may not kill a process that
 * takes too long, so an alarm ends it. */
static bool serve_one(const struct program_source *source)
{
	struct request request;
	struct binary binary = {0};
	uint64_t size = 0;
	cl_program program;

	if (recv(COMPILER_SOCKET, &request, sizeof request, 0) != sizeof request)
		return false;
	turns = 0;
	alarm(LIMIT_S);
	program = program_make(source, request.file, request.options, (enum pixel_type)request.type,
	                       WAY_COMPILE, NULL);
	if (program)
		binary = program_binary(program);
	if (binary.data && file_write(COMPILER_MEMORY, binary.data, binary.size, PAGE))
		size = binary.size;
	object_release(OBJECT_PROGRAM, program);
	free(binary.data);
	alarm(0);
	return send(COMPILER_SOCKET, &size, sizeof size, MSG_NOSIGNAL) == sizeof size;
}

int compile_process_serve(bool patient, unsigned platform, unsigned index, const char *kernel_dir)
{
	const struct sched_param none = {0};
	const struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
	const struct itimerval turn = {{.tv_usec = TURN_MS * 1000}, {.tv_usec = TURN_MS * 1000}};
	struct device device = {0};
	struct program_source source = {&device, kernel_dir, NULL};
	const char *above = getenv("POCL_CACHE_DIR");
	char directory[4096];
	bool own, opened;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "convolved-compile");
	/* PoCL starts a linker, which must not inherit these. */
	fcntl(COMPILER_SOCKET, F_SETFD, FD_CLOEXEC);
	fcntl(COMPILER_MEMORY, F_SETFD, FD_CLOEXEC);
	if (patient) {
		/* All threads of the driver inherit the priority. Without the priority or the
		 * timer, compiling continues but slows down other work. */
		aside_until = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, COMPILER_MEMORY, 0);
		if (sched_setscheduler(0, SCHED_IDLE, &none))
			log_warning("a compiler cannot take the lowest priority: %s",
			            strerror(errno));
		if (aside_until == MAP_FAILED || sigaction(SIGPROF, &action, NULL) ||
		    setitimer(ITIMER_PROF, &turn, NULL))
			log_warning("a compiler process cannot pause: %s", strerror(errno));
	}
	/* With POCL_KERNEL_CACHE=1 a program's path, which PoCL stores in the binary, depends on
	 * the program's content instead of being random. */
	own = work_directory_make(above ? above : "/tmp", "convolved-compile-", directory,
	                          sizeof directory) &&
	      !setenv("POCL_CACHE_DIR", directory, 1) && !setenv("POCL_KERNEL_CACHE", "1", 1);
	if (!own)
		log_warning("cannot create a directory for a compiler process: %s",
		            strerror(errno));
	opened = own && !device_open(&device, platform, index);
	while (opened && serve_one(&source))
		continue;
	if (own)
		work_directory_remove(directory);
	_exit(opened ? 0 : 1); /* without the driver's exit handlers, which are slow */
}
