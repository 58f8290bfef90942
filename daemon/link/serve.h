/* What who reads connections asks of the service, for one request after another: the head, the
 * body, the answer; it knows nothing else of a request. In the front these functions do what they
 * say; in an HTTP worker they tell the front. */
#ifndef LINK_SERVE_H
#define LINK_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/error.h"
#include "link/answer.h"
#include "link/head.h"

struct request;
struct guest;

/* Tells a connection why it has no place; now or later, once a name. */
typedef void guest_refuse(void *context, enum error error, const struct problem *problem);

/* A guest is a connection, as the service counts it; it needs no place among all before it has a
 * name. NULL: no memory. */
struct guest *guest_new(guest_refuse *refuse, void *context) MUST_CHECK;

/* It is this client's (its address, or its user); it takes a place, instead of the one that it may
 * have. A trusted proxy (which has not named its client yet) may have as many as there are. */
void guest_name(struct guest *guest, const char *client, bool proxy);

/* It has been closed, after which nothing more is told. NULL is none. */
void guest_free(struct guest *guest);

/* Where a body is to be written. */
struct lent {
	int fd; /* to be duplicated; -1: not known yet */
	bool in_memory;
	uint64_t limit; /* bytes that there is room for */
	bool most;      /* there will not be more */
};

/* What the connection of a request is told. */
struct serve_calls {
	void (*wake)(void *context); /* there is news for a request that waits */
	void (*cut)(void *context);  /* its client reads the answer too slowly: end it */
};

/* Begins with a request of a guest, and takes over what is in its head, also on failure (NULL: no
 * memory). It is decided, or `wake` is called when it is: it then has its answer, or wants its
 * body, or waits for serve_look(). */
struct request *serve_begin(struct guest *guest, struct head *head, const struct serve_calls *calls,
                            void *context) MUST_CHECK;

/* Forgets a request, at any time. */
void serve_end(struct request *request);

/* Begins with the refusal of a client that has sent no request: afterwards it has its answer, or
 * `wake` is called when it has. NULL: no memory. */
struct request *serve_refuse(const char *client, enum error error, const struct problem *problem,
                             const struct serve_calls *calls, void *context) MUST_CHECK;

/* Its head, while it lasts. */
const struct head *serve_head(const struct request *request);

bool serve_is_decided(const struct request *request);

/* True once it has its answer. */
bool serve_is_answered(const struct request *request);

/* True while the body is wanted, or may be; else it is to be dropped. */
bool serve_wants_body(const struct request *request);

/* Of a decided request: makes room for so many bytes of the body in all, or for all that there may
 * be. False: there is none yet, and `wake` is called when to ask again; or the request has its
 * answer. */
bool serve_lend(struct request *request, uint64_t size, struct lent *lent) MUST_CHECK;

/* True for the part of a form that is the image. With curl -F chain=@FILE the parameter has a file
 * name. */
static inline bool serve_is_image(const char *name, bool file)
{
	return file ? strcmp(name, "chain") : !strcmp(name, "image");
}

/* A part of a form begins: the image (*image), which goes where the body goes, or a parameter,
 * whose value comes in pieces. Errors are the client's, or ERR_MEMORY. */
enum error serve_part(struct request *request, const char *name, bool file, bool *image,
                      struct problem *problem) MUST_CHECK;
enum error serve_value(struct request *request, const char *data, size_t size,
                       struct problem *problem) MUST_CHECK;

/* Of a decided request, or one whose head announces no body: the body is complete, so many bytes
 * are where there was room for them. Afterwards it has its answer, or waits for serve_look(); after
 * that it has its answer, or `wake` is called later, for serve_look() again. That may be called for
 * any request without an answer that wants no body. */
void serve_finish(struct request *request, uint64_t size);
void serve_look(struct request *request);

/* The most bytes of a body that serve_take() may be called with. */
enum { SERVE_WHOLE_MAX = 1 << 20 };

/* Instead of serve_lend() and serve_finish(), also of a request that is not decided: the body is
 * complete, as announced, and in a memfd of this size, which is the service's from then on. False:
 * only once it is decided; the memfd is still the caller's. */
bool serve_take(struct request *request, int fd, uint64_t size) MUST_CHECK;

/* There will be no serve_take(): the decision is not to wait for the body. Without this it may do
 * so for some milliseconds. */
void serve_decide(struct request *request);

/* Makes an error its answer, unless it has one. It has it at once, or `wake` is called when it has.
 * Its body is wanted no more. */
void serve_fail(struct request *request, enum error error, const struct problem *problem);

/* The client will not read the answer that it waits for: abandons what is done for it alone. */
void serve_abandon(struct request *request);

/* Completes the answer, with the headers that every answer has, and counts it as sent. It stays
 * until serve_end(). */
const struct answer *serve_answer(struct request *request);

/* True if the answer's body comes in pieces; the next one, of which there may be nothing yet: then
 * `wake` is called later. NULL: that was all. */
bool serve_streams(const struct request *request);
const struct answer *serve_piece(struct request *request);

/* The client has read so many bytes of the answer. */
void serve_read(struct request *request, uint64_t bytes);

#endif
