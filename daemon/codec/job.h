/* One job: decodes an image, cuts it, and encodes its result. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/decode.h"
#include "wire/tile.h"
#include "wire/wire.h"

struct job;

/* The worker's resources that each job uses. */
struct job_place {
	int socket;   /* socket to the front */
	int finished; /* eventfd, written when job_finish() no longer has to wait */
	struct arena arena;
	uint32_t arena_number;
	struct kept_rows kept; /* by the last job */
	/* Waits for a message of the front and handles it, in the main thread. */
	void (*hear)(void *context);
	void *context;
};

/* Starts a job, which uses the place until its end, and takes over the two descriptors of its
 * message. The job sends MSG_IMAGE and MSG_TILE itself. Returns true, with MSG_JOB_DONE filled in,
 * if the job is over already: it failed, or it was short and has been done in the main thread,
 * which read the front's messages through the place; *job is set before that. */
bool job_start(struct job **job, struct job_place *place, const struct message_job *message,
               const int fds[2], struct message_job_done *done) MUST_CHECK;

/* Handles a message about this job: it may go as one tile of a form, its answer goes there (takes
 * over both descriptors), a tile came back, it is cancelled. Returns false if the message is not
 * for this job; its descriptors are then the caller's. */
bool job_hear(struct job *job, const struct message *message, const int *fds) MUST_CHECK;

/* Waits for the job's threads, fills in MSG_JOB_DONE and frees the job. */
void job_finish(struct job **job, struct message_job_done *done);
