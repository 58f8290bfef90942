/* The tokens that clients show (Authorization: Bearer, RFC 6750), from a key file with one section
 * each, named by the client:
 *
 *   [alice]
 *   token-sha256=…   in hexadecimal (convolved --hash-token prints this line)
 *   class=batch      the best class that it may ask for: interactive (the default) or batch
 *   share=3          its part of the service beside others that work: 0.01 to 100, 1 by default
 *   presets-only=yes whether it may run presets alone
 *
 * Only hashes are kept, here too. Tokens are long random texts, so a plain hash serves. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "front/config/config.h"
#include "front/jobs/job.h"

/* Reads the next set of tokens, from the configured file or the credential. Returns false and logs
 * the reason if it is invalid. */
bool tokens_read(const struct config *config) MUST_CHECK;

/* True if the last set that was read has a token. */
bool tokens_wanted(void);

/* Puts that set in force. */
void tokens_commit(void);
void tokens_fini(void);

/* Identifies the client by the token in an Authorization header (NULL: missing), and its rights.
 * Without tokens in force it admits everyone. ERR_TOKEN_MISSING, ERR_TOKEN_UNKNOWN. */
enum error tokens_admit(const char *authorization, struct job_terms *terms,
                        struct problem *problem) MUST_CHECK;

/* Reads a token from standard input and prints its line for the file. False if it is unsuitable. */
bool tokens_print_hash(void) MUST_CHECK;
