/* Entries of the journal with fields of their own: MESSAGE, PRIORITY, and what log_fields.def
 * lists, each behind CONVOLVED_. */
#ifndef FRONT_BASE_JOURNAL_H
#define FRONT_BASE_JOURNAL_H

/* From now on, log lines go to the journal by its own protocol whenever standard error is the
 * journal's. */
void journal_init(void);

#endif
