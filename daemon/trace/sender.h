/* Sends spans to a collector: gathers them for a moment, posts them as one request at a time, and
 * repeats a request that failed for now. Spans that do not fit meanwhile are lost, and counted. */
#ifndef TRACE_SENDER_H
#define TRACE_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/span.h"

/* endpoint: http://HOST:PORT or with https and a path, to which v1/traces is appended. */
enum error sender_init(const char *endpoint) MUST_CHECK;

/* Lists the ports of TCP that it connects to: the endpoint's, those of the proxies that the
 * environment names, and that of servers of names. Returns how many there are. */
enum { SENDER_PORTS_MAX = 7 };
size_t sender_ports(const char *endpoint, uint16_t ports[SENDER_PORTS_MAX]);

void sender_add(const struct span *span);

/* Does what is due, then waits until this descriptor can be read, or something is due. Returns
 * whether it can. */
bool sender_wait(int fd);

/* Spans lost since the last call. */
uint64_t sender_lost(void);

/* Sends what there is, for so many milliseconds at most. */
void sender_flush(uint64_t ms);

#endif
