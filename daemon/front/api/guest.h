/* Places of connections (link/serve.h). */
#ifndef FRONT_API_GUEST_H
#define FRONT_API_GUEST_H

#include "front/config/config.h"
#include "link/serve.h"

void guests_init(const struct config *config);

/* Why a guest has no place; ERR_OK: it has one, or needs none. */
enum error guest_error(const struct guest *guest, struct problem *problem) MUST_CHECK;

#endif
