/* The output of the front's log. Lines are buffered in memory until standard error or the journal
 * accepts them, so logging never blocks the loop. While the buffer is full, lines are lost; the
 * next line that gets through is followed by their number. */
#ifndef FRONT_BASE_LOG_WRITER_H
#define FRONT_BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log.h"

/* Starts the thread that writes the lines, until log_writer_fini(); before and after, lines are
 * written directly. The loop must exist. */
enum error log_writer_init(void) MUST_CHECK;

/* Writes the buffered lines, for at most one second, and stops the thread. */
void log_writer_fini(void);

/* Writes a text to its destination; called in the thread. Returns false if it could not be
 * written. */
typedef bool log_write(const char *text, size_t length);

/* Buffers a copy of a text, truncated to 16 KiB, for `write`, which gets it at once, or, if it is
 * only informative, in at most some milliseconds. */
void log_writer_put(enum log_level level, log_write *write, const char *text, size_t length);

/* The number of the front's lines lost since the start. */
uint64_t log_writer_lost(void);

#endif
