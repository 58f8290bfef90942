/* Presets: chains that the configuration names, as NAME=QUERY. A query is that of POST /v1/chain
 * without escapes, NAME=VALUE&NAME=VALUE; its first name may be left out, and is then `filters`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "front/config/config.h"
#include "link/head.h"

/* Checks a configuration's presets. Logs why any is invalid, and then returns false. */
bool presets_check(const struct config *config) MUST_CHECK;

/* Finds a preset; *query: a copy of its query, the caller's. ERR_UNKNOWN_PRESET, ERR_MEMORY. */
enum error presets_find(const char *name, char **query, struct problem *problem) MUST_CHECK;

/* Appends the parameters of a query, which it splits and which must last as long as the head. One
 * that the head has is left out. ERR_BAD_PARAMETER: the query is malformed, or the head may have it
 * but has another value. */
enum error presets_append(struct head *head, char *query, struct problem *problem) MUST_CHECK;

/* Refuses a request because only presets may be used. */
enum error presets_insist(struct problem *problem);

/* Returns all presets with their parameters, for the catalogue. */
json_t *presets_describe(void);
