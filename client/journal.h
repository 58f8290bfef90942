/* How far a list is done: a small file from which a later run continues, without asking again for
 * what is done. It has the number of names before which nothing is left to do, but for those that
 * failed, and the hash of those names: a list that begins otherwise is another one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/hash.h"

struct journal;

/* What to do with a name. */
enum journal_advice { JOURNAL_DO, JOURNAL_SKIP, JOURNAL_OTHER_LIST };

/* Opens or creates the file, for this command. Returns NULL after printing what is wrong. */
struct journal *journal_open(const char *path, const char *command);
void journal_close(struct journal *journal);

/* Says what to do with the name of this number, from 1; they come in turn. `names` is the hash of
 * all of them up to this one. */
enum journal_advice journal_ask(const struct journal *journal, uint64_t number, hash names,
                                const char *name);

/* True if the list may end after this name: not before what was done. */
bool journal_may_end(const struct journal *journal, uint64_t number);

/* Notes that a name has been done, or has failed. */
void journal_note(struct journal *journal, uint64_t number, const char *name, bool failed);

/* Writes the file: all names up to `number` have been noted, and `names` is their hash. Returns
 * NULL, or why that failed. */
const char *journal_save(struct journal *journal, uint64_t number, hash names);
