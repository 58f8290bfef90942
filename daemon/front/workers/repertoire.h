/* The formats that the codec workers read and write: those that are allowed (`formats`) and that
 * libvips has on this machine, which the workers find out. */
#ifndef FRONT_WORKERS_REPERTOIRE_H
#define FRONT_WORKERS_REPERTOIRE_H

#include "image/formats.h"

/* Assumes all that is allowed, until a worker has reported its formats. */
void repertoire_init(void);

/* Records the formats that a worker has; those that are not allowed do not count. */
void repertoire_take(const struct format_sets *told);

struct format_sets repertoire(void);

/* The formats that are allowed: a bit (1 << enum format) for each. */
uint32_t repertoire_allowed(void);

#endif
