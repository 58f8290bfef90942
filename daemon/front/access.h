/* Access control: the tokens, the TLS certificate, and the rule that an address other hosts can
 * reach needs tokens or allow-anonymous. Everything is read first; it takes effect only if all of
 * it is valid. */
#ifndef FRONT_ACCESS_H
#define FRONT_ACCESS_H

#include <stdbool.h>

#include "base/error.h"
#include "front/config/config.h"

/* Reads the configured tokens and certificate, for access_commit(). running: the configuration
 * whose addresses are being served, or NULL at startup. Returns false and logs the reason if
 * anything is invalid. */
bool access_read(const struct config *config, const struct config *running) MUST_CHECK;

/* Activates what access_read() last read. */
void access_commit(void);
void access_fini(void);

#endif
