/* Images through the service: one or many, those left out that are done already. */
#pragma once

#include "client/server.h"

/* Filters what the options name. Returns the exit status (that of a signal is the caller's). */
enum exit_code batch_run(const struct options *options, const struct server *server);
