/* `convolve top`: shows devices, queue and kernels as they are now, repeatedly. */
#pragma once

#include "client/server.h"

/* Redraws in place on a terminal, else prints one view after another. Ends after --count views. */
enum exit_code top_run(const struct options *options, const struct server *server);
