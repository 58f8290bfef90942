/* An answer before it is sent: status, headers, and a text or a file. Independent of sockets. */
#ifndef FRONT_API_ANSWER_H
#define FRONT_API_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "front/jobs/job.h"

enum { ANSWER_HEADERS_MAX = 24 };

struct answer {
	int status; /* HTTP status; 0: there is no answer yet */
	const char *content_type;
	char *text; /* malloc'ed, owned; NULL: the body is the file, or empty */
	size_t text_size;
	int file; /* bytes 0 to file_size are the body; -1: none; owned by the job */
	uint64_t file_size;
	uint64_t version; /* of a body that seldom or never changes; 0: it may change at any time */
	const char *reason; /* slug of the error, NULL if there is none */
	char *detail;       /* the error's message; owned */
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

/* The answer as bytes of HTTP/1.1, after which the connection closes; the caller frees them.
 * reason: the reason phrase of the status. NULL without memory. */
char *answer_message(const struct answer *answer, const char *reason, size_t *size);

/* Makes it a text, which it then owns (malloc'ed; NULL: no memory). */
void answer_text(struct answer *answer, int status, const char *content_type, char *text,
                 size_t size);

/* Makes it a text that changes only between versions of the program; its version is made of the
 * text. */
void answer_keep(struct answer *answer);

/* Makes a text (owned from now on, NULL: none) the next piece of a streamed body. */
void answer_piece(struct answer *answer, char *text, size_t size);

/* Makes it JSON and takes over the value's reference. */
void answer_json(struct answer *answer, int status, json_t *value);

/* The document of a problem (RFC 9457). problem may be NULL. */
json_t *answer_describe_problem(enum error error, const struct problem *problem);

/* Makes it a problem (RFC 9457), with Retry-After if a retry may succeed. problem may be NULL. */
void answer_problem(struct answer *answer, enum error error, const struct problem *problem);

/* Makes it the result of a finished job: its image or its problem, with the times of all stages.
 * received_ns: the time in which the body arrived. */
void answer_job(struct answer *answer, const struct job *job, uint64_t received_ns);

#endif
