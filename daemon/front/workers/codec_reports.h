/* What a codec worker reports of its job: the image that it has found, each tile that is ready,
 * what came of a verification, and the end. It goes to the job, tiles to the scheduler and back. */
#ifndef FRONT_WORKERS_CODEC_REPORTS_H
#define FRONT_WORKERS_CODEC_REPORTS_H

#include <stdbool.h>

#include "front/workers/runs.h"

void codec_reports_init(const struct codec_owner *owner);

/* Takes what a worker says. False: the message is of another kind, or does not fit its job. */
bool codec_reports_take(struct codec *codec, const struct message *message);

/* A tile that a worker reported is back, filtered or failed; its job may have ended. */
void codec_task_done(struct task *task, const struct message_tile_done *done);

#endif
