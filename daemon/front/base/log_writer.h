/* The output of the front's log. Lines are buffered until standard error or the journal accepts
 * them, so logging never blocks the loop. While the buffer is full, lines are lost; the next one
 * that gets through brings their number. Journal entries have the fields of log_fields.def. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Starts the thread that writes the lines, until log_writer_fini(); before and after, lines are
 * written directly. The loop must exist. */
enum error log_writer_init(void) MUST_CHECK;

/* Writes the buffered lines, for at most one second, and stops the thread. */
void log_writer_fini(void);

/* Logs by the journal's native protocol whenever standard error is the journal's. */
void log_writer_use_journal(void);

/* The number of the front's lines lost since the start. */
uint64_t log_writer_lost(void);
