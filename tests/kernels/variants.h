/* Every variant, wherever it applies. */
#ifndef TESTS_VARIANTS_H
#define TESTS_VARIANTS_H

#include "trial.h"

/* Tries all variants, or only one, or a share of them. Prints a line a variant, numbered from
 * `number` on, and adds to the totals of failed and passed. */
void variants_run(struct harness *h, const char *only, struct share share, size_t number,
                  int totals[2]);

#endif
