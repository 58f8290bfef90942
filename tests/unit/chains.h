/* Chains for tests of modules that get one. */
#pragma once

#include <stdlib.h>

#include "filters/chain.h"
#include "unit.h"

/* Says why the last call failed. */
static struct problem problem;

/* Returns a chain of "filter=key=value:key=value,filter,…", for free(). */
static inline struct chain *chain_of(const char *text)
{
	struct chain *chain = malloc(sizeof *chain);

	assert_non_null(chain);
	chain_init(chain);
	assert_int_equal(chain_parse(chain, text, &problem), ERR_OK);
	assert_int_equal(chain_check(chain, &problem), ERR_OK);
	return chain;
}
