/* Exchanges with the service, several at a time: one thread around one curl_multi handle, which
 * keeps the connections. */
#pragma once

#include "client/exchange.h"

/* Results of `next` and `done`. */
enum supply {
	SUPPLY_READY, /* the exchange has a request */
	SUPPLY_SOON,  /* `next`: none yet, but others need the time; `done`: the slot is free */
	SUPPLY_LATER, /* `next`: not before `source` is readable */
	SUPPLY_END,   /* `next`: there is none left; `done`: stop everything */
};

/* Supplies exchanges and takes them back. */
struct transfers {
	/* Fills in the next request (all else is zero). */
	enum supply (*next)(void *context, struct exchange *e);
	/* Takes the outcome, and releases what `next` allocated or fills in the request that
	 * follows (but not for OUTCOME_GIVEN_UP). After SUPPLY_END the exchanges under way come
	 * back as OUTCOME_GIVEN_UP. */
	enum supply (*done)(void *context, struct exchange *e);
	/* Called several times a second; may be NULL. */
	void (*tick)(void *context);
	void *context;
	int source;
};

/* Runs until all exchanges are done or a signal arrives; at most `parallel` run at a time. */
void transfer_run(const struct server *server, unsigned parallel,
                  const struct transfers *transfers);

/* Sends one request for a text, which the caller frees; it is NULL only if another status than 200
 * is accepted. Prints what went wrong, after the request's `name` if that is not NULL. */
enum exit_code transfer_ask(const struct server *server, const struct exchange *request,
                            const char *name, char **text);
