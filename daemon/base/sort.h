/* Sorted numbers, for medians and percentiles. */
#pragma once

#include <stddef.h>

/* Sorts in ascending order. None may be NaN. */
void sort_doubles(double *values, size_t count);
