/* Files elsewhere: objects of a store (S3) and files of web servers. */
#pragma once

#include "client/aws.h"
#include "client/exchange.h"

/* Objects: `target` is s3://BUCKET/KEY, `aws` the settings. An answer of 304 or 412, if the headers
 * or the condition ask for it, is a success. A `look` only asks for the headers; 404 is a success,
 * too: there is no such object. */
extern const struct peer store_objects;

/* Files of web servers, read without keys; redirections are followed. */
extern const struct peer store_web;

/* Returns a mark that distinguishes later versions: the ETag, or else the date; NULL if the answer
 * has neither. The caller frees it. */
char *store_version(const struct exchange *e);

/* Adds the header by which a store checks that it has got all of a file. Returns 0 or an errno
 * (EINTR after a signal). */
int store_checksum(struct curl_slist **heads, int file);

/* Adds the header that sends a file only if it is not this version. */
struct curl_slist *store_unless(struct curl_slist *heads, const char *version);

/* Adds a header; the arguments are as printf()'s. */
struct curl_slist *store_head(struct curl_slist *heads, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
