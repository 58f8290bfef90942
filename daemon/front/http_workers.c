/* The life of the HTTP workers. A worker whose loop no longer turns answers no ping. It is killed:
 * by the supervisor if it is stopped or idle meanwhile, else once it has used too much processor
 * time. */
#include "front/http_workers.h"

#include <assert.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "front/api/remote.h"
#include "front/config/config.h"
#include "front/workers/supervisor.h"
#include "link/link.h"

enum { WORKERS_MAX = 64, PING_MS = 500, LOOKS = 2, LONG = 10 };

/* More processor time than a turn of a worker's loop takes, in nanoseconds. */
static const uint64_t hung_ns = 5000000000u;

struct http_worker {
	struct worker worker;
	struct remote *remote; /* NULL: it is not up */
	uint64_t worked;       /* nanoseconds of processor time, when it was pinged */
	unsigned silent;       /* looks since it was */
	unsigned lost;         /* looks since its end of the link is closed */
};

static struct http_worker workers[WORKERS_MAX];
static unsigned count;
static struct http_socket sockets[HTTP_SOCKETS_MAX];
static unsigned socket_count;
static struct certificate_file certificate = {.fd = -1};
static bool draining;
static struct loop_timer ping;

/* Sends the limits. Files may be as large as ever allowed, because arriving bodies may have been
 * promised more than a reload now allows. */
static void send_limits(struct http_worker *h)
{
	static uint64_t largest = LINK_WHOLE_MAX;
	struct message message = {.type = MSG_LIMITS,
	                          .limits.limits = {.idle_timeout = config->idle_timeout,
	                                            .header_timeout = config->header_timeout,
	                                            .keepalive_timeout = config->keepalive_timeout,
	                                            .body_timeout = config->body_timeout,
	                                            .body_rate = config->body_rate,
	                                            .spool_size = config->spool_size}};
	struct networks *proxies = &message.limits.limits.trusted_proxies;
	bool valid = true;

	for (unsigned i = 0; i < config->trusted_proxies.count; i++)
		valid &= networks_add(proxies, config->trusted_proxies.item[i]);
	assert(valid); /* or the configuration would be none */
	if (largest < config->max_body)
		largest = config->max_body;
	worker_limit_files(&h->worker, largest);
	worker_send(&h->worker, &message, NULL);
}

static void send_certificate(struct http_worker *h)
{
	struct message message = {.type = MSG_CERTIFICATE, .certificate = certificate.sizes};

	if (certificate.fd >= 0)
		worker_send(&h->worker, &message, &certificate.fd);
}

/* Handles a worker that has sent an invalid message, or whose end of the link is closed (what:
 * NULL), mostly because it has ended, which shows soon. */
static void remote_broken(void *context, const char *what)
{
	struct http_worker *h = context;

	if (what)
		worker_refuse(&h->worker, what);
	else
		h->lost = 1;
}

static void worker_up(struct worker *w, const struct message_ready *)
{
	struct http_worker *h = &workers[w->number];
	struct message message = {.type = MSG_LINK};
	int pair[2];

	if (!link_pair(pair)) {
		worker_send(w, &message, &pair[1]);
		close(pair[1]);
		h->remote = remote_new(pair[0], remote_broken, h);
	}
	if (!h->remote) {
		worker_kill(w, "link");
		return;
	}
	h->worked = w->stall.worked_ns; /* its start may have taken long */
	h->silent = 0;
	send_limits(h);
	send_certificate(h);
	for (unsigned i = 0; i < socket_count && !draining; i++) {
		message = (struct message){
		    .type = MSG_LISTEN,
		    .listen = {.tls = sockets[i].tls, .metrics = sockets[i].metrics}};
		worker_send(w, &message, &sockets[i].fd);
	}
	if (draining)
		remote_drain(h->remote, false);
	remote_ping(h->remote);
}

static void worker_down(struct worker *w, const char *)
{
	struct http_worker *h = &workers[w->number];

	remote_free(h->remote);
	h->remote = NULL;
	h->lost = 0;
}

/* A disk may hold it up for some seconds. */
static bool worker_busy(const struct worker *w)
{
	return workers[w->number].remote && workers[w->number].silent >= LONG;
}

static const struct worker_owner owner = {.kind = "http",
                                          .program = "convolved-http",
                                          .up = worker_up,
                                          .down = worker_down,
                                          .busy = worker_busy};

static void ping_all(void *)
{
	for (unsigned i = 0; i < count; i++) {
		struct http_worker *h = &workers[i];
		uint64_t worked = h->worker.stall.worked_ns;

		if (h->lost && h->lost++ == LOOKS) {
			worker_kill(&h->worker, "link");
		} else if (h->remote && remote_ping(h->remote)) {
			h->worker.served = loop_now();
			h->worked = worked;
			h->silent = 0;
		} else if (h->remote && worked - h->worked > hung_ns) {
			worker_kill(&h->worker, "hung");
		} else {
			h->silent++;
		}
	}
}

void http_workers_serve(struct http_socket socket)
{
	sockets[socket_count++] = socket;
}

enum error http_workers_init(void)
{
	enum error e = loop_timer_init(&ping, ping_all, NULL);

	if (!e)
		loop_timer_repeat(&ping, PING_MS);
	while (!e && count < config->http_workers) {
		e = worker_start(&workers[count].worker, &owner, count);
		count++;
	}
	return e;
}

void http_workers_limit(void)
{
	for (unsigned i = 0; i < count; i++)
		send_limits(&workers[i]);
}

void http_workers_certify(struct certificate_file next)
{
	file_close(&certificate.fd);
	certificate = next;
	for (unsigned i = 0; i < count; i++)
		send_certificate(&workers[i]);
}

static void close_sockets(void)
{
	while (socket_count)
		close(sockets[--socket_count].fd);
}

void http_workers_drain(bool last)
{
	draining = true;
	for (unsigned i = 0; i < count; i++)
		if (workers[i].remote)
			remote_drain(workers[i].remote, last);
	close_sockets();
}

void http_workers_fini(void)
{
	for (unsigned i = 0; i < count; i++) {
		worker_fini(&workers[i].worker);
		remote_free(workers[i].remote);
		workers[i].remote = NULL;
	}
	count = 0;
	close_sockets();
	file_close(&certificate.fd);
	loop_timer_fini(&ping);
}
