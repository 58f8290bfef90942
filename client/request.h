/* Requests to the service: their targets and keys, and the ids of the jobs that it makes of them.
 */
#pragma once

#include <stdbool.h>

#include "client/exchange.h"
#include "client/hash.h"
#include "client/mask.h"
#include "client/options.h"

/* Returns the path and query of the request for a result with this name, and as their fragment,
 * which is not sent, the mask's hash; the caller frees it. */
char *request_target(const struct options *options, const struct mask *mask, const char *output);

/* Goes on with a hash over the bytes of a file. Returns 0 or an errno (EINTR after a signal). */
int request_hash(int file, hash *made);

/* Names a request for a job: by the image's bytes, the target and the result's place, so that the
 * same command finds its job again. Returns 0 or an errno (EINTR after a signal). */
int request_key(int image, const char *target, const char *output, char key[HASH_DIGITS]);

/* Returns the id of the job that a 202 accepts, or NULL; the caller frees it. */
char *request_job(const struct exchange *e);

/* Tells whether a text may be the id of a job. */
bool request_is_job(const char *text);

/* Returns the path of a job, followed by `rest`; the caller frees it. */
char *request_job_target(const char *id, const char *rest);
