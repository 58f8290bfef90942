/* The TLS certificate and its key. Every connection asks for it anew, so a renewed one takes effect
 * for connections made after a reload. */
#ifndef HTTP_CERTIFICATE_H
#define HTTP_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

/* Reads the next pair, from the configuration's files or the credentials. Returns false and logs
 * the reason if it is invalid. */
bool certificate_read(const struct config *config) MUST_CHECK;

/* True if the last read found a pair. */
bool certificate_wanted(void);

/* Puts the pair in force; the one before stays valid for handshakes under way. */
void certificate_commit(void);

/* True if replaced pairs remain; the other frees those replaced before this time (loop_now()). */
bool certificate_retired(void);
void certificate_forget(uint64_t time);
void certificate_fini(void);

/* GnuTLS's callback that finds the certificate of a session
 * (gnutls_certificate_retrieve_function2); libmicrohttpd takes it as it is. */
typedef void (*certificate_callback)(void);
certificate_callback certificate_finder(void);

#endif
