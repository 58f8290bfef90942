/* Simulated clients: connections of an HTTP worker, each of which makes some requests, one after
 * another. They send bodies in all ways that there are, wait or leave, and judge the answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memfd.h"
#include "link/answer.h"
#include "link/link.h"
#include "sim.h"

enum { IDS_MAX = 64, ID_SIZE = 64, BODY_MAX = 20000 };

enum stage {
	NOTHING, /* no request */
	DECIDES, /* its head has been sent; a body follows if it is wanted */
	SENDS,
	WAITS, /* it is complete */
	READS  /* the answer is here */
};

struct client {
	LIST_ENTRY(client) place;
	struct http *http;
	uint64_t number;
	char name[HEAD_CLIENT_SIZE];
	unsigned left; /* requests to come */
	uint64_t due;  /* the event that counts */

	enum stage stage;
	const struct ask *ask;
	uint64_t request, since; /* number; when it was complete */
	bool is_form, asked, most, failed;
	uint64_t size, sent, limit;
	int body;
	struct answer answer;
	uint64_t read;
	bool streams, awaits_piece, last;
};

/* Those that have gone are kept, as events of theirs may be due. */
static LIST_HEAD(client_list, client) clients, gone;
static char ids[IDS_MAX][ID_SIZE];
static unsigned id_count;
static unsigned client_count;

/* The requests, by their weights; %s: the id of a job. */
static const struct ask {
	unsigned weight;
	const char *method, *path, *name, *value; /* a parameter, or NULL */
	bool has_image, is_async;
} asks[] = {
    {30, "POST", "/v1/filters/gaussian", "sigma", "2", true, false},
    {10, "POST", "/v1/filters/sobel", NULL, NULL, true, false},
    {6, "POST", "/v1/chain", "filters", "gaussian=sigma=1.4,sobel", true, false},
    {6, "POST", "/v1/filters/box", "verify", "1", true, false},
    {6, "POST", "/v1/filters/box", "priority", "batch", true, false},
    {6, "POST", "/v1/filters/box", "device", "*0", true, false},
    {4, "POST", "/v1/filters/equalize", NULL, NULL, true, false},
    {4, "POST", "/v1/filters/threshold", "method", "otsu", true, false},
    {4, "POST", "/v1/filters/canny", NULL, NULL, true, false},
    {4, "POST", "/v1/filters/gaussian", "sigma", "2%", true, false},
    {4, "POST", "/v1/filters/equalize", "pages", "all", true, false},
    {2, "POST", "/v1/filters/box", "size", "wrong", true, false},
    {20, "POST", "/v1/filters/gaussian", "sigma", "2", true, true},
    {6, "POST", "/v1/filters/equalize", "priority", "batch", true, true},
    {10, "GET", "/v1/jobs/%s", "wait", "20", false, false},
    {6, "GET", "/v1/jobs/%s/result", "wait", "20", false, false},
    {6, "GET", "/v1/jobs/%s/events", NULL, NULL, false, false},
    {6, "DELETE", "/v1/jobs/%s", NULL, NULL, false, false},
    {2, "GET", "/v1/jobs", NULL, NULL, false, false},
    {2, "GET", "/v1/devices", NULL, NULL, false, false},
    {2, "GET", "/v1/kernels", NULL, NULL, false, false},
    {2, "GET", "/metrics", NULL, NULL, false, false},
    {2, "GET", "/readyz", NULL, NULL, false, false},
    {2, "GET", "/v1/filters", NULL, NULL, false, false}, /* a herd's */
};

const char *const sim_names[SIM_NAMES] = {"127.0.0.1", "10.0.0.1", "10.0.0.2", "user 1000",
                                          "2001:db8::"};

enum { ASKS = sizeof asks / sizeof *asks, HERDS = ASKS - 1 };

static void act(void *context, uint64_t due);

unsigned sim_clients(void)
{
	return client_count;
}

void sim_clients_reset(void)
{
	struct client *c;

	must(LIST_EMPTY(&clients) && !client_count);
	while ((c = LIST_FIRST(&gone))) {
		LIST_REMOVE(c, place);
		free(c);
	}
	id_count = 0;
}

/* Acts again after a while, and at no other time. */
static void act_after(struct client *c, uint64_t ns)
{
	sim_after(ns, act, c, ++c->due);
}

static uint64_t some_time(void)
{
	if (sim_faults[FAULT_BIG_ANSWERS] && !sim_calm && sim_once_in(3))
		return sim_between(SIM_S, 15 * SIM_S);
	return sim_fault(FAULT_SLOW_CLIENT) ? sim_while(3 * SIM_S) : sim_while(5 * SIM_MS);
}

