/* The service's parameters, as far as this client knows: a service may be newer. */
#pragma once

#include <stdbool.h>

bool parameters_know(const char *name);
