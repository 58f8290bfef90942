/* Shares: the part of limited resources that each client holds. Something is always left for the
 * next client: one that holds some may take more while the free part is large enough relative to
 * its own (the dynamic threshold of A. K. Choudhury and E. L. Hahne, 1998). A client that is alone
 * gets the part of all that `client-share` allows, two get less each, and so on; one that holds
 * nothing may take any free part. */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "front/jobs/fair.h"

/* The limited resources, and their units. */
enum share_kind {
	/* connections of clients, by address, because no request has been read yet */
	SHARE_CONNECTIONS,
	SHARE_HEADS,         /* bytes of the heads of requests */
	SHARE_BODIES,        /* requests whose body is wanted and not complete */
	SHARE_BODY_MEMORY,   /* bytes of memory for bodies, until their jobs end */
	SHARE_JOBS,          /* jobs that wait or run */
	SHARE_ANSWER_MEMORY, /* bytes of memory for kept answers */
	SHARE_ANSWERS,       /* bytes of answers that the client has not read */
	SHARE_RESULTS,       /* results that are stored */
	SHARE_RESULT_SIZE,   /* bytes of these */
	SHARE_RESULT_MEMORY, /* those that are in memory */
	SHARE_KINDS
};

/* The amount of one kind that one holder has; embedded in the holder. All zeros: nothing. It may be
 * moved if its old place is zeroed. */
struct share {
	struct share_client *client; /* NULL: nothing is held */
	enum share_kind kind;
	uint64_t amount;
};

/* Adds to a share, for a client (its address, or its token's name), if so much of all is allowed. A
 * share keeps its first kind and client. ERR_QUEUE_FULL if too little is free, for anybody or for
 * this client; ERR_MEMORY. share_force() is for what already exists, such as an answer that has
 * grown, and fails only without memory. */
enum error share_take(struct share *share, enum share_kind kind, const char *client,
                      uint64_t amount, uint64_t all, struct problem *problem) MUST_CHECK;
enum error share_force(struct share *share, enum share_kind kind, const char *client,
                       uint64_t amount) MUST_CHECK;

/* Checks whether a new share would get so much now. */
enum error share_ask(enum share_kind kind, const char *client, uint64_t amount, uint64_t all,
                     struct problem *problem) MUST_CHECK;

/* Gives back a part, at most the held amount; or all of it. */
void share_give(struct share *share, uint64_t amount);
void share_give_all(struct share *share);

/* The connections allowed now: `max-connections`, or half of the file descriptors if fewer. */
uint64_t share_connections_most(void);

/* Return the amount held by all clients, by one, and the largest amount held by any. */
uint64_t share_total(enum share_kind kind);
uint64_t share_of(enum share_kind kind, const char *client);
uint64_t share_greatest(enum share_kind kind);

/* ---- unread answers ----
 *
 * Answers are kept until their clients have read them. The total and each client's part are
 * bounded: above that, the connections of slow readers are closed, and new answers are refused. An
 * answer that begins alone never is, and a client that reads is not cut. */

/* An answer being sent; embedded in its sender. All zeros: none. */
struct unread {
	LIST_ENTRY(unread) place;
	struct share share;      /* its bytes; empty when its connection has been cut */
	const char *id, *client; /* id of the request */
	uint64_t size, since;    /* loop_now() */
	uint64_t read, reported; /* bytes at the last report, and its loop_now(); 0: none yet */
	void (*cut)(void *context);
	void *context;
};

/* Starts sending an answer of `size` bytes. cut: closes the connection, and does nothing else. The
 * texts must stay valid until unread_end(), which may be called for one that never began.
 * ERR_QUEUE_FULL: there is no room, and nothing has begun. */
enum error unread_begin(struct unread *unread, const char *id, const char *client, uint64_t size,
                        void (*cut)(void *context), void *context,
                        struct problem *problem) MUST_CHECK;

/* Notes that the client has read `bytes` of it so far. */
void unread_report(struct unread *unread, uint64_t bytes);

void unread_end(struct unread *unread);
