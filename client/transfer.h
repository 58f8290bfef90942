/* Exchanges with the service, several at a time: one thread around one curl_multi, which keeps the
 * connections. */
#pragma once

#include "client/exchange.h"

/* Where exchanges come from and go to. */
struct transfers {
	/* Fills in what is asked by the next (all else is zero); false if there is none left. */
	bool (*next)(void *context, struct exchange *e);
	/* Takes what came of it and releases what `next` made; false: nothing else need be done.
	 * What is under way then comes back as OUTCOME_GIVEN_UP. */
	bool (*done)(void *context, struct exchange *e);
	/* Called several times a second; may be NULL. */
	void (*tick)(void *context);
	void *context;
};

/* Runs until all is done, or a signal came; at most `parallel` at a time. */
void transfer_run(const struct server *server, unsigned parallel,
                  const struct transfers *transfers);

/* Asks for one text, GET; the caller frees it. Says what went wrong. */
enum exit_code transfer_get(const struct server *server, const char *target, char **text);
