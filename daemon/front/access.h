/* Who may use the service: the tokens, the certificate, and the rule that what others can reach is
 * not open to everyone by accident. All of it is read first and put in force only if all of it is
 * valid. */
#ifndef FRONT_ACCESS_H
#define FRONT_ACCESS_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

/* Reads the configured tokens and certificate. running: the configuration whose addresses are being
 * served, or NULL at the start. Returns false and logs the reason if it is invalid. */
bool access_read(const struct config *config, const struct config *running) MUST_CHECK;

/* Puts in force what was last read. */
void access_commit(void);
void access_fini(void);

#endif
