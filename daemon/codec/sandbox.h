/* The sandbox of a codec worker: it may use the memory, the descriptors and the threads that it has,
 * and nothing else of the system. */
#ifndef CODEC_SANDBOX_H
#define CODEC_SANDBOX_H

#include <stdint.h>

#include "common/error.h"

/* Locks this process in for good. memory: bytes of address space that it may take beyond what it
 * has now, so the arena is best mapped before. libvips must have been initialised. Says in the log
 * what could not be done. */
enum error sandbox_enter(uint64_t memory) MUST_CHECK;

#endif
