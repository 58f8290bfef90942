/* The formats that the codec workers read and write: allowed ones (`formats`) that libvips has on
 * this machine, which the workers find out. */
#pragma once

#include "image/formats.h"

/* Assumes all allowed formats until a worker has reported its own. */
void repertoire_init(void);

/* Records a worker's formats; forbidden ones do not count. */
void repertoire_take(const struct format_sets *told);

struct format_sets repertoire(void);

/* Returns the allowed formats: a bit (1 << enum format) for each. */
uint32_t repertoire_allowed(void);
