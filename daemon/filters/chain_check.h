/* Checks a chain against an image and a kernel: its channels and its variant. */
#ifndef FILTERS_CHAIN_CHECK_H
#define FILTERS_CHAIN_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "filters/chain.h"
#include "image/image.h"

/* Sets the variant of a chain, which has all its filters, from the name of a kernel, "reference"
 * (no device) or "general" (the kernels that always exist). ERR_BAD_PARAMETER if the name is
 * unknown, and lists the kernels of the first filter; also if the kernel supports none of the
 * chain's filters, or not windows of this size. */
enum error chain_set_variant(struct chain *chain, const char *name,
                             struct problem *problem) MUST_CHECK;

/* Checks that the image has the channels that the filters work on, and that the variant supports
 * its type and bands. cmyk: the bands are inks. */
enum error chain_check_image(const struct chain *chain, const struct image *image, bool cmyk,
                             struct problem *problem) MUST_CHECK;

/* The same of channels alone. */
enum error chain_check_channels(enum channels channels, const struct image *image, bool cmyk,
                                struct problem *problem) MUST_CHECK;

#endif
