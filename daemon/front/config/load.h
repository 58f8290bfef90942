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

/* Takes over those options of a configuration just read that may change at run time, in exchange
 * for the old values. Logs what has changed, and what needs a restart. */
void config_exchange(struct config *config, struct config *read);

void config_fini(struct config *config);

/* The number of cores that this process can keep busy: those that it may run on, or fewer where its
 * control group has a smaller share of their time. At least 1. */
unsigned cores_usable(void);

/* The share, in whole cores and rounded up, of the control group (version 2) at `path` (/…) below
 * `root`: the least cpu.max of it and of the groups around it; UINT_MAX: no limit is known. */
unsigned cores_of_group(const char *root, const char *path);

#endif
