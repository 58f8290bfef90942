/* Checks a chain against an image and a kernel: its channels and its variant. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "filters/chain.h"
#include "image/image.h"

/* Sets the variant of a complete chain by name: a kernel, "reference" (no device) or "general"
 * (kernels that always exist). ERR_BAD_PARAMETER if it is unknown, supports none of the filters, or
 * no windows of this size; the message lists the kernels that do. */
enum error chain_set_variant(struct chain *chain, const char *name,
                             struct problem *problem) MUST_CHECK;

/* Checks that the image has the channels that the filters work on, and that the variant supports
 * its type and bands. cmyk: the bands are inks. */
enum error chain_check_image(const struct chain *chain, const struct image *image, bool cmyk,
                             struct problem *problem) MUST_CHECK;

/* The same of channels alone. */
enum error chain_check_channels(enum channels channels, const struct image *image, bool cmyk,
                                struct problem *problem) MUST_CHECK;
