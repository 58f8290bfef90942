/* Log lines on standard error: one event a line, with syslog levels, and with fields that say what
 * it is about. Their destination decides their form:
 *
 *   plain    "PROGRAM: LEVEL: TEXT", for a terminal; the fields are not shown, as the text says it
 *   json     one object a line: time, level, program, pid, message and the fields
 *   journal  standard error is the journal's (JOURNAL_STREAM, systemd.exec(5)): entries, by whoever
 *            is set by log_set_journal(); without that, lines "<N>TEXT" (sd-daemon(3))
 *   relay    standard error is a pipe to the front, which writes the line in its own form:
 * "<N>TEXT", or "<N,M>TEXT" after M lines that were lost */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* AUTO: relay if the front says so in the environment; journal if standard error is the journal's;
 * otherwise plain. */
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_PLAIN, LOG_FORMAT_JSON };

struct log_fields {
#define LOG_NUMBER                uint64_t
#define LOG_TEXT                  const char *
#define FIELD(member, type, name) LOG_##type member;
#include "base/log_fields.def"
};

/* LOG_FIELDS(.job = 7, .device = "cpu0") */
#define LOG_FIELDS(...) (&(const struct log_fields){__VA_ARGS__})

/* A field that is set. */
struct log_field {
	const char *name;
	const char *text; /* NULL: it is the number */
	uint64_t number;
};

/* An environment variable that the front sets for its workers. */
#define LOG_RELAY "LOG_RELAY"

/* Sets the program's name, the least severe level that is written, and the form. The name is not
 * copied and must stay valid. */
void log_init(const char *program, enum log_level level, enum log_format format);

/* Sets the function that writes the journal's entries; without it the journal gets lines. */
typedef void log_journal(enum log_level level, const char *text, const struct log_fields *fields);
void log_set_journal(log_journal *journal);

/* Sets the function that takes whole lines instead of standard error. */
typedef void log_output(enum log_level level, const char *line, size_t length);
void log_set_output(log_output *output);

/* The next field that is set, starting from *i = 0; false after the last. */
bool log_field_next(const struct log_fields *fields, size_t *i, struct log_field *field);

/* Writes an event; fields may be NULL. */
void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a line of another process. */
void log_relay(enum log_level level, const char *program, pid_t pid,
               const struct log_fields *fields, const char *text);

#define log_error(...)   log_event(LOG_LEVEL_ERROR, NULL, __VA_ARGS__)
#define log_warning(...) log_event(LOG_LEVEL_WARNING, NULL, __VA_ARGS__)
#define log_notice(...)  log_event(LOG_LEVEL_NOTICE, NULL, __VA_ARGS__)
#define log_info(...)    log_event(LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_debug(...)   log_event(LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
