/* The TLS certificate and key, for which each connection asks: a new one takes effect at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PEM, which need not be terminated. */
struct pem {
	char *text;
	size_t size;
};

/* Checks a chain of certificates and the first one's key, and (use) puts them in force; the pair
 * before stays valid for handshakes under way. Returns the fault, or NULL. */
const char *certificate_import(const struct pem *chain, const struct pem *key, bool use)
    __attribute__((warn_unused_result));

/* Frees the pairs that were replaced before this time (loop_now()). */
void certificate_forget(uint64_t time);

/* A gnutls_certificate_retrieve_function2, for libmicrohttpd. */
typedef void (*certificate_callback)(void);
certificate_callback certificate_finder(void);
