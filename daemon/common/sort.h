/* Sorted numbers, for medians and percentiles. */
#ifndef COMMON_SORT_H
#define COMMON_SORT_H

#include <stddef.h>

/* Sorts in ascending order. None may be NaN. */
void sort_doubles(double *values, size_t count);

#endif
