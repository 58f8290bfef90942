/* Slow readers, by what is reported of them now and then. One of which nothing has been reported
 * yet has just begun, and goes after those that are known; of several, the oldest. An answer counts
 * as half of a bound at most, so that one which is larger leaves room for others. */
#include "front/jobs/unread.h"

#include <stdbool.h>
#include <string.h>

#include "base/loop.h"
#include "common/log.h"
#include "front/base/metrics.h"

/* What the sockets' buffers take even if nobody reads. A client that has just begun counts as
 * fast. */
static const double buffered = 4 << 20;
/* Bytes a second: whoever takes as much keeps its connection. */
static const double diligent = 1 << 20;

static const struct config *config;
static LIST_HEAD(unread_list, unread) answers = LIST_HEAD_INITIALIZER(answers);

void unread_init(const struct config *c)
{
	config = c;
	metric_add(METRIC_UNREAD_ENDED, "client", NULL, 0);
	metric_add(METRIC_UNREAD_ENDED, "all", NULL, 0);
}

/* Bytes a second. */
static double speed(const struct unread *u)
{
	const uint64_t until = u->reported ? u->reported : loop_now();

	return ((double)u->read + buffered) / ((double)(until - u->since) * 1e-9 + 1e-6);
}

static bool belongs(const struct unread *u, const char *client)
{
	return u->share.client && (!client || !strcmp(client, u->client));
}

/* The slowest reader of a client, or (NULL) of all; NULL if none is slow. */
static struct unread *find_slowest(const char *client)
{
	struct unread *slowest = NULL, *u;
	double least = diligent;

	LIST_FOREACH(u, &answers, place)
	{
		if (!belongs(u, client) || speed(u) > least) /* the list has the oldest last */
			continue;
		slowest = u;
		least = speed(u);
	}
	return slowest;
}

static bool exceeds(const char *client, uint64_t bound)
{
	const struct unread *u;
	uint64_t sum = 0;

	/* Mostly even the whole sizes keep within it: no list is gone through then. */
	if ((client ? share_of(SHARE_ANSWERS, client) : share_total(SHARE_ANSWERS)) <= bound)
		return false;
	LIST_FOREACH(u, &answers, place)
	{
		if (belongs(u, client))
			sum += u->size < bound / 2 ? u->size : bound / 2;
	}
	return sum > bound;
}

static void end(struct unread *u, const char *bound, const char *option)
{
	log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.request = u->id),
	          "request %s: connection closed: unread answers exceed %s: %s has taken %llu of "
	          "%llu bytes in %.1f s",
	          u->id, option, u->client, (unsigned long long)u->read,
	          (unsigned long long)u->size, (double)(loop_now() - u->since) * 1e-9);
	metric_add(METRIC_UNREAD_ENDED, bound, NULL, 1);
	share_give_all(&u->share);
	u->cut(u->context);
}

/* Ends slow readers, of all or of this client alone, until there is room for one that begins. */
static enum error make_room(const char *client, bool alone, struct problem *problem)
{
	const uint64_t bound = alone ? config->unread_client_size : config->unread_size;
	const char *of = alone ? client : NULL;
	struct unread *slowest;

	while (exceeds(of, bound)) {
		slowest = find_slowest(of);
		if (!slowest)
			return share_problem(alone ? SHARE_CLIENT_FULL : SHARE_ALL_GONE,
			                     SHARE_ANSWERS, client, bound, problem);
		end(slowest, alone ? "client" : "all",
		    alone ? "unread-client-size" : "unread-size");
	}
	return ERR_OK;
}

enum error unread_begin(struct unread *u, const char *id, const char *client, uint64_t size,
                        void (*cut)(void *context), void *context, struct problem *problem)
{
	enum error e;

	*u = (struct unread){.id = id,
	                     .client = client,
	                     .size = size,
	                     .since = loop_now(),
	                     .cut = cut,
	                     .context = context};
	if (share_force(&u->share, SHARE_ANSWERS, client, size))
		log_warning("request %s: no memory to count its answer", id);
	LIST_INSERT_HEAD(&answers, u, place);
	e = make_room(client, true, problem);
	if (!e)
		e = make_room(client, false, problem);
	if (e)
		unread_end(u);
	return e;
}

void unread_report(struct unread *u, uint64_t bytes)
{
	u->read = bytes < u->size ? bytes : u->size;
	u->reported = loop_now();
}

void unread_end(struct unread *u)
{
	if (!u->id)
		return;
	share_give_all(&u->share);
	LIST_REMOVE(u, place);
	u->id = NULL;
}
