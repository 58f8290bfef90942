/* An answer: status, headers, and a text or a file; and its way through the link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct head_writer;
struct link;
struct link_message;

enum { ANSWER_HEADERS_MAX = 24 };

struct answer {
	int status;               /* HTTP status; 0: there is no answer yet */
	const char *content_type; /* NULL: none; in one that was read, it is a header */
	char *text;               /* malloc'ed, owned; NULL: the body is the file, or empty */
	size_t text_size;
	int file; /* bytes 0 to file_size are the body; -1: none; owned by the job */
	/* without a file: the length that a 304 declares, of the text that it spares */
	uint64_t file_size;
	uint64_t version;   /* the body's version, if it seldom or never changes; else 0 */
	const char *reason; /* slug of the error, NULL if there is none */
	char *detail;       /* the error's message; owned */
	char *block;        /* backs the texts of one that was read; owned */
	bool failed;        /* memory was short: a header or the text is missing */
	unsigned headers;
	struct {
		const char *name;
		char *value; /* owned */
	} header[ANSWER_HEADERS_MAX];
};

void answer_init(struct answer *answer);
void answer_fini(struct answer *answer);

/* Adds a header; the name is kept, the value (printf-style) is copied. */
void answer_header(struct answer *answer, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if it has a header of this name. */
bool answer_has(const struct answer *answer, const char *name);

/* Makes a text (owned from now on, NULL: none) the next piece of a streamed body. */
void answer_piece(struct answer *answer, char *text, size_t size);

/* Adds status and headers as one block of texts; a body may follow it. */
void answer_pack(const struct answer *answer, struct head_writer *writer);

/* Reads a block and the text behind it, if any; call answer_fini() also on failure.
 * ERR_BAD_REQUEST: it is none. */
enum error answer_unpack(struct answer *answer, const void *data, size_t size) MUST_CHECK;

/* Sends an answer; a text that is too long for a message is sent as a file. stream: its body comes
 * in pieces. Returns false if it cannot be sent. */
bool answer_send(struct link *link, uint64_t number, const struct answer *answer, bool stream);

/* Reads an answer, which does not own its file; call answer_fini() also on failure.
 * ERR_BAD_REQUEST: it is none. */
enum error answer_read(struct answer *answer, const struct link_message *message) MUST_CHECK;
