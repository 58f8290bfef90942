/* The TLS certificate and its key. Every connection asks for it anew, so a renewed one takes effect
 * for connections made afterwards. */
#ifndef LINK_CERTIFICATE_H
#define LINK_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PEM, which need not be terminated. */
struct pem {
	const char *text;
	size_t size;
};

/* Makes the next pair, of a chain of certificates and its first one's key. Returns NULL; or, and
 * then there is none, what is wrong with it. */
const char *certificate_import(const struct pem *chain, const struct pem *key)
    __attribute__((warn_unused_result));

/* Forgets the next pair. */
void certificate_drop(void);

/* Puts the next pair in force, if there is one; the one before stays valid for handshakes under
 * way. */
void certificate_commit(void);

/* True if replaced pairs remain; the other frees those replaced before this time (loop_now()). */
bool certificate_retired(void);
void certificate_forget(uint64_t time);

/* GnuTLS's callback that finds the certificate of a session
 * (gnutls_certificate_retrieve_function2); libmicrohttpd takes it as it is. */
typedef void (*certificate_callback)(void);
certificate_callback certificate_finder(void);

#endif