static bool tell(struct client *c, struct link_message message)
{
	if (message.type != LINK_GUEST && message.type != LINK_GUEST_END)
		message.number = c->request;
	return sim_http_tell(c->http, &message);
}

/* ---- the end ---- */

static void drop_request(struct client *c)
{
	file_close(&c->body);
	file_close(&c->answer.file);
	answer_fini(&c->answer);
	answer_init(&c->answer);
	c->stage = NOTHING;
}

static void forget(struct client *c)
{
	drop_request(c);
	LIST_REMOVE(c, place);
	LIST_INSERT_HEAD(&gone, c, place);
	client_count--;
	c->http = NULL;
	c->due++;
}

/* Ends the request, whether it is answered or not. */
static void end_request(struct client *c)
{
	if (c->stage == NOTHING)
		return;
	sim_counts[COUNT_ABANDONED] += c->stage != READS;
	sim_trace("client %s %lu: ends request %lu", c->name, c->number, c->request);
	if (c->stage != READS || sim_once_in(2))
		tell(c, (struct link_message){.type = LINK_END});
	if (c->http)
		drop_request(c);
}

static void leave(struct client *c)
{
	end_request(c);
	if (!c->http)
		return; /* the worker has ended meanwhile */
	sim_trace("client %s %lu: leaves", c->name, c->number);
	tell(c, (struct link_message){.type = LINK_GUEST_END, .number = c->number});
	if (c->http)
		forget(c);
}

void sim_client_lost(struct http *h)
{
	for (struct client *c = LIST_FIRST(&clients), *next; c; c = next) {
		next = LIST_NEXT(c, place);
		if (c->http != h)
			continue;
		sim_counts[COUNT_LOST]++;
		forget(c);
	}
}

void sim_clients_describe(char *text, size_t room)
{
	const struct client *oldest = NULL, *c;

	*text = '\0';
	LIST_FOREACH(c, &clients, place)
		if (c->stage == WAITS && (!oldest || c->since < oldest->since))
			oldest = c;
	if (oldest)
		snprintf(text, room, "request %lu of %s: %s %s has waited for %.3f s",
		         oldest->request, oldest->name, oldest->ask->method, oldest->ask->path,
		         (double)(sim_now - oldest->since) / SIM_S);
}

/* ---- requests ---- */

static const struct ask *choose(void)
{
	unsigned sum = 0, at;

	for (int i = 0; i < ASKS; i++)
		sum += asks[i].weight;
	at = (unsigned)sim_below(sum);
	for (const struct ask *a = asks;; at -= a++->weight)
		if (at < a->weight)
			return a;
}

static void write_head(struct client *c, struct head_writer *w)
{
	const char *id = id_count ? ids[sim_below(id_count)] : "0123456789abcdef";
	char text[128];

	head_add(w, HEAD_METHOD, c->ask->method);
	snprintf(text, sizeof text, c->ask->path, id);
	head_add(w, HEAD_PATH, text);
	head_add(w, HEAD_CLIENT, c->name);
	head_add(w, HEAD_ACCEPT, "*/*");
	if (c->ask->name) {
		head_add(w, HEAD_NAME, c->ask->name);
		head_add(w, HEAD_VALUE, c->ask->value);
	}
	if (c->ask->has_image && sim_once_in(4)) {
		snprintf(text, sizeof text, "%lu", sim_between(1, 8000));
		head_add(w, HEAD_NAME, "deadline_ms");
		head_add(w, HEAD_VALUE, text);
	}
	if (c->ask->is_async) {
		head_add(w, HEAD_PREFER, "respond-async");
		snprintf(text, sizeof text, "key %lu", sim_below(6));
		if (sim_once_in(3))
			head_add(w, HEAD_IDEMPOTENCY_KEY, text);
	}
}

static void complete(struct client *c)
{
	c->stage = WAITS;
	c->since = sim_now;
	if (sim_fault(FAULT_LEAVES))
		act_after(c, sim_while(5 * SIM_S));
}

