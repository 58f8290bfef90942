/* Chains whose filters must know the whole image: filters of earlier runs, and their data. */
#pragma once

#include "filters/chain.h"

/* Returns the first call that must know the whole image and does not yet, or the count of calls. */
uint32_t chain_gathering(const struct chain *chain);

/* Returns a new chain from malloc(), trimmed: the calls before this one (or a call that changes
 * nothing) on the whole image, by any kernel. Before a canny the chain also has the filters that
 * find the edges: there all bands (or the band of a channel) are full scale, or half of it if the
 * pixel depends on others. NULL without memory. */
struct chain *chain_before(const struct chain *chain, uint32_t call);

/* Returns a new chain from malloc(), trimmed, whose call knows these valid numbers of an image, as
 * many as gather_size() says; for several pages one after the other. NULL without memory. */
struct chain *chain_gathered(const struct chain *chain, uint32_t call, const double *numbers,
                             const struct image *image, uint32_t pages);

/* Returns a new chain from malloc(), trimmed, with its data of a page. NULL without memory. */
struct chain *chain_of_page(const struct chain *chain, uint32_t page);
