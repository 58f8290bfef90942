/* Restricts a process's use of files with Landlock, which needs no privilege. */
#ifndef COMMON_LANDLOCK_H
#define COMMON_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Permanently forbids this thread, and all that it starts, to create, change or remove files,
 * except beneath the directories named; with no directory (NULL) also to open any file. Where the
 * kernel supports it, also forbids TCP, and signals and abstract sockets to processes outside this
 * restriction. Directories that do not exist are skipped. *abi is the Landlock version in force, 0
 * if the kernel has none, which is no error. The process must have no_new_privs set. */
enum error landlock_enter(const char *const *writable, size_t count, int *abi) MUST_CHECK;

/* What a process that connects to others may open and where it may connect. */
struct landlock_client {
	const char *const
	    *readable; /* files, and directories with all beneath; NULLs are skipped */
	size_t readable_count;
	const uint16_t *ports; /* of TCP */
	size_t port_count;
};

/* The same with no directory, but for these. */
enum error landlock_enter_client(const struct landlock_client *client, int *abi) MUST_CHECK;

#endif
