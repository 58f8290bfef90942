/* Where the TLS certificate and its key come from: the files of the configuration, or the
 * credentials. */
#ifndef FRONT_CERTIFICATE_FILES_H
#define FRONT_CERTIFICATE_FILES_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

/* Reads the next pair. Returns false and logs the reason if it is invalid. */
bool certificate_files_read(const struct config *config) MUST_CHECK;

/* True if the last read found a pair, which is not yet in force. */
bool certificate_files_found(void);

/* Puts the pair in force, if there is one. */
void certificate_files_commit(void);
void certificate_files_fini(void);

#endif
