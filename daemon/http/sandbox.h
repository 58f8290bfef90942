/* The sandbox of an HTTP worker: no file system, no new sockets but accepted ones, no processes. */
#ifndef HTTP_SANDBOX_H
#define HTTP_SANDBOX_H

#include "common/error.h"

/* Permanently restricts the process: no core dumps, capabilities, new privileges, files except
 * those that are open or received, and no system call that serving does not need. No thread may
 * have been started. ERR_INTERNAL with errno set. */
enum error http_sandbox_enter(void) MUST_CHECK;

/* The numbers from which on descriptors are the worker's own. Those below are for sockets that it
 * shares with the front: it cannot shut them down, set options of them or give them other numbers.
 */
enum { HTTP_OWN_FDS = 64 };

/* Keeps what is opened or received from now on out of those numbers, or leaves one of them for the
 * next descriptor. */
void http_sandbox_keep_numbers(void);
void http_sandbox_leave_number(void);

#endif
