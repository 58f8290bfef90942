/* The service's parameters as this client knows them; a newer service may have more. */
#pragma once

#include <stdbool.h>

bool parameters_know(const char *name);
