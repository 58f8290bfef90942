/* Log lines on standard error: one event a line, with syslog levels. Under systemd each line
 * carries the level as a "<N>" prefix, which the journal takes off (sd-daemon(3)). */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include "error.h"

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Sets the program's name, which starts every line, and the least urgent level that is written.
 * The name is kept, not copied. */
void log_init(const char *program, enum log_level level);

/* The level of a name (error, warning, notice, info, debug), or -1. */
int log_level_parse(const char *name);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
