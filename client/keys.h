/* Keys of an object store that have to be fetched: from a program, or from the address that a
 * container has for them. */
#pragma once

#include <time.h>

struct keys {
	char *access, *secret;
	char *token;    /* for temporary keys; or NULL */
	time_t expires; /* 0: unknown */
};

/* Runs the command, whose words may be in quotes, without a shell; its standard output is JSON.
 * Returns NULL, or why there are no keys, which the caller frees. */
char *keys_from_process(const char *command, struct keys *keys);

/* Gets the JSON from an address: over TLS, or from this host or a link-local address of AWS.
 * `authorization`: a header's value, or NULL. Returns the same. */
char *keys_from_endpoint(const char *address, const char *authorization, struct keys *keys);
