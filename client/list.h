/* A list of names, one a line, that is read on demand: neither it nor its names are kept in memory.
 * A pipe may be slow: the reader does not wait for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/transfer.h"

struct list {
	int fd; /* -1: not open */
	char separator;
	char *buffer;
	size_t start, end, room;
	bool ended;
	int error; /* errno of reading; EMSGSIZE: a name is too long */
};

/* Opens a file, or standard input ("-"). Returns 0 or an errno. */
int list_open(struct list *list, const char *path, char separator);
void list_close(struct list *list);

/* Returns the next name, which lives until the next call. SUPPLY_LATER: it is not there yet.
 * SUPPLY_END: there is none, or reading has failed. Empty lines are left out. */
enum supply list_next(struct list *list, const char **name);
