/* The reports of a codec worker on its job: the image's size, each tile that is ready, the result
 * of a verification, and the end. Reports update the job; tiles go to the scheduler and come back.
 */
#ifndef FRONT_WORKERS_CODEC_REPORTS_H
#define FRONT_WORKERS_CODEC_REPORTS_H

#include <stdbool.h>

#include "front/workers/runs.h"

void codec_reports_init(const struct codec_owner *owner);

/* Takes a worker's message. Returns false if it is of another kind or does not match the worker's
 * job. */
bool codec_reports_take(struct codec *codec, const struct message *message);

/* A tile of a codec worker is back, filtered or failed; its job may have ended. Frees the task. */
void codec_task_done(struct task *task, const struct message_tile_done *done);

#endif
