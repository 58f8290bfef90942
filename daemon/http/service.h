/* The service, as who reads connections asks it for one request after another: the head, the body,
 * the answer. It is done in the front, which a call here tells by a message of the link; what it
 * says comes back later. */
#ifndef HTTP_SERVICE_H
#define HTTP_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "link/answer.h"
#include "link/head.h"
#include "link/link.h"

struct service_calls {
	void (*drain)(bool last); /* accept no more (last: after those that wait) */
	void (*lost)(void);       /* the front has gone, or cannot be understood */
};

/* Connects to the front by a socket of link_pair(), which is then the service's. */
enum error service_init(int socket, const struct service_calls *calls) MUST_CHECK;

/* Does what is due; returns the milliseconds that the loop may wait, -1: any time. Call it before
 * each wait. */
int service_turn(void);

/* False while the front, which asks for a sign of life twice a second, has said nothing for a
 * while, or has no room for more. */
bool service_speaks(void);

/* True while so much waits to be sent to the front that no more should be read of clients. */
bool service_is_full(void);

/* Tells the front that no more requests come. */
void service_drained(void);

/* Connections ---------------------------------------------------------------------------------- */

/* A connection, as the service counts it; it needs no place among all before it has a name. */
struct service_guest;

/* Tells a connection why it has no place; later, once a name. */
typedef void service_crowded(void *context, enum error error, const struct problem *problem);

/* NULL: no memory. */
struct service_guest *service_guest_new(service_crowded *crowded, void *context) MUST_CHECK;

/* It is this client's (its address, or its user); it takes a place, instead of the one that it may
 * have. A trusted proxy (which has not named its client yet) may have as many as there are. */
void service_guest_name(struct service_guest *guest, const char *client, bool proxy);

/* It has been closed, after which nothing more is told. NULL is none. */
void service_guest_free(struct service_guest *guest);

/* Requests ------------------------------------------------------------------------------------- */

/* Calls to the connection of a request. */
struct request_calls {
	void (*wake)(void *context); /* there is news */
	void (*cut)(void *context);  /* its client reads the answer too slowly: end it */
};

/* A request; others read the first members. */
struct service_request {
	struct head head;
	bool decided;  /* the front has said whether it wants the body */
	bool answered; /* and this is its answer: */
	struct answer answer;
	bool streams; /* in pieces */

	bool wanted, failed;
	LIST_ENTRY(service_request) place;
	uint64_t number, guest; /* 0: of a refusal */
	const struct request_calls *calls;
	void *context;
	bool held; /* the front has not been told of it yet */
	LIST_ENTRY(service_request) hold;
	struct lent lent;         /* its descriptor is the request's */
	bool asked;               /* for room */
	char *kept;               /* of the answer */
	bool awaits_piece, ended; /* the answer's pieces */
	char *piece;              /* the next one, or NULL */
	size_t piece_size;
};

/* Begins with a request of a guest, and takes over what is in its head, also on failure (NULL: no
 * memory). `wake` is called when it is decided, and when it has its answer. */
struct service_request *service_begin(const struct service_guest *guest, struct head *head,
                                      const struct request_calls *calls, void *context) MUST_CHECK;

/* Begins with the refusal of a client that has sent no request: `wake` is called when it has its
 * answer. NULL: no memory. */
struct service_request *service_refuse(const char *client, enum error error,
                                       const struct problem *problem,
                                       const struct request_calls *calls, void *context) MUST_CHECK;

/* Forgets a request, at any time; what is done for it alone is abandoned. */
void service_end(struct service_request *request);

/* True while the body is wanted, or may be; else it is to be dropped. */
bool service_wants_body(const struct service_request *request);

/* Asks for room, for a decided request: for so many bytes of the body in all, or for all that there
 * may be. False: there is none yet, and `wake` is called when to ask again. */
bool service_lend(struct service_request *request, uint64_t size, struct lent *lent) MUST_CHECK;

/* The body of a decided request, or of one whose head announces none, is complete: so many bytes
 * are where there was room for them, and these are a form's parameters. */
void service_finish(struct service_request *request, uint64_t size, const struct head_writer *form);

/* Instead of service_lend() and service_finish(), also of a request that is not decided: the body
 * is complete, as announced (at most LINK_WHOLE_MAX bytes), and in a memfd of this size. False:
 * only once it is decided. */
bool service_take(struct service_request *request, int fd, uint64_t size) MUST_CHECK;

/* There will be no service_take(): the decision is not to wait for the body. Without this it may do
 * so for some milliseconds. */
void service_decide(struct service_request *request);

/* Makes an error its answer, unless it has one. Its body is wanted no more. */
void service_fail(struct service_request *request, enum error error, const struct problem *problem);

/* The next piece of the answer's body, of which there may be nothing yet: then `wake` is called
 * later. NULL: that was all. */
const struct answer *service_piece(struct service_request *request);

/* The client has read so many bytes of the answer. */
void service_read(const struct service_request *request, uint64_t bytes);

#endif
