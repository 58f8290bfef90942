/* What a process may do with files, by Landlock, which needs no privilege. */
#ifndef COMMON_LANDLOCK_H
#define COMMON_LANDLOCK_H

#include <stddef.h>

#include "common/error.h"

/* Takes from this thread and from all that it starts, for good: making, changing and removing
 * files, but beneath the directories named; with no directory (NULL) opening any file. Also, where
 * the kernel knows how, TCP, and signals and abstract sockets to processes that are not so
 * restricted. Directories that do not exist are left out. *abi is the kernel's version of Landlock
 * that is in force, 0 if it has none, which is no error. The process must have no_new_privs set. */
enum error landlock_enter(const char *const *writable, size_t count, int *abi) MUST_CHECK;

#endif
