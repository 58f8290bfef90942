/* Lists the objects whose keys begin with a prefix, page by page (ListObjectsV2). */
#pragma once

#include <stdint.h>

#include "client/aws.h"
#include "client/server.h"

/* Receives one object: its key, and its size in bytes. */
typedef void listing_found(void *context, const char *key, int64_t size);

/* Reads the whole list of s3://BUCKET/PREFIX. Returns EXIT_DONE, or another status after printing
 * the error, or when a signal has arrived. */
enum exit_code listing_read(const struct server *server, struct aws *aws, const char *prefix,
                            listing_found *found, void *context);
