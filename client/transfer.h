/* Exchanges with the service, several at a time: one thread around one curl_multi handle, which
 * keeps the connections. */
#pragma once

#include "client/exchange.h"

/* Supplies exchanges and takes them back. */
struct transfers {
	/* Fills in the next request (all else is zero); false if there is none left. */
	bool (*next)(void *context, struct exchange *e);
	/* Takes the outcome and releases what `next` allocated; false to stop: the exchanges under
	 * way then come back as OUTCOME_GIVEN_UP. */
	bool (*done)(void *context, struct exchange *e);
	/* Called several times a second; may be NULL. */
	void (*tick)(void *context);
	void *context;
};

/* Runs until all exchanges are done or a signal arrives; at most `parallel` run at a time. */
void transfer_run(const struct server *server, unsigned parallel,
                  const struct transfers *transfers);

/* Requests one text with GET; the caller frees it. Prints what went wrong and returns NULL. */
enum exit_code transfer_get(const struct server *server, const char *target, char **text);
