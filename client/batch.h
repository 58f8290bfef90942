/* Filters images through the service: one or many, skipping those whose results exist already. */
#pragma once

#include "client/server.h"

/* Filters the images that the options name. Returns the exit status; a signal is left to the
 * caller. */
enum exit_code batch_run(const struct options *options, const struct server *server);
