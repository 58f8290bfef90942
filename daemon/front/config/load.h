/* Loads the configuration: flags override the environment, that the file, and that the defaults. */
#pragma once

#include "base/error.h"
#include "front/config/config.h"

enum config_result { CONFIG_RUN, CONFIG_EXIT, CONFIG_HASH_TOKEN, CONFIG_INVALID };

/* Fills the configuration. CONFIG_EXIT: a flag such as --help was answered. CONFIG_HASH_TOKEN: the
 * caller must handle --hash-token. CONFIG_INVALID: every error was logged with its place and with
 * what is expected. Call config_fini() in every case. */
enum config_result config_load(struct config *config, int argc, char **argv) MUST_CHECK;

/* Takes over those options of a newly read configuration that may change at run time, in exchange
 * for the old values. Logs the changes, and those that need a restart. */
void config_exchange(struct config *config, struct config *read);

void config_fini(struct config *config);

/* Returns the number of cores that this process can keep busy: those on which it may run, or fewer
 * if its control group has a smaller share of their time. At least 1. */
unsigned cores_usable(void);

/* Returns the share, in whole cores and rounded up, of the control group (version 2) at `path` (/…)
 * below `root`: the least cpu.max of the group and the groups around it; UINT_MAX: no limit is
 * known. */
unsigned cores_of_group(const char *root, const char *path);
