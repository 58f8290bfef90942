/* The formats and codings that a client accepts: Accept and Accept-Encoding (RFC 9110, 12.5.1
 * and 12.5.3). */
#ifndef FRONT_API_ACCEPT_H
#define FRONT_API_ACCEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "image/formats.h"
#include "wire/wire.h"

/* Reads an Accept header into the weight of each format that can be written, from 0 (not accepted)
 * to ACCEPT_MOST: that of the most specific media range that matches. NULL or an empty text accepts
 * all formats equally. ERR_NOT_ACCEPTABLE if none of them is accepted. */
enum error accept_parse(const char *accept, uint32_t written, uint16_t weights[FORMATS],
                        struct problem *problem) MUST_CHECK;

/* True if an Accept header (NULL: missing) names OpenMetrics, and prefers no plain text to it. */
bool accept_openmetrics(const char *accept);

/* True if an Accept header (NULL: missing) prefers a media type to the other one. */
bool accept_prefers(const char *accept, const char *type, const char *other);

/* True if an Accept-Encoding header (NULL: missing) accepts gzip. */
bool accept_gzip(const char *accept_encoding);

#endif
