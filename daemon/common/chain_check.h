/* Whether what a chain asks of an image, and of a kernel, can be had: its channels, its variant. */
#ifndef COMMON_CHAIN_CHECK_H
#define COMMON_CHAIN_CHECK_H

#include <stdbool.h>

#include "common/chain.h"
#include "common/error.h"
#include "common/image.h"

/* Sets the variant of a chain that has all its filters from the name of a kernel, "reference"
 * (no device), or "general" (of all kernels those that are always there).
 * ERR_BAD_PARAMETER lists those for the first filter if there is none of this name, and says what
 * the kernel does if that is nothing of the chain, or not with windows of this size. */
enum error chain_set_variant(struct chain *chain, const char *name,
                             struct problem *problem) MUST_CHECK;

/* Checks that the image has the channels that the filters work on, and that the variant can do
 * pixels of its type and bands. cmyk: its bands are inks. */
enum error chain_check_image(const struct chain *chain, const struct image *image, bool cmyk,
                             struct problem *problem) MUST_CHECK;

#endif
