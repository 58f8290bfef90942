/* The sandbox of a process that decodes hostile files. */
#ifndef CODEC_SANDBOX_H
#define CODEC_SANDBOX_H

#include <stdint.h>

#include "common/error.h"

/* Takes from the process, for good: memory of its own beyond this many bytes (arenas and bodies are
 * shared memory and do not count), core dumps, new privileges, and every system call that decoding
 * and encoding do not need. All files but those that are passed in must be open. Returns
 * ERR_INTERNAL, with errno set, if the kernel refuses. */
enum error sandbox_enter(uint64_t memory) MUST_CHECK;

#endif
