/* The reference: filters in plain C and double precision, one thread, as simple as can be. */
#ifndef DEVICE_REFERENCE_H
#define DEVICE_REFERENCE_H

#include "common/chain.h"
#include "common/error.h"
#include "common/image.h"

/* Filters a whole image, rows packed without padding, by a valid chain: each filter applied to the
 * whole result of the one before it. *out becomes an image of chain_output_size(), packed likewise,
 * which the caller frees. Part of an image can be checked by giving it together with its halo,
 * and a chain whose border is crop. ERR_MEMORY, or as chain_output_size() and
 * chain_border_pixel() say. */
enum error reference_filter(const struct chain *chain, const struct image *image, const void *in,
                            void **out) MUST_CHECK;

#endif