/* A small body goes with its head, or each piece is sent when there is room. */
static void begin_request(struct client *c, const struct ask *ask)
{
	static const char pixels[BODY_MAX];
	struct link_message m = {.type = LINK_HEAD, .guest = c->number, .fd = -1};
	struct head_writer head = {0};
	const bool whole = !ask->has_image || sim_once_in(2);

	c->ask = ask;
	c->request = sim_http_number(c->http);
	c->is_form = c->asked = c->most = c->failed = false;
	c->streams = c->awaits_piece = c->last = false;
	c->sent = c->limit = c->read = 0;
	c->size = ask->has_image ? 1 + sim_while(BODY_MAX - 1) : 0;
	c->body = -1;
	write_head(c, &head);
	m.data = head.data;
	m.data_size = head.size;
	m.announced = c->size;
	if (whole) {
		m.flags = LINK_IS_COMPLETE;
		if (c->size) {
			must(!memfd_sealed("body", pixels, c->size, &m.fd));
			m.flags |= LINK_HAS_FILE;
		}
	} else {
		c->is_form = sim_once_in(3);
		m.flags = c->is_form ? LINK_IS_FORM : 0;
		if (sim_once_in(2))
			m.announced = UINT64_MAX;
	}
	sim_counts[COUNT_REQUESTS]++;
	sim_trace("client %s %lu: request %lu: %s %s%s, %lu bytes%s", c->name, c->number,
	          c->request, ask->method, ask->path, ask->is_async ? " async" : "", c->size,
	          whole ? ", whole" : "");
	c->stage = DECIDES;
	if (tell(c, m) && whole)
		complete(c);
	file_close(&m.fd);
	free(head.data);
}

static void finish_body(struct client *c)
{
	struct head_writer form = {0};

	if (c->body >= 0)
		memfd_seal(c->body); /* fails for a file */
	file_close(&c->body);
	if (c->is_form) {
		head_add(&form, HEAD_NAME, "border");
		head_add(&form, HEAD_VALUE, "reflect");
		tell(c, (struct link_message){
		            .type = LINK_FORM, .data = form.data, .data_size = form.size});
		free(form.data);
	}
	if (!c->http || !tell(c, (struct link_message){.type = LINK_FINISH, .bytes = c->sent}))
		return;
	complete(c);
}

static void fail_body(struct client *c)
{
	struct problem problem;

	problem_set(&problem, ERR_BODY_TIMEOUT, "simulated");
	file_close(&c->body);
	c->failed = true;
	if (tell(c, (struct link_message){.type = LINK_FAIL,
	                                  .error = ERR_BODY_TIMEOUT,
	                                  .data = &problem,
	                                  .data_size = sizeof problem}))
		complete(c);
}

/* Sends a part of the body. */
static void send_more(struct client *c)
{
	static const char pixels[BODY_MAX];
	uint64_t part = 1 + sim_below(c->size - c->sent);

	if (sim_fault(FAULT_LEAVES)) {
		if (sim_once_in(2))
			fail_body(c);
		else
			leave(c);
		return;
	}
	if (c->sent + part > c->limit && c->most) {
		fail_body(c);
	} else if (c->sent + part > c->limit) {
		if (!c->asked)
			tell(c, (struct link_message){.type = LINK_LEND, .room = c->sent + part});
		c->asked = true;
	} else {
		must(file_write(c->body, pixels, part, c->sent));
		c->sent += part;
		if (c->sent == c->size)
			finish_body(c);
		else
			act_after(c, some_time());
	}
}

/* ---- answers ---- */

static void note_id(const struct answer *a)
{
	static const char before[] = "/v1/jobs/";

	for (unsigned i = 0; i < a->headers; i++)
		if (!strcmp(a->header[i].name, "Location")) {
			must(!strncmp(a->header[i].value, before, sizeof before - 1));
			snprintf(ids[id_count < IDS_MAX ? id_count++ : sim_below(IDS_MAX)], ID_SIZE,
			         "%s", a->header[i].value + sizeof before - 1);
		}
}

static void receive_answer(struct client *c, struct link_message *m)
{
	struct stat status;

	if (c->stage == READS)
		violated("request %lu is answered twice", c->request);
	file_close(&c->body);
	must(!answer_read(&c->answer, m));
	m->fd = -1;
	sim_counts[COUNT_ANSWERS]++;
	sim_statuses[c->answer.status < 600 ? c->answer.status : 0]++;
	sim_trace("client %s %lu: request %lu is answered: %d", c->name, c->number, c->request,
	          c->answer.status);
	if (m->flags & LINK_HAS_FILE) {
		must(!fstat(c->answer.file, &status));
		must((uint64_t)status.st_size >= c->answer.file_size);
	}
	if (c->stage == WAITS)
		scenario_answered(sim_now - c->since);
	note_id(&c->answer);
	c->stage = READS;
	c->streams = m->flags & LINK_IS_STREAM;
	act_after(c, some_time());
}

