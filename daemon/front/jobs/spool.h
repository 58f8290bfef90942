/* A body or an answer: bytes in a memfd, or, above a configured size, in an unlinked file of the
 * cache folder. What lies in memory is counted, and bounded over all spools together. Files are
 * written by a thread, for a disk may make its writers wait. */
#ifndef FRONT_JOBS_SPOOL_H
#define FRONT_JOBS_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

struct spill;

struct spool {
	int fd;              /* -1: none */
	struct spill *spill; /* to a file, until spool_take_file(); else NULL */
	bool in_memory;
	uint64_t size;     /* bytes written by spool_write() */
	uint64_t reserved; /* bytes counted against the bound */
	bool is_answer;
};

void spool_init(const struct config *config);

/* Makes an empty spool for about `expected` bytes. ERR_QUEUE_FULL if memory for them is not free
 * now. Whether there can be a file turns out later (spool_error()). */
enum error spool_open(struct spool *spool, uint64_t expected) MUST_CHECK;

/* The same for an answer, which goes to a file where there is no room in memory, or too little for
 * new bodies would be left. */
enum error spool_open_answer(struct spool *spool, uint64_t expected) MUST_CHECK;

/* The same, in memory whatever the configured size, for what is small. */
enum error spool_open_memory(struct spool *spool, uint64_t size) MUST_CHECK;

/* Appends. A spool that outgrows its memory moves to a file. Errors as spool_open(), and those of
 * earlier writes. */
enum error spool_write(struct spool *spool, const void *data, size_t size) MUST_CHECK;

/* True if its file is not there, or not all of what was written is in it: the spool should get no
 * more, and must not be sealed, until `wake` has been called, once, unless it is closed before. */
bool spool_await(struct spool *spool, void (*wake)(void *context), void *context);

/* What was written is in the file: `fd` stands for it. ERR_IO as spool_error(). */
enum error spool_take_file(struct spool *spool) MUST_CHECK;

/* ERR_IO if something of what was written could not get into its file. */
enum error spool_error(const struct spool *spool) MUST_CHECK;

/* Makes a spool one that nobody changes any more; its descriptor is then for reading only, and may
 * be given to a worker. ERR_IO: not all of it could be written, or it is as it was. */
enum error spool_seal(struct spool *spool) MUST_CHECK;

/* Takes what another process has written and says to be so many bytes. In memory it is sealed; a
 * file stays as it is only if that process has ended. ERR_IO: it is not so. */
enum error spool_settle(struct spool *spool, uint64_t size) MUST_CHECK;

/* Closes it; one that is closed (fd -1) may be closed again. */
void spool_close(struct spool *spool);

/* Bytes of memory that all spools hold. */
uint64_t spool_memory(void);

/* How many are open, in memory or in files. */
unsigned spool_count(bool in_memory);

#endif
