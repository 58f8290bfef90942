/* A chain of filters as JSON, [{"filter": "gaussian", "sigma": 1.4}, {"filter": "sobel"}]: another
 * notation for chain_parse(), with the same parameters, limits and errors. */
#ifndef FRONT_API_CHAIN_JSON_H
#define FRONT_API_CHAIN_JSON_H

#include "filters/chain.h"

/* Appends the filters. An error in the JSON itself names the parameter `chain`. */
enum error chain_parse_json(struct chain *chain, const char *text,
                            struct problem *problem) MUST_CHECK;

#endif
