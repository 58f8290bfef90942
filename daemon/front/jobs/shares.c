/* Shares: a tree of clients with their holdings of every kind, and a list of unread answers. */
#include "front/jobs/shares.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"

struct share_client {
	RB_ENTRY(share_client) place;
	char name[FAIR_CLIENT_SIZE];
	unsigned shares; /* number of non-empty shares; the client is freed with the last */
	uint64_t held[SHARE_KINDS];
};

RB_HEAD(share_clients, share_client);

static struct share_clients clients = RB_INITIALIZER(&clients);
static uint64_t totals[SHARE_KINDS];

static int compare(const struct share_client *a, const struct share_client *b)
{
	return strcmp(a->name, b->name);
}

/* Not static: some of its functions would be unused. */
RB_GENERATE(share_clients, share_client, place, compare)

/* Finds a client, or adds it; NULL if there is none, or no memory. */
static struct share_client *find(const char *name, bool add)
{
	struct share_client wanted = {0}, *client;

	snprintf(wanted.name, sizeof wanted.name, "%s", name);
	client = RB_FIND(share_clients, &clients, &wanted);
	if (client || !add || !(client = malloc(sizeof *client)))
		return client;
	*client = wanted;
	RB_INSERT(share_clients, &clients, client);
	return client;
}

/* Describes that this client, or (NULL) all together, have too much: ERR_QUEUE_FULL. */
static enum error refuse(const char *client, enum share_kind kind, uint64_t all,
                         struct problem *problem)
{
	static const char *const words[SHARE_KINDS] = {
	    [SHARE_CONNECTIONS] = "connections",
	    [SHARE_HEADS] = "bytes of requests' heads",
	    [SHARE_BODIES] = "requests whose body is arriving",
	    [SHARE_BODY_MEMORY] = "bytes of memory for bodies",
	    [SHARE_JOBS] = "requests in progress",
	    [SHARE_ANSWER_MEMORY] = "bytes of memory for answers",
	    [SHARE_ANSWERS] = "bytes of answers that have not been read",
	    [SHARE_RESULTS] = "stored results",
	    [SHARE_RESULT_SIZE] = "bytes of stored results",
	    [SHARE_RESULT_MEMORY] = "bytes of results in memory",
	};
	const uint64_t held = client ? share_of(kind, client) : 0;

	if (!client)
		return problem_set(problem, ERR_QUEUE_FULL,
		                   "there are %" PRIu64 " %s; at most %" PRIu64 " are accepted",
		                   totals[kind], words[kind], all);
	return problem_set(problem, ERR_QUEUE_FULL,
	                   "this client has %" PRIu64 " of at most %" PRIu64
	                   " %s; the rest is for others, which have %" PRIu64,
	                   held, all, words[kind], totals[kind] - held);
}

/* Alone (held == total) a client gets `client_share` of all, rounded up: then held / (all - held)
 * is client_share / (1 - client_share), without the last unit. */
enum error share_ask(enum share_kind kind, const char *client, uint64_t amount, uint64_t all,
                     struct problem *problem)
{
	const uint64_t held = share_of(kind, client), total = totals[kind];
	const double part = config->client_share;

	if (total > all || amount > all - total)
		return refuse(NULL, kind, all, problem);
	if (held && amount &&
	    (double)(held + amount - 1) * (1 - part) >= (double)(all - total - (amount - 1)) * part)
		return refuse(client, kind, all, problem);
	return ERR_OK;
}

enum error share_force(struct share *share, enum share_kind kind, const char *client,
                       uint64_t amount)
{
	if (!share->client) {
		*share = (struct share){.client = find(client, true), .kind = kind};
		if (!share->client)
			return ERR_MEMORY;
		share->client->shares++;
	}
	share->amount += amount;
	share->client->held[share->kind] += amount;
	totals[share->kind] += amount;
	return ERR_OK;
}

enum error share_take(struct share *share, enum share_kind kind, const char *client,
                      uint64_t amount, uint64_t all, struct problem *problem)
{
	enum error e =
	    share_ask(kind, share->client ? share->client->name : client, amount, all, problem);

	if (!e && share_force(share, kind, client, amount))
		return no_memory(problem, "to count the client's share");
	return e;
}

void share_give(struct share *share, uint64_t amount)
{
	struct share_client *client = share->client;

	if (!client)
		return;
	amount = MIN(amount, share->amount);
	share->amount -= amount;
	client->held[share->kind] -= amount;
	totals[share->kind] -= amount;
	if (share->amount)
		return;
	*share = (struct share){0};
	if (--client->shares)
		return;
	RB_REMOVE(share_clients, &clients, client);
	free(client);
}

void share_give_all(struct share *share)
{
	share_give(share, share->amount);
}

uint64_t share_connections_most(void)
{
	struct rlimit descriptors;
	uint64_t most = config->max_connections;

	if (!getrlimit(RLIMIT_NOFILE, &descriptors) && descriptors.rlim_cur / 2 < most)
		most = descriptors.rlim_cur / 2;
	return most;
}

uint64_t share_total(enum share_kind kind)
{
	return totals[kind];
}

uint64_t share_of(enum share_kind kind, const char *name)
{
	const struct share_client *client = find(name, false);

	return client ? client->held[kind] : 0;
}

uint64_t share_greatest(enum share_kind kind)
{
	struct share_client *client;
	uint64_t most = 0;

	RB_FOREACH(client, share_clients, &clients)
		most = MAX(most, client->held[kind]);
	return most;
}

/* ---- unread answers ----
 *
 * A reader without a report has just begun, and is cut after those that are known; among several,
 * the oldest first. An answer counts as half of a bound at most, so that a larger one leaves room
 * for others. */

/* Bytes that the sockets' buffers accept even if nobody reads; bytes per second that a client must
 * read to keep its connection. */
static const double buffered = 4 << 20, diligent = 1 << 20;

static LIST_HEAD(unread_list, unread) answers = LIST_HEAD_INITIALIZER(answers);

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

/* Finds the slowest reader of a client, or (NULL) of all; NULL if none is slow. */
static struct unread *find_slowest(const char *client)
{
	struct unread *slowest = NULL, *u;
	double least = diligent;

	LIST_FOREACH(u, &answers, place) {
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

	/* Mostly the sum of all sizes is within the limit: the list need not be searched. */
	if ((client ? share_of(SHARE_ANSWERS, client) : share_total(SHARE_ANSWERS)) <= bound)
		return false;
	LIST_FOREACH(u, &answers, place)
		if (belongs(u, client))
			sum += MIN(u->size, bound / 2);
	return sum > bound;
}

/* Cuts slow readers' connections, of all or this client alone, until a new answer has room. */
static enum error make_room(const char *client, bool alone, struct problem *problem)
{
	const uint64_t bound = alone ? config->unread_client_size : config->unread_size;
	const char *of = alone ? client : NULL;

	while (exceeds(of, bound)) {
		struct unread *u = find_slowest(of);

		if (!u)
			return refuse(of, SHARE_ANSWERS, bound, problem);
		log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.request = u->id),
		          "request %s: connection closed: unread answers exceed %s: %s has taken "
		          "%" PRIu64 " of %" PRIu64 " bytes in %.1f s",
		          u->id, alone ? "unread-client-size" : "unread-size", u->client, u->read,
		          u->size, (double)(loop_now() - u->since) * 1e-9);
		metric_add(METRIC_UNREAD_ENDED, alone ? "client" : "all", NULL, 1);
		share_give_all(&u->share);
		u->cut(u->context);
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
	u->read = MIN(bytes, u->size);
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
