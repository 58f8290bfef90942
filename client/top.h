/* `convolve top`: devices, queue and kernels as they are now, again and again. */
#pragma once

#include "client/server.h"

/* Draws over itself on a terminal; else prints one view after another. Ends after --count views. */
enum exit_code top_run(const struct options *options, const struct server *server);
