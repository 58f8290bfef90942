/* The codec workers as the front sees them: each has a process, an arena and at most one job. */
#pragma once

#include "front/workers/runs.h"

enum error codecs_init(const struct codec_owner *owner) MUST_CHECK;
void codecs_fini(void);

/* Adapts the number of codec workers to the configuration: starts new ones, and ends surplus ones
 * once they have no job. */
void codecs_reload(void);

/* Replaces an arena to which a lost process may still write. Its job runs again from the start. */
void codecs_retire(unsigned arena);

/* Takes back a codec worker's tile, filtered or failed; its job may have ended. Frees the task. */
void codec_task_done(struct task *task, const struct message_tile_done *done);
