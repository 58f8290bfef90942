/* The sandbox of a process that decodes hostile files. */
#ifndef CODEC_SANDBOX_H
#define CODEC_SANDBOX_H

#include <stdint.h>

#include "common/error.h"

/* Bytes. */
struct sandbox_limits {
	uint64_t memory; /* of its own: arenas and bodies are shared memory and do not count */
	uint64_t file;   /* largest that it may write */
};

/* Takes from the process, for good: what is beyond the limits, core dumps, capabilities, new
 * privileges, all files but those that are open or passed to it, and every system call that
 * decoding and encoding do not need: what is left acts on no other process, but by messages through
 * WORKER_SOCKET. No thread may have been started. Returns ERR_INTERNAL, with errno set, if the
 * kernel refuses. */
enum error sandbox_enter(const struct sandbox_limits *limits) MUST_CHECK;

#endif
