/* The certificate of TLS and its key. Connections ask for it one by one, so a renewed one holds for
 * those that come after a reload. */
#ifndef HTTP_CERTIFICATE_H
#define HTTP_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

/* Reads the pair of the configuration, or the credentials, as the next one. False: it is invalid,
 * and the log says why. */
bool certificate_read(const struct config *config) MUST_CHECK;

/* True if there is a pair that was read last. */
bool certificate_wanted(void);

/* Puts it in force; the one before stays good for handshakes that are under way. */
void certificate_commit(void);

/* True if there are such; and frees those that were followed before this time (loop_now()). */
bool certificate_retired(void);
void certificate_forget(uint64_t time);
void certificate_fini(void);

/* GnuTLS's callback that finds the certificate of a session
 * (gnutls_certificate_retrieve_function2), for libmicrohttpd, which takes it as it is. */
typedef void (*certificate_callback)(void);
certificate_callback certificate_finder(void);

#endif
