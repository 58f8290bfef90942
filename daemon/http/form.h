/* Forms: multipart/form-data (RFC 7578, RFC 2046), read as they come, in pieces of any size. Knows
 * nothing of connections and requests. What is held of a form is bounded: the header of the part
 * that has begun, and as much of a boundary as has come.
 *
 * What does not fit the syntax is ERR_BAD_REQUEST, with a problem that says what would; nothing is
 * to be read of the form after an error, of its own or of a call. */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum { FORM_HEADER_MAX = 8 << 10, FORM_BOUNDARY_MAX = 70 };

struct form;

/* Who hears of the parts, in order: begin, and data in any number of pieces. An error ends the
 * reading, and is what form_read() returns. */
struct form_calls {
	/* file: it has a file's name, whatever that is. The name is good during the call. */
	enum error (*begin)(void *context, const char *name, bool file, struct problem *problem);
	enum error (*data)(void *context, const char *data, size_t size, struct problem *problem);
};

/* Whether a Content-Type is that of a form. */
bool form_is_one(const char *content_type);

/* A form with the boundary that its Content-Type names; form_free() it. Errors as above, and
 * ERR_MEMORY. */
enum error form_new(struct form **form, const char *content_type, const struct form_calls *calls,
                    void *context, struct problem *problem) MUST_CHECK;
void form_free(struct form *form);

/* Reads the next piece of the body. */
enum error form_read(struct form *form, const char *data, size_t size,
                     struct problem *problem) MUST_CHECK;

/* The body has ended: whether the form has. */
enum error form_finish(const struct form *form, struct problem *problem) MUST_CHECK;

#endif
