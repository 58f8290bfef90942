/* Reading the configuration: flags before the environment before the file before the defaults. */
#ifndef FRONT_CONFIG_LOAD_H
#define FRONT_CONFIG_LOAD_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

enum config_result { CONFIG_RUN, CONFIG_EXIT, CONFIG_HASH_TOKEN, CONFIG_INVALID };

/* Fills the configuration from the command line, the environment and the file that they name.
 * CONFIG_EXIT: the likes of --help have been answered. CONFIG_HASH_TOKEN: --hash-token is for the
 * caller to answer. CONFIG_INVALID: the log says of everything that is wrong what it is (flag,
 * variable, or file and line; key, value) and what is valid. config_fini() in every case. */
enum config_result config_load(struct config *config, int argc, char **argv) MUST_CHECK;

/* Reads all of that again, and takes over what may change while the service runs. The log says what
 * has changed, and what differs but needs a restart. `fits` looks at what was read before anything
 * changes. False: it or something else is invalid (the log says why), and nothing has changed. */
bool config_reload(struct config *config, int argc, char **argv,
                   bool (*fits)(const struct config *read,
                                const struct config *running)) MUST_CHECK;

void config_fini(struct config *config);

#endif
