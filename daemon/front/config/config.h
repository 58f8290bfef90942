/* The configuration: flags before the environment before the file before the defaults, all from
 * options.def. */
#ifndef FRONT_CONFIG_CONFIG_H
#define FRONT_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum { CONFIG_LIST_MAX = 16 };

struct config_list {
	char *item[CONFIG_LIST_MAX];
	unsigned count;
};

struct config {
#define CONFIG_TEXT      char *
#define CONFIG_LIST      struct config_list
#define CONFIG_SIZE      uint64_t
#define CONFIG_COUNT     uint64_t
#define CONFIG_SECONDS   uint64_t
#define CONFIG_SHARE     double
#define CONFIG_SWITCH    uint64_t
#define CONFIG_MODE      uint64_t
#define CONFIG_LEVEL     char *
#define CONFIG_FORMAT    char *
#define CONFIG_ADDRESSES struct config_list
#define SECTION(name, text)
#define OPTION(member, name, type, reload, standard, least, most, text) CONFIG_##type member;
#include "front/config/options.def"
#undef OPTION
#undef SECTION
	bool listen_standard; /* `listen` is its default */
	bool check_only;      /* --check-config */
};

enum config_result { CONFIG_RUN, CONFIG_EXIT, CONFIG_INVALID };

/* Fills the configuration from the command line, the environment and the file that they name.
 * CONFIG_EXIT: the likes of --help have been answered. CONFIG_INVALID: the log says of everything
 * that is wrong what it is (flag, variable, or file and line; key, value) and what is valid.
 * config_fini() in every case. */
enum config_result config_load(struct config *config, int argc, char **argv) MUST_CHECK;

/* Reads all of that again, and takes over what may change while the service runs. The log says what
 * has changed, and what differs but needs a restart. `fits` looks at what was read before anything
 * changes. False: it or something else is invalid (the log says why), and nothing has changed. */
bool config_reload(struct config *config, int argc, char **argv,
                   bool (*fits)(const struct config *read,
                                const struct config *running)) MUST_CHECK;

void config_fini(struct config *config);

#endif
