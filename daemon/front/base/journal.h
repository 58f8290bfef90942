/* Entries of the journal with fields of their own: MESSAGE, PRIORITY, and what log_fields.def
 * lists, each behind CONVOLVED_. */
#ifndef FRONT_BASE_JOURNAL_H
#define FRONT_BASE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

/* From now on, log lines go to the journal by its own protocol whenever standard error is it. */
void journal_init(void);

/* Sends an entry: lines NAME=VALUE, the first two MESSAGE and PRIORITY. Any thread may; it may have
 * to wait for the journal. False if the journal did not take it, nor standard error. */
bool journal_send(const char *entry, size_t length);

#endif
