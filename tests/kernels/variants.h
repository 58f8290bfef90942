/* Every kernel that does an operation, wherever it applies. */
#pragma once

#include "harness.h"

/* Tries the published kernels, or all others; a test each. */
void variants_run(struct harness *h, bool classic);
