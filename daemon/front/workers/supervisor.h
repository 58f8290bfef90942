/* The worker processes: starts, watches, reaps and restarts them (with backoff), and receives their
 * messages for their owners. A worker that is stopped, or uses no processor time although it has
 * work, is killed within four seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/loop.h"
#include "front/workers/relay.h"
#include "process/stall.h"
#include "process/start.h"
#include "wire/wire.h"

enum worker_state {
	WORKER_STOPPED,  /* no process; a restart may be due */
	WORKER_STARTING, /* has not sent READY yet */
	WORKER_UP,
	WORKER_DYING, /* socket closed or process killed; not yet reaped */
};

struct worker;

/* The program of the workers of a kind, and callbacks of their owner. */
struct worker_owner {
	const char *kind; /* "codec", "device", "http", "trace": for logs and metrics */
	const char *program;
	bool once; /* never restarted */
	/* Adds data to the START message of each process. NULL: the log's level suffices. */
	void (*prepare)(const struct worker *worker, struct start *start);
	/* READY has arrived: the worker accepts messages. May be NULL. */
	void (*up)(struct worker *worker, const struct message_ready *ready);
	/* Another message has arrived. Its size is right, but its fields are unchecked. NULL: no
	 * other message is valid. */
	void (*message)(struct worker *worker, const struct message *message);
	/* The process has been reaped, or could not be started ("exec"): nothing of it runs.
	 * WORKER_LOST: it has not ended two seconds after SIGKILL, and may still write to memory
	 * that it shares. May be NULL. */
	void (*down)(struct worker *worker, const char *reason);
	/* True if the worker has work that needs processor time. NULL: it never has. */
	bool (*busy)(const struct worker *worker);
};

struct worker {
	const struct worker_owner *owner; /* NULL: does not exist */
	uint32_t number;
	char name[32]; /* "codec-0": for logs, and the process's argument, for ps alone */
	bool stopped;  /* by worker_stop() */
	bool greeted;  /* HELLO was received */
	enum worker_state state;
	const char *kill_reason; /* why the front killed it, or NULL */
	pid_t pid;
	struct loop_watch socket, process;
	struct relay relay;       /* its log lines */
	struct stall stall;       /* watches the process */
	uint64_t dying_since;     /* loop_now() */
	LIST_ENTRY(worker) place; /* in the list of all workers */
	/* The next start, which the owner may put off in down() or later; or its time limit. */
	struct loop_timer timer;
	unsigned failures; /* since it last was stable */
	uint64_t started;  /* loop_now() */
	/* loop_now() when it last did useful work, as its owner reports: if it ends then, it starts
	 * again at once. 0: not since it was started. */
	uint64_t served;
	uint64_t files_most; /* set by worker_limit_files(); 0: not since then */
	unsigned restarts;
};

/* Opens the workers' programs. Files that replace them are ignored until the front restarts. */
enum error supervisor_init(void) MUST_CHECK;
void supervisor_fini(void);
/* True if a worker's version differed from the front's; the loop was then stopped. */
bool supervisor_mismatched(void);

/* Starts a worker, at first all zeros; unless `once`, it is restarted whenever it ends. Until READY
 * it has `start-timeout`. One that is up goes on: it says HELLO again, and is this owner's. */
enum error worker_start(struct worker *worker, const struct worker_owner *owner,
                        uint32_t number) MUST_CHECK;

/* Limits every file that the worker writes, in memory or not, to this size from now on. */
void worker_limit_files(struct worker *worker, uint64_t size);

/* Sends a message to a worker that is up. Returns false if it is not up or does not read; it is
 * then killed, and down() follows. */
bool worker_send(struct worker *worker, const struct message *message, const int *fds);

/* Reasons for down(): worker_stop() ended the process; the process could not be killed. */
extern const char WORKER_STOPPING[], WORKER_LOST[];

/* Returns true, only in down(), if another process killed or stopped this one. */
bool worker_was_killed(const char *reason);

/* worker_stop() ends the process, which does not count as a failure, and does not restart it until
 * worker_resume(), which may be called before the process has ended. */
void worker_stop(struct worker *worker);
void worker_resume(struct worker *worker);

/* Kills the process. The reason is a static text (a label in the metrics): "timeout", … */
void worker_kill(struct worker *worker, const char *reason);

/* Kills a worker for an invalid message (of this name), and logs that. */
void worker_refuse(struct worker *worker, const char *what);

/* Ends a worker permanently, waits for its process (at most two seconds for all workers together),
 * and frees what it holds. */
void worker_fini(struct worker *worker);
