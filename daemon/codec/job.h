/* One job: an image decoded, cut, and its result encoded. */
#ifndef CODEC_JOB_H
#define CODEC_JOB_H

#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "common/wire.h"

struct job;

/* What a worker lends to each of its jobs. */
struct job_place {
	int socket;   /* to the front */
	int finished; /* eventfd, written when job_finish() has nothing more to wait for */
	struct arena arena;
	uint32_t arena_number;
};

/* Starts a job, which takes over the two descriptors of its message, also on failure. It sends
 * MSG_IMAGE and MSG_TILE by itself. A failure from here has no other effect; the problem says why.
 */
enum error job_start(struct job **job, const struct job_place *place,
                     const struct message_job *message, const int fds[2],
                     struct problem *problem) MUST_CHECK;

/* Takes over the file that the answer of this job goes to; closes that of another job. */
void job_take_answer_file(struct job *job, uint64_t number, int file);

/* Takes note of a tile that came back; one of another job is ignored. */
void job_tile_done(struct job *job, const struct message_tile_done *done);

/* Makes the job fail soon, if it is the one of this number. */
void job_cancel(struct job *job, uint64_t number);

/* Waits for the job's threads, fills MSG_JOB_DONE and frees the job. */
void job_finish(struct job **job, struct message_job_done *done);

#endif