static void receive_room(struct client *c, struct link_message *m)
{
	if (c->failed || (c->stage != DECIDES && c->stage != SENDS))
		return;
	if (!(m->flags & LINK_IS_WANTED)) { /* it is thrown away */
		finish_body(c);
		return;
	}
	c->stage = SENDS;
	if (m->fd >= 0) {
		file_close(&c->body);
		c->body = m->fd;
		m->fd = -1;
		c->asked = false;
		c->limit = m->room;
		c->most = m->flags & LINK_IS_MOST;
	}
	act_after(c, some_time());
}

static struct client *find(struct http *h, const struct link_message *m)
{
	struct client *c;

	LIST_FOREACH(c, &clients, place)
		if (c->http == h &&
		    (m->type == LINK_FAIL ? c->number == m->number
		                          : c->request == m->number && c->stage != NOTHING))
			break;
	return c;
}

void sim_client_receive(struct http *h, struct link_message *m)
{
	struct client *c = find(h, m);

	if (!c)
		return;
	switch ((enum link_type)m->type) {
	case LINK_FAIL: /* there are too many connections */
		c->left = 1;
		break;
	case LINK_ROOM:
		receive_room(c, m);
		break;
	case LINK_ANSWER:
		receive_answer(c, m);
		break;
	case LINK_PIECE:
		must(c->stage == READS && c->streams && c->awaits_piece);
		c->awaits_piece = false;
		c->last = m->flags & LINK_IS_LAST;
		act_after(c, some_time());
		break;
	case LINK_CUT:
		sim_counts[COUNT_CUT]++;
		leave(c);
		break;
	default:
		violated("a client got %s", link_name(m->type));
	}
}

/* Reads a part of the answer. */
static void read_more(struct client *c)
{
	const uint64_t left = c->answer.file >= 0 ? c->answer.file_size - c->read : 0;

	if (sim_fault(FAULT_LEAVES)) {
		leave(c);
	} else if (c->streams && !c->last) {
		if (c->awaits_piece)
			return;
		c->awaits_piece = true;
		tell(c, (struct link_message){.type = LINK_NEXT});
		if (c->http)
			act_after(c, sim_between(SIM_S, 60 * SIM_S));
	} else if (left && sim_fault(FAULT_SLOW_CLIENT)) {
		c->read += 1 + sim_below(left);
		tell(c, (struct link_message){.type = LINK_READ, .bytes = c->read});
		if (c->http)
			act_after(c, some_time());
	} else {
		end_request(c);
		if (c->http)
			act_after(c, some_time());
	}
}

/* Does the next thing, when it is the client's turn. */
static void act(void *context, uint64_t due)
{
	struct client *c = context;

	if (due != c->due)
		return;
	if (sim_http_is_full(c->http)) {
		act_after(c, 10 * SIM_MS);
		return;
	}
	switch (c->stage) {
	case NOTHING:
		if (!c->left--)
			leave(c);
		else
			begin_request(c, c->ask && c->ask == &asks[HERDS] ? c->ask : choose());
		break;
	case DECIDES:
		break;
	case SENDS:
		send_more(c);
		break;
	case WAITS:
		leave(c);
		break;
	case READS:
		read_more(c);
		break;
	}
}

static void begin(void *context, uint64_t herd)
{
	struct client *c;

	(void)context;
	if (!sim_https()) { /* it waits in the socket */
		if (scenario_accepts())
			sim_after(100 * SIM_MS, begin, NULL, herd);
		return;
	}
	c = calloc(1, sizeof *c);
	must(c);
	c->http = sim_http_get((unsigned)sim_below(sim_https()));
	c->number = sim_http_number(c->http);
	c->left = herd ? 1 : (unsigned)sim_between(1, 4);
	c->ask = herd ? &asks[HERDS] : NULL;
	c->body = -1;
	answer_init(&c->answer);
	snprintf(c->name, sizeof c->name, "%s", sim_names[sim_below(SIM_NAMES)]);
	LIST_INSERT_HEAD(&clients, c, place);
	client_count++;
	if (sim_once_in(4))
		tell(c, (struct link_message){.type = LINK_GUEST, .number = c->number});
	if (c->http)
		tell(c, (struct link_message){.type = LINK_GUEST,
		                              .number = c->number,
		                              .data = c->name,
		                              .data_size = strlen(c->name)});
	if (c->http)
		act_after(c, herd ? sim_while(SIM_MS) : some_time());
}

void sim_client_begin(uint64_t ns, bool herd)
{
	sim_after(ns, begin, NULL, herd);
}
