/* Shares: a tree of clients, with what each holds of every kind. */
#include "front/jobs/shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct share_client {
	RB_ENTRY(share_client) place;
	char name[FAIR_CLIENT_SIZE];
	unsigned shares; /* number of non-empty shares; the client is freed with the last */
	uint64_t held[SHARE_KINDS];
};

RB_HEAD(share_clients, share_client);

static const struct config *config;
static struct share_clients clients = RB_INITIALIZER(&clients);
static uint64_t totals[SHARE_KINDS];

static int compare(const struct share_client *a, const struct share_client *b)
{
	return strcmp(a->name, b->name);
}

/* Not static: some of its functions would be unused. */
RB_PROTOTYPE(share_clients, share_client, place, compare)
RB_GENERATE(share_clients, share_client, place, compare)

void shares_init(const struct config *c)
{
	config = c;
}

static struct share_client *find(const char *name)
{
	struct share_client wanted;

	snprintf(wanted.name, sizeof wanted.name, "%s", name);
	return RB_FIND(share_clients, &clients, &wanted);
}

static struct share_client *find_or_add(const char *name)
{
	struct share_client *client = find(name);

	if (client)
		return client;
	client = calloc(1, sizeof *client);
	if (!client)
		return NULL;
	snprintf(client->name, sizeof client->name, "%s", name);
	RB_INSERT(share_clients, &clients, client);
	return client;
}

/* True if a client that holds some may have so much more of all. Alone (held == total) it gets
 * `client_share` of all, rounded up: then held / (all - held) is client_share / (1 - client_share),
 * without the last unit. */
static enum share_outcome judge(uint64_t held, uint64_t total, uint64_t amount, uint64_t all)
{
	double part = config->client_share;

	if (total > all || amount > all - total)
		return SHARE_ALL_GONE;
	if (held && amount &&
	    (double)(held + amount - 1) * (1 - part) >= (double)(all - total - (amount - 1)) * part)
		return SHARE_CLIENT_FULL;
	return SHARE_TAKEN;
}

enum share_outcome share_force(struct share *share, enum share_kind kind, const char *client,
                               uint64_t amount)
{
	if (!share->client) {
		*share = (struct share){.client = find_or_add(client), .kind = kind};
		if (!share->client)
			return SHARE_ALL_GONE;
		share->client->shares++;
	}
	share->amount += amount;
	share->client->held[share->kind] += amount;
	totals[share->kind] += amount;
	return SHARE_TAKEN;
}

enum share_outcome share_ask(enum share_kind kind, const char *client, uint64_t amount,
                             uint64_t all)
{
	return judge(share_of(kind, client), totals[kind], amount, all);
}

enum share_outcome share_take(struct share *share, enum share_kind kind, const char *client,
                              uint64_t amount, uint64_t all)
{
	enum share_outcome outcome = share->client ? judge(share->client->held[share->kind],
	                                                   totals[share->kind], amount, all)
	                                           : share_ask(kind, client, amount, all);

	return outcome == SHARE_TAKEN ? share_force(share, kind, client, amount) : outcome;
}

enum error share_problem(enum share_outcome outcome, enum share_kind kind, const char *client,
                         uint64_t all, struct problem *problem)
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

	if (outcome == SHARE_CLIENT_FULL)
		return problem_set(problem, ERR_QUEUE_FULL,
		                   "this client has %llu of at most %llu %s; the rest is for "
		                   "others, which have %llu",
		                   (unsigned long long)share_of(kind, client),
		                   (unsigned long long)all, words[kind],
		                   (unsigned long long)(totals[kind] - share_of(kind, client)));
	return problem_set(problem, ERR_QUEUE_FULL, "there are %llu %s; at most %llu are accepted",
	                   (unsigned long long)totals[kind], words[kind], (unsigned long long)all);
}

void share_give(struct share *share, uint64_t amount)
{
	struct share_client *client = share->client;

	if (!client)
		return;
	if (amount > share->amount)
		amount = share->amount;
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

uint64_t share_held(const struct share *share)
{
	return share->client ? share->client->held[share->kind] : 0;
}

uint64_t share_total(enum share_kind kind)
{
	return totals[kind];
}

uint64_t share_of(enum share_kind kind, const char *name)
{
	const struct share_client *client = find(name);

	return client ? client->held[kind] : 0;
}

const char *share_greatest(enum share_kind kind)
{
	struct share_client *most = NULL, *client;

	RB_FOREACH(client, share_clients, &clients)
	if (client->held[kind] > (most ? most->held[kind] : 0))
		most = client;
	return most ? most->name : NULL;
}
