/* The promise of variant=general: the same bytes on every device and in every release. */
#pragma once

#include "harness.h"

/* Compares digests of the general kernels' results for each filter, of all types, kinds of pixels
 * and borders and in tiles of two heights, with those of the first release; and chains of filters
 * of single samples with their filters one by one, also by other kernels. A test each. */
void general_run(struct harness *h);
