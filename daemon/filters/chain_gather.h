/* Chains whose filters must know the whole image: what earlier runs filter, and what they tell. */
#ifndef FILTERS_CHAIN_GATHER_H
#define FILTERS_CHAIN_GATHER_H

#include "filters/chain.h"

/* The first call that must know the whole image and does not yet, or the count. */
uint32_t chain_gathering(const struct chain *chain);

/* A new chain from malloc(), trimmed: the calls before this one, or one that changes nothing, on
 * all of the image, by any kernel. Before a canny also what finds the edges: there all bands (or
 * the one of a channel) are full scale or, if it depends on others, half of it. NULL without
 * memory. */
struct chain *chain_before(const struct chain *chain, uint32_t call);

/* A new chain from malloc(), trimmed, whose call knows these rows of valid numbers, or the edges of
 * an image of this size; of several pages one after the other, all alike. NULL without memory. */
struct chain *chain_gathered(const struct chain *chain, uint32_t call, const double *numbers,
                             uint32_t width, uint32_t height, uint32_t pages);

/* A new chain from malloc(), trimmed, with what this one knows of a page. NULL without memory. */
struct chain *chain_of_page(const struct chain *chain, uint32_t page);

#endif
