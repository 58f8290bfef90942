/* The command `jobs`: the asynchronous jobs of this client at the service. */
#pragma once

#include "client/server.h"

enum exit_code jobs_run(const struct options *options, const struct server *server);
