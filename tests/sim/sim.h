/* A simulation of the front: its real code on a loop, a kernel and a disk that are simulated, in
 * one thread, with workers and clients that are state machines. A seed decides everything: the
 * configuration, the load, which faults there are and when, and in what order things happen. So a
 * seed that fails does so each time.
 *
 *   chance    random numbers, faults                     loop     time, timers, the order of events
 *   kernel    sockets, pipes, signals                    threads  errands as coroutines
 *   disk      files that are slow or fail                workers  processes; codec, device, http
 *   client    connections and their requests             check    conditions at each step
 *   scenario  a seed's configuration and course */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "wire/wire.h"

#define SIM_US UINT64_C(1000)
#define SIM_MS UINT64_C(1000000)
#define SIM_S  UINT64_C(1000000000)

enum fault {
#define FAULT(symbol, one_in, text) FAULT_##symbol,
#include "faults.def"
#undef FAULT
	FAULTS
};

/* ---- chance ---- */

void sim_seed(uint64_t seed);
uint64_t sim_random(void);
/* A number below n (n > 0); one from `least` to `most`; true once in n times. */
uint64_t sim_below(uint64_t n);
uint64_t sim_between(uint64_t least, uint64_t most);
bool sim_once_in(uint64_t n);
/* A time up to `most`, mostly much shorter. */
uint64_t sim_while(uint64_t most);
/* True if this seed has the fault, and it happens now. */
bool sim_fault(enum fault fault);
/* The chance of each fault in this seed, once in so many times; 0: never. */
extern uint64_t sim_faults[FAULTS];
/* Chooses them. */
void sim_choose_faults(void);

/* ---- time and events ---- */

/* loop_now(), without letting time pass. */
extern uint64_t sim_now;
/* The last time when the front could do nothing for those who wait: it had no processor, or a link
 * was full. */
extern uint64_t sim_excuse;

typedef void sim_event(void *context, uint64_t number);
/* Calls it after so many nanoseconds. */
void sim_after(uint64_t ns, sim_event *event, void *context, uint64_t number);
/* Forgets everything that is due. */
void sim_loop_reset(void);
unsigned sim_loop_timers(void);
bool sim_loop_runs(void);
/* Turns of the loop so far. */
uint64_t sim_turns(void);

/* ---- the kernel ---- */

struct process;

/* Number of descriptors that are open, simulated ones included, of the front and of all others. */
unsigned sim_descriptors(void);
void sim_kernel_reset(void);
/* Readiness for the loop: bits of EPOLLIN and EPOLLOUT. */
uint32_t sim_ready(int fd);
/* True if the descriptor is a simulated worker's. */
bool sim_is_far(int fd);
/* Number of changes by which the descriptor became writable, for watches of edges. */
uint64_t sim_edges(int fd);
/* Raises a signal for the front's signalfd. */
void sim_raise(int number);
/* True if the front gets no descriptor now. */
bool sim_lacks_descriptor(void);
/* Duplicates a descriptor of either kind. */
int sim_duplicate(int fd);
/* Makes a descriptor a worker's, which reads nothing while it hangs. */
void sim_set_far(int fd, struct process *process);
/* A descriptor that becomes readable at the end of a process. */
int sim_pidfd(struct process *process);
/* Bytes that a socket takes. */
extern size_t sim_socket_room, sim_link_room;

/* ---- threads and the disk ---- */

/* In a thread: waits for so long; elsewhere does nothing. */
void sim_thread_pause(uint64_t ns);
bool sim_in_thread(void);
/* Lets the thread wait for an eventfd, or wakes those that do. */
void sim_thread_await(int fd);
void sim_thread_wake(int fd);
void sim_threads_reset(void);
void sim_disk_init(void);
void sim_disk_reset(void);

/* ---- workers ---- */

struct program {
	const char *name;
	/* NULL: there is nothing to do. */
	void (*prepare)(struct process *p, struct message_ready *ready);
	void (*message)(struct process *p, const struct message *message, const int *fds);
	void (*down)(struct process *p);
};

extern const struct program sim_codec, sim_device, sim_http;

