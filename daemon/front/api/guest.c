/* Places of connections, as shares of their clients. */
#include "front/api/guest.h"

#include <stdlib.h>

#include "front/base/metrics.h"
#include "front/jobs/shares.h"

struct guest {
	struct share place;
	guest_refuse *refuse;
	void *context;
	enum error error; /* why it has no place, and */
	struct problem problem;
};

static const struct config *config;
static unsigned guests;

void guests_init(const struct config *c)
{
	config = c;
}

static void count(int change)
{
	guests += (unsigned)change;
	metric_set(METRIC_CONNECTIONS, NULL, NULL, guests);
}

struct guest *guest_new(guest_refuse *refuse, void *context)
{
	struct guest *guest = calloc(1, sizeof *guest);

	if (!guest)
		return NULL;
	guest->refuse = refuse;
	guest->context = context;
	count(1);
	return guest;
}

static enum error find_place(struct guest *guest, const char *client, bool proxy,
                             struct problem *problem)
{
	uint64_t most = share_connections_most(), own = share_of(SHARE_CONNECTIONS, client);
	enum share_outcome outcome;

	if (proxy && share_total(SHARE_CONNECTIONS) < most)
		return share_force(&guest->place, SHARE_CONNECTIONS, client, 1)
		           ? problem_set(problem, ERR_MEMORY, "no memory for the connection")
		           : ERR_OK;
	if (own >= config->max_client_connections)
		return problem_set(
		    problem, ERR_QUEUE_FULL, "this client has %llu of at most %llu connections",
		    (unsigned long long)own, (unsigned long long)config->max_client_connections);
	outcome = share_take(&guest->place, SHARE_CONNECTIONS, client, 1, most);
	return outcome ? share_problem(outcome, SHARE_CONNECTIONS, client, most, problem) : ERR_OK;
}

void guest_name(struct guest *guest, const char *client, bool proxy)
{
	share_give_all(&guest->place);
	guest->error = find_place(guest, client, proxy, &guest->problem);
	if (guest->error)
		guest->refuse(guest->context, guest->error, &guest->problem);
}

enum error guest_error(const struct guest *guest, struct problem *problem)
{
	if (guest->error)
		*problem = guest->problem;
	return guest->error;
}

void guest_free(struct guest *guest)
{
	if (!guest)
		return;
	share_give_all(&guest->place);
	free(guest);
	count(-1);
}
