/* Answers that lie here, in memory or files, until their clients have read them, which may take as
 * long as the clients please. What all of them hold is bounded, and what those of a client do: then
 * the connection of the slowest is ended, unless no other is left. */
#ifndef FRONT_JOBS_UNREAD_H
#define FRONT_JOBS_UNREAD_H

#include <stdint.h>
#include <sys/queue.h>

#include "front/config/config.h"
#include "front/jobs/shares.h"

/* An answer on its way; embedded where it is sent. All zeros: none. */
struct unread {
	LIST_ENTRY(unread) place;
	struct share share;      /* its bytes; empty when its connection has been ended */
	const char *id, *client; /* of the request */
	int socket;
	uint64_t size, since;  /* loop_now() */
	uint64_t acknowledged; /* bytes of the connection when it began */
};

void unread_init(const struct config *config);

/* An answer of so many bytes begins to be sent. The texts are kept until unread_end(), which may be
 * called for one that never began. */
void unread_begin(struct unread *unread, const char *id, const char *client, int socket,
                  uint64_t size);
void unread_end(struct unread *unread);

#endif
