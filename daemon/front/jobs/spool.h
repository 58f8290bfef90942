/* A body or an answer: bytes written by other processes, in a memfd or, above a configured size, in
 * an unlinked file of the cache directory. Memory is bounded over all spools together. A thread
 * makes the files, because a disk may block. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "front/jobs/shares.h"

struct spill;

struct spool {
	int fd; /* for reading alone, if it is a file's; -1: none */
	/* for a file, a descriptor for writing alone, or -1; in memory the same as fd */
	int writer;
	struct spill *spill; /* to a file, until spool_take_file(); else NULL */
	bool in_memory;
	uint64_t size;      /* bytes, once it has settled */
	uint64_t most;      /* the most bytes that it may have then */
	uint64_t reserved;  /* bytes counted against the bound */
	struct share share; /* an answer's reserved bytes, as its client's */
};

#define SPOOL_NONE ((struct spool){.fd = -1, .writer = -1})

/* Opens an empty spool with room for `size` bytes. Its `writer` can be lent once nothing is left to
 * wait for (spool_await()). ERR_QUEUE_FULL if this much memory is not free now. */
enum error spool_open(struct spool *spool, uint64_t size) MUST_CHECK;

/* Opens a spool for an answer to this client, with room for twice the expected size and a megabyte;
 * in a file if memory is short, or would be for others. */
enum error spool_open_answer(struct spool *spool, uint64_t expected, const char *client) MUST_CHECK;

/* Opens a spool, to be settled, for a body in this memfd, which becomes the spool's, also on
 * failure. ERR_IO if it is not sealed. */
enum error spool_adopt(struct spool *spool, uint64_t size, int fd) MUST_CHECK;

/* Makes room for `size` bytes in all, maybe in a file: then wait again. Errors: spool_open()'s. */
enum error spool_extend(struct spool *spool, uint64_t size) MUST_CHECK;

/* Returns true if the spool's file does not exist yet, or lacks the bytes that were in memory: do
 * not use it until `wake` is called (once, unless the spool is closed before). */
bool spool_await(struct spool *spool, void (*wake)(void *context), void *context);

/* Takes over the file, if any, once nothing is left to wait for. ERR_IO, also when asked again, if
 * it could not be made. */
enum error spool_take_file(struct spool *spool) MUST_CHECK;

/* Gives up writing. Returns true if nobody can change the spool any more: memory that its writer
 * has sealed, and a file that its writer has closed, where the file system tells. */
bool spool_release(struct spool *spool);

/* Accepts the written bytes, reported as `size`, once spool_release() was true or the writer has
 * ended. ERR_IO if the report is wrong, or memory has holes. */
enum error spool_settle(struct spool *spool, uint64_t size) MUST_CHECK;

/* Replaces its content by a file of the same `size` bytes, whose descriptor it then owns. */
void spool_replace(struct spool *spool, int file, uint64_t size);

/* Closes it; a closed one (fd -1) may be closed again. */
void spool_close(struct spool *spool);

/* Bytes of memory that all spools hold, and the number of open ones. */
struct spool_use {
	uint64_t memory;
	unsigned in_memory, in_files;
};
struct spool_use spool_use(void);
