/* The sandbox of a process that decodes hostile files. */
#ifndef CODEC_SANDBOX_H
#define CODEC_SANDBOX_H

#include <stdint.h>

#include "common/error.h"

/* Permanently restricts the process: sets a limit of bytes of private memory (arenas and bodies are
 * shared memory and do not count), and takes away core dumps, capabilities, new privileges, all
 * files except open or received ones, and every system call that decoding and encoding do not need.
 * The front bounds the files that it may write: a write beyond the bound fails. Other processes can
 * only be reached by messages through WORKER_SOCKET. No thread may have been started. Returns
 * ERR_INTERNAL, with errno set, if the kernel refuses. */
enum error sandbox_enter(uint64_t memory) MUST_CHECK;

/* The bound on memory that holds since then; UINT64_MAX: none. */
uint64_t sandbox_memory(void);

#endif
