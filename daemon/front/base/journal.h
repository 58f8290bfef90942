/* Log lines as journal entries with fields: MESSAGE, PRIORITY, and those of log_fields.def, each
 * prefixed with CONVOLVED_. */
#ifndef FRONT_BASE_JOURNAL_H
#define FRONT_BASE_JOURNAL_H

/* Sends log lines to the journal by its native protocol whenever standard error is the
 * journal's. */
void journal_init(void);

#endif
