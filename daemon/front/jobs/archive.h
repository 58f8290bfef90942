/* The archive of asynchronous jobs: a row of an SQLite database and a file for each, in state-dir,
 * so that they outlive every end of the service. A file is ID.body while its job is open, and
 * ID.result once it is done. Another file has a line for each job that the service was at when it
 * crashed.
 *
 * The order of writes keeps the promise: a row is committed after its file is on disk; the old file
 * goes after that; and a job that is forgotten loses its file first, since a row without a file is
 * removed at the next start, as a file without a row is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/errand.h"
#include "front/jobs/job.h"
#include "link/head.h"

enum { ARCHIVE_DIGEST = 32 };

/* A row, less what its job knows. Texts and blocks are the owner's. */
struct record {
	const char *id;
	const char *key;                      /* the client's Idempotency-Key; NULL: none */
	unsigned char digest[ARCHIVE_DIGEST]; /* with a key: of its head and body */
	struct head_writer head;              /* from head_pack(); while it is open */
	int64_t arrived, finished;            /* milliseconds since 1970; 0: it is open */
	struct head_writer answer; /* once it has finished: answer_pack(), a problem's body */
	unsigned crashes;          /* while the service was at it; kept apart from the row */
};

enum archive_act { ARCHIVE_ADD, ARCHIVE_END, ARCHIVE_DROP };

/* One change, an ERRAND_ARCHIVE; those that wait at a time become durable together. The errand's
 * `done` follows; until then all belongs to the thread. */
struct archive_step {
	struct errand errand; /* must be first */
	enum archive_act act;
	const struct record *record;
	const struct job *job; /* its body or answer, if any, becomes the file */
	/* Those of the job, whose worker may still report on it after its end. */
	uint32_t lost, tiles, tiles_done;
	bool has_file; /* on disk, where it stays if an end fails otherwise and is sent again */
	/* Set by the thread: a descriptor to read the new file (-1: none), the receiver's; and why
	 * nothing has changed. */
	int kept;
	bool no_file;     /* the disk does not take its file */
	enum error error; /* STORAGE_FULL, STORAGE_UNUSABLE */
	struct problem problem;
	uint64_t ns; /* time that the batch took to reach the disk */
	int writer;
};

/* Opens the archive, if the configuration wants one; before errands_init(). A database that cannot
 * be used is left as it is: see archive_check(). It is never closed, as a disk may hang. */
enum error archive_init(void) MUST_CHECK;

/* Calls `found` for each job of the archive: open ones in their order, then ended ones, the oldest
 * first. The record's blocks may be moved, and the job (NULL: no memory) is to be taken over; it
 * has its client, its file, and its outcome. Removes what a killed process has left. */
void archive_read(void (*found)(struct record *record, struct job *job));

/* Returns true if jobs are kept. */
bool archive_is_open(void);

/* ERR_STORAGE_UNUSABLE if jobs should be kept but cannot be. */
enum error archive_check(struct problem *problem) MUST_CHECK;

/* Notes that the service crashes while it is at this job; a signal handler may do so. */
void archive_note_crash(const char *id);

/* Milliseconds since 1970. */
int64_t archive_now(void);
