/* Slow readers, by what is reported of them now and then. A client of which nothing has been
 * reported yet has just begun, and goes after those that are known; of several, the oldest. */
#include "front/jobs/unread.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/log.h"
#include "front/base/loop.h"
#include "front/base/metrics.h"

/* What the sockets' buffers take even if nobody reads. A client that has just begun counts as
 * fast. */
static const double buffered = 4 << 20;

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
	if (!u->reported)
		return INFINITY;
	return ((double)u->read + buffered) / ((double)(u->reported - u->since) * 1e-9 + 1e-6);
}

/* The slowest reader of a client, or (NULL) of all; NULL if there are fewer than two. */
static struct unread *find_slowest(const char *client)
{
	struct unread *slowest = NULL, *u;
	double least = INFINITY;
	unsigned count = 0;

	LIST_FOREACH(u, &answers, place)
	{
		double s;

		if (!u->share.client || (client && strcmp(client, u->client)))
			continue;
		count++;
		s = speed(u);
		if (s <= least) { /* the list has the oldest last */
			slowest = u;
			least = s;
		}
	}
	return count > 1 ? slowest : NULL;
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

static void keep_bounds(const char *client)
{
	struct unread *slowest;

	while (share_of(SHARE_ANSWERS, client) > config->unread_client_size &&
	       (slowest = find_slowest(client)))
		end(slowest, "client", "unread-client-size");
	while (share_total(SHARE_ANSWERS) > config->unread_size && (slowest = find_slowest(NULL)))
		end(slowest, "all", "unread-size");
}

void unread_begin(struct unread *u, const char *id, const char *client, uint64_t size,
                  void (*cut)(void *context), void *context)
{
	*u = (struct unread){.id = id,
	                     .client = client,
	                     .size = size,
	                     .since = loop_now(),
	                     .cut = cut,
	                     .context = context};
	if (share_force(&u->share, SHARE_ANSWERS, client, size))
		log_warning("request %s: no memory to count its answer", id);
	LIST_INSERT_HEAD(&answers, u, place);
	keep_bounds(client);
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
