/* The sandbox of an HTTP worker: no file system, no new sockets but accepted ones, no processes. */
#ifndef HTTP_SANDBOX_H
#define HTTP_SANDBOX_H

#include "common/error.h"

/* Permanently restricts the process: no core dumps, capabilities, new privileges, files except
 * those that are open or received, and no system call that serving does not need. No thread may
 * have been started. ERR_INTERNAL with errno set. */
enum error http_sandbox_enter(void) MUST_CHECK;

#endif
