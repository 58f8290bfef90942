/* The configuration: flags before the file before the defaults, all from options.def. */
#ifndef FRONT_CONFIG_H
#define FRONT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum { CONFIG_LIST_MAX = 16 };

struct config_list {
	char *item[CONFIG_LIST_MAX];
	unsigned count;
};

struct config {
#define CONFIG_TEXT                                                     char *
#define CONFIG_LIST                                                     struct config_list
#define CONFIG_SIZE                                                     uint64_t
#define CONFIG_COUNT                                                    uint64_t
#define CONFIG_SECONDS                                                  uint64_t
#define CONFIG_SHARE                                                    double
#define OPTION(member, name, type, reload, standard, least, most, text) CONFIG_##type member;
#include "options.def"
#undef OPTION
	bool check_only; /* --check-config */
};

enum config_result { CONFIG_RUN, CONFIG_EXIT, CONFIG_INVALID };

/* Fills the configuration from the command line and the file that it names. CONFIG_EXIT: --help or
 * --version has been answered. CONFIG_INVALID: the log names the file or flag, the key, its value
 * and what is valid. config_fini() in every case. */
enum config_result config_load(struct config *config, int argc, char **argv) MUST_CHECK;

/* Reads the same command line, and the file, again, and takes over what may change while the
 * service runs. The log says what has changed, and what differs but needs a restart. False: invalid
 * (the log says why), and nothing has changed. */
bool config_reload(struct config *config, int argc, char **argv) MUST_CHECK;

void config_fini(struct config *config);

#endif
