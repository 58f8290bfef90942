/* The grammar of requests (RFC 9110, RFC 9112), read strictly: anything that another reader could
 * understand differently is an error. Checks the bytes of a connection as they arrive, in pieces of
 * any size, until the request that is the last by its own headers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "link/head.h"

enum {
	GRAMMAR_HEAD_MAX = 96 << 10, /* bytes of a request line and headers, and of their items */
	GRAMMAR_ITEM = 64,           /* bytes counted for a parameter, header or cookie */
	GRAMMAR_FIELDS_MAX = 100,    /* headers of a request */
	GRAMMAR_TRAILERS_MAX = 8 << 10,
	GRAMMAR_CHUNK_LINE_MAX = 4 << 10, /* bytes of a chunk's size and its extensions */
};

enum grammar_state {
	GRAMMAR_START, /* at the request line */
	GRAMMAR_HEADERS,
	GRAMMAR_BODY,       /* `left` more bytes */
	GRAMMAR_CHUNK_SIZE, /* at the line before a chunk */
	GRAMMAR_CHUNK,      /* `left` more bytes of it */
	GRAMMAR_CHUNK_END,  /* at the line end after it */
	GRAMMAR_TRAILERS,
	GRAMMAR_OVER, /* after the last request */
};

/* All zeros: a new connection. */
struct grammar {
	enum grammar_state state;
	struct head_writer line; /* the current one, as far as it is known; with a NUL at its end */
	size_t section;          /* bytes of the head or trailers before this line */
	unsigned fields;         /* in this request */
	uint64_t left;           /* see the states */
	uint64_t requests;       /* that are complete, with their bodies */
	bool http10, options, has_host, has_length, chunked, close, keep_alive, blank;
};

/* True between two requests. */
bool grammar_is_idle(const struct grammar *grammar);

void grammar_fini(struct grammar *grammar);

/* Reads the next piece, and removes chunks' extensions, which libraries read differently. *sound:
 * the number of bytes, now at its start, that belong to requests: all; or those up to the end of
 * the last request; or on an error those before the faulty request (0 if that began in an earlier
 * piece). An error is the client's, or ERR_MEMORY; nothing more may then be read. */
enum error grammar_read(struct grammar *grammar, char *data, size_t size, size_t *sound,
                        struct problem *problem) MUST_CHECK;
