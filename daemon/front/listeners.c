/* Hands the listening sockets to HTTP, and those for agent checks to these. */
#include "front/listeners.h"

#include <assert.h>

#include "front/agent.h"
#include "front/listener.h"
#include "front/http_workers.h"

_Static_assert(2 * (int)CONFIG_LIST_MAX <= (int)HTTP_SOCKETS_MAX, "every listener is served");

static bool passed; /* a socket manager keeps the sockets: those who come in a drain wait there */

static struct limits limits_of(const struct config *c)
{
	struct limits limits = {.idle_timeout = c->idle_timeout,
	                        .header_timeout = c->header_timeout,
	                        .keepalive_timeout = c->keepalive_timeout,
	                        .body_timeout = c->body_timeout,
	                        .body_rate = c->body_rate,
	                        .spool_size = c->spool_size};
	bool valid = true;

	for (unsigned i = 0; i < c->trusted_proxies.count; i++)
		valid &= networks_add(&limits.trusted_proxies, c->trusted_proxies.item[i]);
	assert(valid); /* or the configuration would be none */
	return limits;
}

void listeners_reload(const struct config *config)
{
	struct limits limits = limits_of(config);

	http_workers_limit(&limits);
}

enum error listeners_init(const struct config *config)
{
	struct listener list[LISTENERS_MAX];
	struct http_socket sockets[HTTP_SOCKETS_MAX];
	unsigned count = listener_list(config, list), open = 0;
	struct limits limits = limits_of(config);
	enum error e = ERR_OK;

	for (unsigned i = 0; !e && i < count; i++) {
		passed |= list[i].passed;
		e = listener_open(&list[i], (unsigned)config->socket_mode);
		if (!e && list[i].use == LISTENER_AGENT)
			e = agent_serve(list[i].fd);
		else if (!e && list[i].fd >= 0)
			sockets[open++] =
			    (struct http_socket){.fd = list[i].fd,
			                         .tls = list[i].tls,
			                         .metrics = list[i].use == LISTENER_METRICS};
	}
	return e ? e : http_workers_init(config, &limits, sockets, open);
}

void listeners_drain(void)
{
	http_workers_drain(!passed);
}
