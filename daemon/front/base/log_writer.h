/* The front's log on its way out: lines wait in memory until standard error or the journal takes
 * them, and none of them holds up the loop. When that memory is full lines are lost; how many is
 * said in a line as soon as one gets through. */
#ifndef FRONT_BASE_LOG_WRITER_H
#define FRONT_BASE_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* From now on until log_writer_fini() lines are written by a thread; outside of that at once. The
 * loop must be there. */
enum error log_writer_init(void) MUST_CHECK;

/* Writes what waits, for at most a second. */
void log_writer_fini(void);

enum log_output_kind { LOG_TO_STDERR, LOG_TO_JOURNAL };

/* Takes a copy: a line for standard error, or an entry of the journal (journal.h). */
void log_writer_put(enum log_output_kind kind, const char *text, size_t length);

/* Lines of the front that have been lost since the start. */
uint64_t log_writer_lost(void);

#endif
