/* A simulated HTTP worker: the far end of a link, whose clients are in client.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/link.h"
#include "sim.h"

enum { MOST = 8 };

struct http {
	struct process *p;
	struct link link;
	uint64_t last_number;
	bool serves;
};

static struct http *serving[MOST];

/* Only the front's are judged by check.c. */
bool __real_link_send(struct link *link, const struct link_message *message);

unsigned sim_https(void)
{
	unsigned count = 0;

	for (int i = 0; i < MOST; i++)
		count += serving[i] != NULL;
	return count;
}

struct http *sim_http_get(unsigned i)
{
	struct http **at = serving;

	for (;; at++)
		if (*at && !i--)
			return *at;
}

uint64_t sim_http_number(struct http *h)
{
	return ++h->last_number;
}

bool sim_http_is_full(struct http *h)
{
	return link_is_full(&h->link);
}

static void stop_serving(struct http *h)
{
	for (int i = 0; i < MOST; i++)
		if (serving[i] == h)
			serving[i] = NULL;
}

bool sim_http_tell(struct http *h, const struct link_message *message)
{
	if (h->p->has_ended || h->p->is_hung)
		return false;
	if (__real_link_send(&h->link, message))
		return true;
	sim_exit(h->p, 0);
	return false;
}

static void receive(void *context, struct link_message *message)
{
	struct http *h = context;

	if (h->p->is_hung || h->p->has_ended)
		return;
	h->p->heard = sim_now;
	sim_work(h->p, false);
	h->p->worked += SIM_MS; /* it turns */
	if (message->type == LINK_PING) {
		if (!sim_may_fail(h->p))
			sim_http_tell(h, &(struct link_message){.type = LINK_PONG});
	} else if (message->type == LINK_DRAIN) {
		stop_serving(h);
		sim_http_tell(h, &(struct link_message){.type = LINK_PONG, .flags = LINK_IS_LAST});
	} else {
		sim_client_receive(h, message);
	}
}

static void broken(void *context, const char *why)
{
	struct http *h = context;

	if (why)
		violated("the front sent an invalid %s", why);
	sim_exit(h->p, 0);
}

static void flush(void *context, uint64_t number)
{
	struct http *h = context;

	if (h->p->has_ended)
		return;
	link_flush(&h->link);
	sim_after(100 * SIM_MS, flush, h, number);
}

static void message(struct process *p, const struct message *m, const int *fds)
{
	static const struct link_owner owner = {receive, broken};
	struct http *h = p->state;

	if (m->type == MSG_LINK) {
		must(!link_open(&h->link, fds[0], &owner, h));
		sim_set_far(fds[0], p);
		sim_set_far(h->link.again, p);
		flush(h, 0);
	} else if (m->type == MSG_LISTEN) {
		close(fds[0]);
		for (int i = 0; !h->serves; i++) {
			must(i < MOST);
			if (!serving[i]) {
				serving[i] = h;
				h->serves = true;
			}
		}
	} else {
		must(m->type == MSG_LIMITS);
	}
}

static void prepare(struct process *p, struct message_ready *ready)
{
	struct http *h = p->state = calloc(1, sizeof *h);

	(void)ready;
	must(h);
	h->p = p;
	p->heard = sim_now;
	h->link.readable.fd = h->link.writable.fd = h->link.again = -1;
	STAILQ_INIT(&h->link.queue);
}

static void down(struct process *p)
{
	struct http *h = p->state;

	if (!h)
		return;
	stop_serving(h);
	link_close(&h->link);
	sim_client_lost(h);
}

const struct program sim_http = {"convolved-http", prepare, message, down};
