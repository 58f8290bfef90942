/* A body or an answer: bytes in a memfd, or, above a configured size, in an unlinked file of the
 * cache folder. What lies in memory is counted, and bounded over all spools together. */
#ifndef FRONT_SPOOL_H
#define FRONT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config.h"

struct spool {
	int fd; /* -1: none */
	bool in_memory;
	uint64_t size;     /* bytes written by spool_write() */
	uint64_t reserved; /* bytes counted against the bound */
};

void spool_init(const struct config *config);

/* Makes an empty spool for about `expected` bytes. ERR_QUEUE_FULL if memory for them is not free
 * now, ERR_IO if no file can be made. */
enum error spool_open(struct spool *spool, uint64_t expected) MUST_CHECK;

/* The same, but goes to a file where there is no room in memory: for what has been accepted. */
enum error spool_open_anywhere(struct spool *spool, uint64_t expected) MUST_CHECK;

/* Appends. A spool that outgrows its memory moves to a file. Errors as spool_open(). */
enum error spool_write(struct spool *spool, const void *data, size_t size) MUST_CHECK;

/* Counts what another process has written: the size of an answer. */
void spool_settle(struct spool *spool, uint64_t size);

/* Closes it; one that is closed (fd -1) may be closed again. */
void spool_close(struct spool *spool);

/* Bytes of memory that all spools hold. */
uint64_t spool_memory(void);

/* How many are open, in memory or in files. */
unsigned spool_count(bool in_memory);

#endif