struct process {
	const struct program *program;
	struct process *next;
	char name[32];
	unsigned number;
	pid_t pid;
	struct loop_watch socket; /* its end; fd -1 once it is closed */
	int log;
	bool is_probe, is_up, has_ended, is_reaped;
	bool is_stopped, is_hung; /* it gets no processor time */
	bool is_killed;           /* by the front, perhaps in vain for a while */
	bool works;               /* it uses processor time */
	uint64_t works_since, worked;
	uint64_t heard; /* when it last read a message */
	int status;     /* for waitpid() */
	void *state;
};

extern struct process *sim_processes;

/* Ends a process now, as waitpid() will tell. */
void sim_exit(struct process *p, int status);
/* Sends a message without descriptors, unless the process has ended or hangs. */
void sim_send(struct process *p, const struct message *message);
/* Sets whether the process is computing. */
void sim_work(struct process *p, bool works);
/* A worker may fail now in one of the ways in which all may; true if it has ended. */
bool sim_may_fail(struct process *p);
void sim_workers_reset(void);
/* The process of this id, or NULL. */
struct process *sim_process_of(pid_t pid);

/* True while devices compute wrong pixels. */
bool sim_devices_are_wrong(void);
/* Number of devices of the machine. */
extern unsigned sim_devices;
void sim_devices_reset(void);

/* ---- clients ---- */

struct link;

/* A worker that serves connections, as the client sees it. */
struct http;

/* Number of HTTP workers that accept connections; the i-th of them; a new number for a connection
 * or a request. */
unsigned sim_https(void);
struct http *sim_http_get(unsigned i);
uint64_t sim_http_number(struct http *http);
bool sim_http_is_full(struct http *http);

struct link_message;

/* Sends a message to the front; false: the worker has gone. */
bool sim_http_tell(struct http *http, const struct link_message *message);
/* Gives a message to the client that it is about, who sets its descriptor to -1 to keep it. */
void sim_client_receive(struct http *http, struct link_message *message);
/* Ends all connections of a worker that has ended. */
void sim_client_lost(struct http *http);

/* SIM_WAIT_S: seconds for which a client lets a request wait. */
enum { SIM_NAMES = 5, SIM_WAIT_S = 20 };
extern const char *const sim_names[SIM_NAMES];

/* Begins a client after a while; herd: one of those that ask for the same large answer. */
void sim_client_begin(uint64_t ns, bool herd);
/* Number of connections. */
unsigned sim_clients(void);
void sim_clients_reset(void);
/* Describes the oldest unanswered request. */
void sim_clients_describe(char *text, size_t room);

/* ---- checks ---- */

/* Reports a violation, and ends the process. */
void violated(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define must(condition)                                                                            \
	((condition) ? (void)0 : violated("%s:%d: %s", __FILE__, __LINE__, #condition))
/* Writes a line of the trace, if wanted. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool sim_tracing;

/* Makes what the lives of a service share. */
void check_share(void);
void check_reset(void);
/* Their parts: jobs and tiles; links and answers. */
void check_work_idle(void);
void check_work_reset(void);
void check_answers_step(void);
void check_answers_reset(void);
/* check_crash() notes the jobs that clients may know; check_recovery() looks for them after the
 * next start. */
void check_crash(void);
uint64_t check_crashed_at(void);
void check_recovery(void);
/* Checks what holds after each turn of the loop. */
void check_step(void);
/* Checks what holds when all clients have gone and their jobs have been forgotten. */
void check_idle(void);
/* Notes that a device has sent a tile back, or that a process has ended. */
void check_tile_back(struct process *device, uint64_t job, uint32_t index);
void check_process_ended(struct process *p);

/* ---- scenario ---- */

/* False once the service is being stopped. */
bool scenario_accepts(void);
/* Notes that a request was answered so long after it was complete. */
void scenario_answered(uint64_t ns);
/* Faults do not happen any more. */
extern bool sim_calm;
/* Removes what a process that has run seeds may have left. */
void scenario_tidy(pid_t pid);
/* Runs a seed from the start of the front to its end. */
void scenario_run(uint64_t seed);

/* Sums over all seeds, and how often each status was answered. */
enum count {
#define COUNT(symbol, text) COUNT_##symbol,
#include "counts.def"
#undef COUNT
	COUNTS
};
extern uint64_t *sim_counts, *sim_statuses;
