/* The life of the HTTP workers. A worker whose loop no longer turns does not answer a ping. It is
 * killed: by the supervisor if it is stopped or uses no processor time meanwhile, else once it has
 * used too much. */
#include "front/http_workers.h"

#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "front/api/remote.h"
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

static const struct config *config;
static struct http_worker workers[WORKERS_MAX];
static unsigned count;
static struct http_socket sockets[HTTP_SOCKETS_MAX];
static unsigned socket_count;
static struct limits limits;
static struct {
	int fd;
	uint64_t chain_size, key_size;
} certificate = {.fd = -1};
static bool draining;
static struct loop_timer ping;

/* Sends the limits. Files may be as large as ever allowed: bodies that are arriving may have been
 * promised more than a reload now allows. */
static void send_limits(struct http_worker *h)
{
	static uint64_t largest = LINK_WHOLE_MAX;
	struct message message = {.type = MSG_LIMITS};

	if (largest < config->max_body)
		largest = config->max_body;
	worker_limit_files(&h->worker, largest);
	message.limits.limits = limits;
	worker_send(&h->worker, &message, NULL);
}

static void send_certificate(struct http_worker *h)
{
	struct message message = {.type = MSG_CERTIFICATE};

	message.certificate.chain_size = certificate.chain_size;
	message.certificate.key_size = certificate.key_size;
	if (certificate.fd >= 0)
		worker_send(&h->worker, &message, &certificate.fd);
}

/* The worker has sent something invalid, or (what: NULL) its end of the link is closed: mostly
 * because it has ended, which shows soon. */
static void remote_broken(void *context, const char *what)
{
	struct http_worker *h = context;

	if (what)
		worker_refuse(&h->worker, what);
	else
		h->lost = 1;
}

static void worker_up(struct worker *w, const struct message_ready *ready)
{
	static const struct remote_calls calls = {.broken = remote_broken};
	struct http_worker *h = &workers[w->number];
	struct message message = {.type = MSG_LINK};
	int pair[2];

	(void)ready;
	if (link_pair(pair)) {
		worker_kill(w, "link");
		return;
	}
	worker_send(w, &message, &pair[1]);
	close(pair[1]);
	h->remote = remote_new(pair[0], &calls, h);
	if (!h->remote) {
		worker_kill(w, "link");
		return;
	}
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
}

static void worker_down(struct worker *w, const char *reason)
{
	struct http_worker *h = &workers[w->number];

	(void)reason;
	remote_free(h->remote);
	h->remote = NULL;
	h->lost = h->silent = 0;
}

/* A disk may hold it up for some seconds. */
static bool worker_busy(const struct worker *w)
{
	return workers[w->number].remote && workers[w->number].silent >= LONG;
}

static const struct worker_owner owner = {
    .program = "convolved-http", .up = worker_up, .down = worker_down, .busy = worker_busy};

static void ping_all(void *context)
{
	(void)context;
	for (unsigned i = 0; i < count; i++) {
		struct http_worker *h = &workers[i];
		uint64_t worked = h->worker.stall.worked_ns;

		if (h->lost && h->lost++ == LOOKS) {
			worker_kill(&h->worker, "link");
		} else if (h->remote && !remote_is_pinged(h->remote)) {
			h->worked = worked;
			h->silent = 0;
			remote_ping(h->remote);
		} else if (h->remote && worked - h->worked > hung_ns) {
			worker_kill(&h->worker, "hung");
		} else {
			h->silent++;
		}
	}
}

enum error http_workers_init(const struct config *c, const struct limits *l,
                             const struct http_socket *list, unsigned n)
{
	enum error e = loop_timer_init(&ping, ping_all, NULL);

	config = c;
	limits = *l;
	socket_count = n;
	memcpy(sockets, list, n * sizeof *list);
	if (!e)
		loop_timer_repeat(&ping, PING_MS);
	while (!e && count < config->http_workers) {
		struct http_worker *h = &workers[count];

		h->worker.kind = "http";
		h->worker.number = count++;
		h->worker.owner = &owner;
		e = worker_start(&h->worker);
	}
	return e;
}

void http_workers_limit(const struct limits *l)
{
	limits = *l;
	for (unsigned i = 0; i < count; i++)
		send_limits(&workers[i]);
}

void http_workers_certify(int fd, size_t chain_size, size_t key_size)
{
	if (certificate.fd >= 0)
		close(certificate.fd);
	certificate.fd = fd;
	certificate.chain_size = chain_size;
	certificate.key_size = key_size;
	for (unsigned i = 0; i < count; i++)
		send_certificate(&workers[i]);
}

bool http_workers_turn(void)
{
	bool due = false;

	for (unsigned i = 0; i < count; i++)
		if (workers[i].remote)
			remote_turn(workers[i].remote);
	/* One's request may wake another's. */
	for (unsigned i = 0; i < count; i++)
		due |= workers[i].remote && remote_is_due(workers[i].remote);
	return due;
}

void http_workers_drain(bool last)
{
	draining = true;
	for (unsigned i = 0; i < count; i++)
		if (workers[i].remote)
			remote_drain(workers[i].remote, last);
	for (unsigned i = 0; i < socket_count; i++)
		close(sockets[i].fd);
	socket_count = 0;
}

bool http_workers_drained(void)
{
	for (unsigned i = 0; i < count; i++)
		if (workers[i].remote &&
		    (remote_requests(workers[i].remote) || !remote_is_drained(workers[i].remote)))
			return false;
	return true;
}

void http_workers_end(void)
{
	for (unsigned i = 0; i < count; i++)
		if (workers[i].remote)
			remote_end(workers[i].remote);
}

unsigned http_workers_requests(void)
{
	unsigned requests = 0;

	for (unsigned i = 0; i < count; i++)
		requests += workers[i].remote ? remote_requests(workers[i].remote) : 0;
	return requests;
}

void http_workers_fini(void)
{
	for (unsigned i = 0; i < count; i++) {
		worker_fini(&workers[i].worker);
		remote_free(workers[i].remote);
		workers[i].remote = NULL;
	}
	count = 0;
	for (unsigned i = 0; i < socket_count; i++)
		close(sockets[i].fd);
	socket_count = 0;
	if (certificate.fd >= 0)
		close(certificate.fd);
	certificate.fd = -1;
	loop_timer_fini(&ping);
}
