/* A chain of filters as JSON, [{"filter": "gaussian", "sigma": 1.4}, {"filter": "sobel"}]: another
 * spelling of what chain_parse() reads, with the same parameters, limits and errors. */
#ifndef FRONT_API_CHAIN_JSON_H
#define FRONT_API_CHAIN_JSON_H

#include "common/chain.h"

/* Appends the filters. What is wrong with the JSON itself is named as the parameter `chain`. */
enum error chain_parse_json(struct chain *chain, const char *text,
                            struct problem *problem) MUST_CHECK;

#endif
