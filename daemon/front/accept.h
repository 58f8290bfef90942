/* Which formats a client accepts. */
#ifndef FRONT_ACCEPT_H
#define FRONT_ACCEPT_H

#include <stdint.h>

#include "common/error.h"

/* Reads an Accept header into bits of formats and the best of them. NULL or an empty text accepts
 * all. ERR_NOT_ACCEPTABLE if nothing that can be written is accepted. */
enum error accept_parse(const char *accept, uint32_t *formats, uint32_t *best,
                        struct problem *problem) MUST_CHECK;

#endif
