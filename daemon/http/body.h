/* The body of a request, written to where the service has made room for it: memory, or a file,
 * which a thread writes, because a disk may block its writers. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "link/link.h"

struct spill;

struct body {
	struct lent lent;    /* its descriptor is the body's; -1: none yet */
	uint64_t size;       /* bytes written so far */
	struct spill *spill; /* to a file */
};

void body_init(struct body *body);

/* True if there is room for so many bytes in all, or will not be more. */
bool body_has_room(const struct body *body, uint64_t size);

/* Goes on where there is more room, and takes over its descriptor. The content before it must be
 * there, and not be under way to memory. ERR_MEMORY. */
enum error body_move(struct body *body, const struct lent *lent,
                     struct problem *problem) MUST_CHECK;

/* Appends. ERR_BODY_TOO_LARGE beyond its room; ERR_IO or ERR_MEMORY if it cannot be written. */
enum error body_write(struct body *body, const char *data, size_t size,
                      struct problem *problem) MUST_CHECK;

/* True if some is still to be written: add no more until `wake` is called (once, unless it is
 * closed before). */
bool body_await(struct body *body, void (*wake)(void *context), void *context);

/* All of it has been written and is final. ERR_IO if some could not be written. */
enum error body_finish(const struct body *body, struct problem *problem) MUST_CHECK;

/* Closes its descriptor; a closed one may be closed again. */
void body_close(struct body *body);

#endif
