/* The service as the HTTP worker sees it. The front does the work: a call here sends it a message
 * of the link, and its reply comes later. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "link/answer.h"
#include "link/head.h"
#include "link/link.h"

/* Calls with the context of a connection, or of its request. */
struct connection_calls {
	/* The connection has no place; called at most once for each name that it has. */
	void (*crowded)(void *context, enum error error, const struct problem *problem);
	/* There is news of the request: a decision, room, an answer, a piece. */
	void (*wake)(void *context);
	/* The client reads the answer too slowly: end the connection. */
	void (*cut)(void *context);
};

/* Connects to the front by a socket of link_pair(), which is then the service's. The process ends
 * when the front has gone or cannot be understood. drain: no further connections may be accepted
 * (last: after those that wait). */
enum error service_init(int socket, const struct connection_calls *calls,
                        void (*drain)(bool last)) MUST_CHECK;

/* Does pending work before each wait of the loop; returns the longest in milliseconds, -1: any. */
int service_turn(void);

/* False while the front is full, or silent for a while: it sends something twice a second. */
bool service_speaks(void);

/* Returns true while so much waits for the front that nothing more should be read from clients. */
bool service_is_full(void);

/* Tells the front that no more requests come. */
void service_drained(void);

/* Connections ---------------------------------------------------------------------------------- */

/* The position of a guest, or of a request, among all. */
struct service_entry {
	LIST_ENTRY(service_entry) place;
	uint64_t number;
};

/* A connection, which needs no place among all before it has a name. It outlives its requests. */
struct service_guest {
	struct service_entry entry;
	void *context;
	uint64_t ended; /* its last request, whose end the front does not know; 0: none */
	LIST_ENTRY(service_guest) quiet; /* in the list of those, while there is one */
};

void service_guest_open(struct service_guest *guest, void *context);

/* Takes a place for it in this client's name, instead of the place that it may have. A trusted
 * proxy that has not named its client yet may have all places. */
void service_guest_name(struct service_guest *guest, const char *client, bool proxy);

void service_guest_close(struct service_guest *guest);

/* Requests ------------------------------------------------------------------------------------- */

struct spill;

/* A request, all zeros before it begins. Other modules read the first members. */
struct service_request {
	struct service_entry entry; /* must be first, as in a guest */
	struct head head;
	bool decided;  /* the front has said whether it wants the body */
	bool answered; /* and this is its answer: */
	struct answer answer;
	bool streams; /* in pieces */

	struct lent lent;    /* the place for its body */
	uint64_t body_size;  /* bytes written so far */
	struct spill *spill; /* to a file */
	bool wanted, failed;
	struct service_guest *guest; /* NULL: a refusal */
	void *context;
	bool held; /* the front has not been told of it yet */
	LIST_ENTRY(service_request) hold;
	bool asked;               /* for room for its body */
	bool awaits_piece, ended; /* the answer's pieces */
};

/* Begins a guest's request, whose head is known. Returns false if the head is too large. */
bool service_begin(struct service_request *request, struct service_guest *guest,
                   void *context) MUST_CHECK;

/* Begins the refusal of a client that has sent no request. */
void service_refuse(struct service_request *request, const char *client, enum error error,
                    const struct problem *problem, void *context);

/* Abandons a request, which may not have begun. It is all zeros afterwards. */
void service_end(struct service_request *request);

/* True while the body is, or may be, wanted; else it is closed, and its bytes are to be dropped. */
bool service_wants_body(const struct service_request *request);

/* Returns true if there is room for a total of `size` bytes of the body, or never will be more.
 * Returns false if the body is not wanted, or if `wake` is called when to ask again. */
bool service_has_room(struct service_request *request, uint64_t size) MUST_CHECK;

/* Appends to the body. ERR_BODY_TOO_LARGE beyond its room; ERR_IO or ERR_MEMORY otherwise. */
enum error service_write(struct service_request *request, const char *data, size_t size,
                         struct problem *problem) MUST_CHECK;

/* Returns true while a thread writes to a file: append nothing until `wake` is called. */
bool service_writes(struct service_request *request);

/* Records that a decided request's body, if any, is complete; these are a form's parameters. */
void service_finish(struct service_request *request, const struct head_writer *form);

/* Replaces service_finish(), also before the decision: the whole body, as announced (at most
 * LINK_WHOLE_MAX bytes), is in a memfd. Returns false if that is impossible now. */
bool service_take(struct service_request *request, int fd, uint64_t size) MUST_CHECK;

/* Announces that service_take() will not follow, so that the decision does not wait some
 * milliseconds for the body. */
void service_decide(struct service_request *request);

/* Makes an error the request's answer, unless it has one. Its body is no longer wanted. */
void service_fail(struct service_request *request, enum error error, const struct problem *problem);

/* Advances to the next piece of the answer's body. If there is none yet, `wake` is called later.
 * Returns false after the last piece. */
bool service_piece(struct service_request *request);

/* Reports that the client has read `bytes` of the answer so far. */
void service_read(const struct service_request *request, uint64_t bytes);
