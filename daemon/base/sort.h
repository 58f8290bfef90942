/* Sorted numbers, for medians and percentiles. */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stddef.h>

/* Sorts in ascending order. None may be NaN. */
void sort_doubles(double *values, size_t count);

#endif
