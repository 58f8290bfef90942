/* The output of the front's log: lines wait in memory until standard error or the journal takes
 * them, and never block the loop. When that memory is full, lines are lost; the next line that gets
 * through is followed by their number. */
#ifndef FRONT_BASE_LOG_WRITER_H
#define FRONT_BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* From now on until log_writer_fini() lines are written by a thread; outside of that at once. The
 * loop must be there. */
enum error log_writer_init(void) MUST_CHECK;

/* Writes what waits, for at most a second. */
void log_writer_fini(void);

/* Writes a text where it belongs, in the thread; false if it could not be written. */
typedef bool log_write(const char *text, size_t length);

/* Takes a copy of a text, at most 16 KiB of it, for this function. */
void log_writer_put(log_write *write, const char *text, size_t length);

/* Lines of the front that have been lost since the start. */
uint64_t log_writer_lost(void);

#endif
