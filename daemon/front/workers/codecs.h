/* The codec workers as the front sees them: a process, an arena and at most one job each. */
#ifndef FRONT_WORKERS_CODECS_H
#define FRONT_WORKERS_CODECS_H

#include "front/workers/runs.h"

enum error codecs_init(const struct config *config, const struct codec_owner *owner) MUST_CHECK;
void codecs_fini(void);

/* Makes the codec workers as many as are configured now: starts some, or ends some, those that have
 * a job after that. */
void codecs_reload(void);

/* A process that cannot be ended may yet write to this arena: it is replaced by another. The job
 * that uses it runs once more, from the start. */
void codecs_retire(unsigned arena);

#endif
