/* Loads the configuration. Flags override environment variables, which override the file and the
 * defaults. */
#ifndef FRONT_CONFIG_LOAD_H
#define FRONT_CONFIG_LOAD_H

#include <stdbool.h>

#include "base/error.h"
#include "front/config/config.h"

enum config_result { CONFIG_RUN, CONFIG_EXIT, CONFIG_HASH_TOKEN, CONFIG_INVALID };

/* Fills the configuration. CONFIG_EXIT: a flag such as --help was answered. CONFIG_HASH_TOKEN: the
 * caller must handle --hash-token. CONFIG_INVALID: every error was logged with its place and with
 * what is expected. Call config_fini() in every case. */
enum config_result config_load(struct config *config, int argc, char **argv) MUST_CHECK;

/* Reads everything again and takes over the options that may change at run time. Logs what has
 * changed, and what needs a restart. `fits` checks the new configuration before anything changes.
 * Returns false if it or a value is invalid: the reason is logged, and nothing has changed. */
bool config_reload(struct config *config, int argc, char **argv,
                   bool (*fits)(const struct config *read,
                                const struct config *running)) MUST_CHECK;

void config_fini(struct config *config);

/* The number of cores that this process can keep busy: those that it may run on, or fewer where its
 * control group has a smaller share of their time. At least 1. */
unsigned cores_usable(void);

/* The share, in whole cores and rounded up, of the control group (version 2) at `path` (/…) below
 * `root`: the least cpu.max of it and of the groups around it; UINT_MAX: no limit is known. */
unsigned cores_of_group(const char *root, const char *path);

#endif
