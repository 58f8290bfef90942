/* Forms: multipart/form-data (RFC 7578, RFC 2046), parsed as they arrive, in pieces of any size. A
 * syntax error is ERR_BAD_REQUEST. After any error nothing more may be read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { FORM_HEADER_MAX = 8 << 10, FORM_BOUNDARY_MAX = 70 };

struct form;

/* Receives the parts in order: begin, then data in pieces. form_read() returns its error. */
struct form_calls {
	/* file: the part has a file name. The name is valid during the call. */
	enum error (*begin)(void *context, const char *name, bool file, struct problem *problem);
	enum error (*data)(void *context, const char *data, size_t size, struct problem *problem);
};

/* True if a Content-Type is that of a form. */
bool form_is_one(const char *content_type);

/* Creates a reader with the Content-Type's boundary. Errors as above, and ERR_MEMORY. */
enum error form_new(struct form **form, const char *content_type, const struct form_calls *calls,
                    void *context, struct problem *problem) MUST_CHECK;
void form_free(struct form *form);

/* Reads the next piece of the body. */
enum error form_read(struct form *form, const char *data, size_t size,
                     struct problem *problem) MUST_CHECK;

/* Checks, at the body's end, that the form has ended too. */
enum error form_finish(const struct form *form, struct problem *problem) MUST_CHECK;
