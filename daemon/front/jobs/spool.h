/* A body or an answer: bytes in a memfd or, above a configured size, in an unlinked file of the
 * cache directory. Memory is counted, and bounded over all spools together. A thread writes the
 * files, because a disk may block its writers. */
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

/* Opens an empty spool for about `expected` bytes. ERR_QUEUE_FULL if so much memory is not free
 * now. A failure to create a file shows later, in spool_error(). */
enum error spool_open(struct spool *spool, uint64_t expected) MUST_CHECK;

/* The same for an answer, which goes to a file if memory is short, or would be for new bodies. */
enum error spool_open_answer(struct spool *spool, uint64_t expected) MUST_CHECK;

/* The same, in memory whatever the configured size, for small data. */
enum error spool_open_memory(struct spool *spool, uint64_t size) MUST_CHECK;

/* Appends. A spool that outgrows its memory moves to a file. Errors as for spool_open(), and those
 * of earlier writes. */
enum error spool_write(struct spool *spool, const void *data, size_t size) MUST_CHECK;

/* True if its file does not exist yet, or lacks some of the data: write no more, and do not seal
 * it, until `wake` is called (once, unless the spool is closed before). */
bool spool_await(struct spool *spool, void (*wake)(void *context), void *context);

/* The file has all data, and `fd` is it. ERR_IO as for spool_error(). */
enum error spool_take_file(struct spool *spool) MUST_CHECK;

/* ERR_IO if some data could not be written to its file. */
enum error spool_error(const struct spool *spool) MUST_CHECK;

/* Seals a spool: it becomes read-only, and its descriptor may then be given to a worker. ERR_IO if
 * not all of it could be written, or it cannot be sealed. */
enum error spool_seal(struct spool *spool) MUST_CHECK;

/* Takes over what another process has written, so many bytes by its report. Seals it in memory; a
 * file is safe only if that process has ended. ERR_IO if the report is wrong. */
enum error spool_settle(struct spool *spool, uint64_t size) MUST_CHECK;

/* Closes it; a closed one (fd -1) may be closed again. */
void spool_close(struct spool *spool);

/* Bytes of memory that all spools hold. */
uint64_t spool_memory(void);

/* The number of open ones, in memory or in files. */
unsigned spool_count(bool in_memory);

#endif
