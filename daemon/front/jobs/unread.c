/* Slow readers. Only TCP tells how much a client has read: clients of Unix sockets count as having
 * read nothing, so of them the one that has read for longest goes first. */
#include "front/jobs/unread.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

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

static uint64_t acknowledged(int socket)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;

	return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.tcpi_bytes_acked;
}

static uint64_t read_so_far(const struct unread *u)
{
	return acknowledged(u->socket) - u->acknowledged;
}

/* Bytes a second. */
static double speed(const struct unread *u, uint64_t now)
{
	return ((double)read_so_far(u) + buffered) / ((double)(now - u->since) * 1e-9 + 1e-6);
}

/* The slowest reader of a client, or (NULL) of all; NULL if there are fewer than two. */
static struct unread *find_slowest(const char *client)
{
	struct unread *slowest = NULL, *u;
	uint64_t now = loop_now();
	double least = 0;
	unsigned count = 0;

	LIST_FOREACH(u, &answers, place)
	{
		double s;

		if (!u->share.client || (client && strcmp(client, u->client)))
			continue;
		s = speed(u, now);
		if (!count++ || s < least) {
			slowest = u;
			least = s;
		}
	}
	return count > 1 ? slowest : NULL;
}

/* The library notices the end of the connection, and frees its data. */
static void end(struct unread *u, const char *bound, const char *option)
{
	log_event(LOG_LEVEL_NOTICE, LOG_FIELDS(.request = u->id),
	          "request %s: connection closed: unread answers exceed %s: %s has taken %llu of "
	          "%llu bytes in %.1f s",
	          u->id, option, u->client, (unsigned long long)read_so_far(u),
	          (unsigned long long)u->size, (double)(loop_now() - u->since) * 1e-9);
	metric_add(METRIC_UNREAD_ENDED, bound, NULL, 1);
	share_give_all(&u->share);
	shutdown(u->socket, SHUT_RDWR);
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

void unread_begin(struct unread *u, const char *id, const char *client, int socket, uint64_t size)
{
	*u = (struct unread){.id = id,
	                     .client = client,
	                     .socket = socket,
	                     .size = size,
	                     .since = loop_now(),
	                     .acknowledged = acknowledged(socket)};
	if (share_force(&u->share, SHARE_ANSWERS, client, size))
		log_warning("request %s: no memory to count its answer", id);
	LIST_INSERT_HEAD(&answers, u, place);
	keep_bounds(client);
}

void unread_end(struct unread *u)
{
	if (!u->id)
		return;
	share_give_all(&u->share);
	LIST_REMOVE(u, place);
	u->id = NULL;
}
