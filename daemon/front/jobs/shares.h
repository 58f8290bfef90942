/* Shares: what each client holds of things of which there are only so many. No client may take all
 * of them, and however many clients come, something is left for the next: one that holds some may
 * take more while what is free stays in proportion to what it has (the dynamic threshold of
 * A. K. Choudhury and E. L. Hahne, 1998). Who is alone gets the part of all that `client-share`
 * says, two get less each, and so on; one that holds nothing may take whatever is free.
 *
 * Memory is bounded by what is held: a client that holds nothing is not known. */
#ifndef FRONT_JOBS_SHARES_H
#define FRONT_JOBS_SHARES_H

#include <stdint.h>

#include "front/config/config.h"
#include "front/jobs/fair.h"

/* Of what there are only so many; in the unit in which it is taken. */
enum share_kind {
	SHARE_CONNECTIONS,   /* of clients, by address: no request has been read yet */
	SHARE_BODIES,        /* requests whose body is wanted and not complete */
	SHARE_BODY_MEMORY,   /* bytes of memory for bodies, until their jobs end */
	SHARE_JOBS,          /* that wait or run */
	SHARE_ANSWERS,       /* bytes of answers that the client has not read */
	SHARE_RESULTS,       /* results that are kept */
	SHARE_RESULT_SIZE,   /* bytes of these */
	SHARE_RESULT_MEMORY, /* those that lie in memory */
	SHARE_KINDS
};

enum share_outcome {
	SHARE_TAKEN,
	SHARE_ALL_GONE,    /* too little is free, whoever wants it; or no memory */
	SHARE_CLIENT_FULL, /* there is some, for clients that hold less */
};

/* What somebody holds of one kind; embedded where it is held. All zeros: nothing. It may be moved
 * if the place that it leaves is zeroed. */
struct share {
	struct share_client *client; /* NULL: nothing is held */
	enum share_kind kind;
	uint64_t amount;
};

void shares_init(const struct config *config);

/* Adds to what is held, for a client (its address, or its token's name), if so much of all is
 * allowed; else nothing changes. A share stays with the kind and the client that it was first taken
 * for. share_force() takes without asking, and fails only without memory (SHARE_ALL_GONE): for what
 * is already there, as an answer that has become longer. */
enum share_outcome share_take(struct share *share, enum share_kind kind, const char *client,
                              uint64_t amount, uint64_t all) MUST_CHECK;
enum share_outcome share_force(struct share *share, enum share_kind kind, const char *client,
                               uint64_t amount) MUST_CHECK;

/* Whether share_take() of a new share would succeed now. */
enum share_outcome share_ask(enum share_kind kind, const char *client, uint64_t amount,
                             uint64_t all) MUST_CHECK;

/* What to answer who was refused something of which there are so many in all: ERR_QUEUE_FULL. */
enum error share_problem(enum share_outcome outcome, enum share_kind kind, const char *client,
                         uint64_t all, struct problem *problem) MUST_CHECK;

/* Gives a part back, at most what is held; all of it, and of nothing nothing. */
void share_give(struct share *share, uint64_t amount);
void share_give_all(struct share *share);

/* How many connections there may be now: `max-connections`, or half of the file descriptors if
 * these are fewer. The other half is for what requests and workers open, and for the listeners. */
uint64_t share_connections_most(void);

/* What the client of a share holds of its kind, 0 if it is empty. */
uint64_t share_held(const struct share *share);

/* What all clients hold, what one holds, and the name of the one that holds most (NULL: nobody
 * holds any; good until something is given back). */
uint64_t share_total(enum share_kind kind);
uint64_t share_of(enum share_kind kind, const char *client);
const char *share_greatest(enum share_kind kind);

#endif
