/* Lists in headers: of accepted types (RFC 9110, 12.5), preferences (RFC 7240), or versions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "image/formats.h"
#include "wire/wire.h"

/* Reads an Accept header (NULL or "" accepts all) into the weight of each format that can be
 * written: that of the most specific media range. ERR_NOT_ACCEPTABLE if none is. */
enum error accept_parse(const char *accept, uint32_t written, uint16_t weights[FORMATS],
                        struct problem *problem) MUST_CHECK;

/* Returns the weight of a name in a list (NULL: missing), from 0 (not in it) to ACCEPT_MOST. With
 * `any`, which stands for every name, a subtype "*" stands for all subtypes of its type. */
uint16_t accept_weigh(const char *list, const char *name, const char *any);

/* True if an Accept header (NULL: missing) names OpenMetrics, and prefers no plain text to it. */
bool accept_openmetrics(const char *accept);

/* True if an Accept header (NULL: missing) prefers HTML to plain text. */
bool accept_html(const char *accept);
