/* Answers that are kept, in memory or files, until their clients have read them, which may take
 * arbitrarily long. Both the total and each client's part are bounded: above that, the connections
 * of slow readers are closed, and what would begin then is refused. One that begins alone never is,
 * and whoever reads is not cut, however large the answer. */
#ifndef FRONT_JOBS_UNREAD_H
#define FRONT_JOBS_UNREAD_H

#include <stdint.h>
#include <sys/queue.h>

#include "front/config/config.h"
#include "front/jobs/shares.h"

/* An answer being sent; embedded in its sender. All zeros: none. */
struct unread {
	LIST_ENTRY(unread) place;
	struct share share;      /* its bytes; empty when its connection has been cut */
	const char *id, *client; /* id of the request */
	uint64_t size, since;    /* loop_now() */
	uint64_t read, reported; /* bytes by the last report, and its loop_now(); 0: none yet */
	void (*cut)(void *context);
	void *context;
};

void unread_init(const struct config *config);

/* Starts sending an answer of so many bytes. cut: called, if the client is too slow, to close its
 * connection; nothing else may happen in it. The texts must stay valid until unread_end(), which
 * may be called for one that never began. ERR_QUEUE_FULL: the bounds leave no room, and nothing has
 * begun. */
enum error unread_begin(struct unread *unread, const char *id, const char *client, uint64_t size,
                        void (*cut)(void *context), void *context,
                        struct problem *problem) MUST_CHECK;

/* The client has read so many bytes of it. */
void unread_report(struct unread *unread, uint64_t bytes);

void unread_end(struct unread *unread);

#endif
