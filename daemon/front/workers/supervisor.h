/* The worker processes: starts, watches, reaps and restarts them with backoff, and receives their
 * messages, whose meaning belongs to the modules that own the workers (codecs, devices). A worker
 * that is stopped, or uses no processor time although it has work, is noticed within two seconds
 * and killed. */
#ifndef FRONT_WORKERS_SUPERVISOR_H
#define FRONT_WORKERS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "common/stall.h"
#include "common/wire.h"
#include "front/base/loop.h"
#include "front/workers/relay.h"

enum worker_state {
	WORKER_STOPPED,  /* no process; a restart may be due */
	WORKER_STARTING, /* has not sent READY yet */
	WORKER_UP,
	WORKER_DYING, /* its socket is closed or it was killed; not yet reaped */
};

struct worker;

/* Callbacks of a worker's owner. */
struct worker_owner {
	/* The process is about to be started, also again: sets start_ms, and the arguments by
	 * worker_argument(), first the program's name. */
	void (*prepare)(struct worker *worker);
	/* READY has arrived: the worker accepts messages. */
	void (*up)(struct worker *worker, const struct message_ready *ready);
	/* Another message has arrived; its size is right, its fields are unchecked. */
	void (*message)(struct worker *worker, const struct message *message);
	/* The process has been reaped: nothing of it runs any more. Or (WORKER_LOST) it has not,
	 * two seconds after it was killed: what it shares it may yet write to. Or it could not be
	 * started at all. */
	void (*down)(struct worker *worker, const char *reason);
	/* True if it has work that needs processor time. */
	bool (*busy)(const struct worker *worker);
};

struct worker {
	const char *kind; /* "codec", "device", "probe": for logs and metrics */
	uint32_t number;
	const struct worker_owner *owner;
	bool once;         /* not started again */
	bool stopped;      /* by worker_stop() */
	bool greeted;      /* HELLO has come */
	char *argv[24];    /* ends with NULL; owned */
	uint64_t start_ms; /* it may take until READY (of the probe: until its end) */
	enum worker_state state;
	const char *kill_reason; /* why the front killed it; NULL if it did not */
	pid_t pid;
	struct loop_watch socket, process;
	struct relay relay;       /* what it says */
	struct stall stall;       /* of the process */
	uint64_t dying_since;     /* loop_now() */
	LIST_ENTRY(worker) place; /* among all */
	struct loop_timer timer;  /* the time to start it, or the end of the time it has to start */
	unsigned failures;        /* that followed each other quickly */
	uint64_t started;         /* loop_now() */
	unsigned restarts;
};

/* Opens the workers' programs, beside this one or else in the installed place. What takes their
 * place later, in an upgrade, is for the next front. */
enum error supervisor_init(void) MUST_CHECK;
void supervisor_fini(void);
/* True after a worker of another version than the front's, which has stopped the loop. */
bool supervisor_mismatched(void);

/* Starts a worker whose first members, up to `once`, are set. It is started again, sooner or later,
 * whenever it ends. */
enum error worker_start(struct worker *worker) MUST_CHECK;

/* In prepare(): adds an argument, and its value (NULL: none). */
void worker_argument(struct worker *worker, const char *argument, const char *value);

/* Sends a message to a worker that is up. A worker that does not read is killed: returns false, and
 * down() will follow. */
bool worker_send(struct worker *worker, const struct message *message, const int *fds);

/* In down(): restarts it after so long, whatever the backoff is. */
void worker_restart_after(struct worker *worker, uint64_t ms);

/* Ends the process, which is not a failure and which down() calls WORKER_STOPPING, and does not
 * start it again until worker_resume(), which may come before it has ended. */
extern const char WORKER_STOPPING[], WORKER_LOST[];
/* In down(): true if somebody else killed or stopped the process, whatever it was doing. */
bool worker_was_killed(const char *reason);
void worker_stop(struct worker *worker);
void worker_resume(struct worker *worker);

/* Kills the process for a reason that is a static text (a label in the metrics): "timeout", … */
void worker_kill(struct worker *worker, const char *reason);

/* Kills a worker for a message that it sent (by name), and logs that. */
void worker_refuse(struct worker *worker, const char *what);

/* Ends a worker for good, waits for the process (two seconds in all, for all of them), frees what
 * it holds. */
void worker_fini(struct worker *worker);

#endif
