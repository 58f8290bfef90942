/* Hands the listening sockets to HTTP. */
#include "front/listeners.h"

#include <assert.h>

#include "front/listener.h"
#include "http/http.h"

static bool passed; /* a socket manager keeps the sockets: those who come in a drain wait there */

static struct limits limits_of(const struct config *c)
{
	struct limits limits = {.idle_timeout = c->idle_timeout,
	                        .header_timeout = c->header_timeout,
	                        .keepalive_timeout = c->keepalive_timeout,
	                        .body_timeout = c->body_timeout,
	                        .body_rate = c->body_rate};
	bool valid = true;

	for (unsigned i = 0; i < c->trusted_proxies.count; i++)
		valid &= networks_add(&limits.trusted_proxies, c->trusted_proxies.item[i]);
	assert(valid); /* or the configuration would be none */
	return limits;
}

void listeners_reload(const struct config *config)
{
	struct limits limits = limits_of(config);

	http_limit(&limits);
}

enum error listeners_init(const struct config *config)
{
	struct listener list[LISTENERS_MAX];
	unsigned count = listener_list(config, list);
	struct limits limits = limits_of(config);
	enum error e = http_init(&limits);

	for (unsigned i = 0; !e && i < count; i++) {
		passed |= list[i].passed;
		e = listener_open(&list[i], (unsigned)config->socket_mode);
		if (!e && list[i].fd >= 0)
			e = http_serve(&(struct http_socket){
			    .fd = list[i].fd, .tls = list[i].tls, .metrics = list[i].metrics});
	}
	return e;
}

void listeners_drain(void)
{
	http_drain(!passed);
}
