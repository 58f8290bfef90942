/* The sandboxes of workers, which read strangers' data. Each is a row in sandbox.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* 1 in a build with AddressSanitizer or ThreadSanitizer, which do not work in sandboxes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif

enum sandbox {
	SANDBOX_CODEC, /* decodes hostile files: uses open and received descriptors, and memory */
	/* Runs drivers, which read any file and run programs. Denied are signals to other
	 * processes, their limits and memory, all sockets but Unix sockets, administrative calls,
	 * and writing outside of some directories. */
	SANDBOX_DEVICE,
	SANDBOX_HTTP,  /* the same as a codec worker, and accepted sockets */
	SANDBOX_TRACE, /* connects to the collector; reads files that name hosts and certificates */
};

/* The access that depends on the configuration. */
struct sandbox_access {
	uint64_t memory; /* SANDBOX_CODEC: bytes of private memory; arenas are shared */
	/* SANDBOX_DEVICE: directories; NULLs and missing ones are skipped. */
	const char *const *writable;
	size_t writable_count;
	const uint16_t *ports; /* SANDBOX_TRACE: TCP ports to which it may connect */
	size_t port_count;
};

/* Descriptors from this number on are an HTTP worker's own. It cannot shut down sockets below,
 * which it shares with the front, set their options, or give them other numbers. */
enum { HTTP_OWN_FDS = 64 };

/* Restricts this process for good: no core dumps, capabilities (except for a device worker) and new
 * privileges, and only the sandbox's files and system calls. A write beyond the bound on files,
 * which the front sets, fails. If the kernel has Landlock, TCP, and signals and abstract sockets to
 * other processes, are forbidden too. No thread may have been started. ERR_INTERNAL, with errno
 * set, if the kernel refuses. A build with a sanitizer has limits only. */
enum error sandbox_enter(enum sandbox sandbox, const struct sandbox_access *access) MUST_CHECK;

/* Returns the bound on memory that holds since then; UINT64_MAX: none. */
uint64_t sandbox_memory(void);
