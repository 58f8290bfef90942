/* The configuration: a member for each option of options.def. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* CONFIG_NAME_MAX: the longest name, in bytes without its NUL. */
enum { CONFIG_LIST_MAX = 16, CONFIG_PRESETS_MAX = 64, CONFIG_NAME_MAX = 63 };

struct config_list {
	char *item[CONFIG_PRESETS_MAX + 1]; /* NULL after the last */
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
#define CONFIG_AUTO      uint64_t /* 0: no, 1: yes, 2: auto */
#define CONFIG_MODE      char *
#define CONFIG_LEVEL     uint64_t /* from 0: above LOG_LEVEL_ERROR */
#define CONFIG_FORMAT    uint64_t
#define CONFIG_ADDRESSES struct config_list
#define CONFIG_NETWORKS  struct config_list
#define CONFIG_ORIGINS   struct config_list
#define CONFIG_FORMATS   struct config_list
#define CONFIG_PRESETS   struct config_list /* NAME=QUERY, see front/api/presets.h */
#define CONFIG_URL       char *
#define CONFIG_NAME      char *
#define SECTION(name, text)
#define OPTION(member, name, type, reload, default_, min, max, text) CONFIG_##type member;
#include "front/config/options.def"
	bool listen_is_default; /* `listen` was not given */
	bool check_only;        /* --check-config */
};

/* The configuration in force. Its options that a reload may change are read each time. */
extern const struct config *config;
