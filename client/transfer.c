/* The loop. A slot is free, under way in the multi handle, or waiting until it is due again. */
#include "client/transfer.h"

#include <stdlib.h>

#include "client/interrupt.h"
#include "client/report.h"

struct loop {
	const struct server *server;
	const struct transfers *transfers;
	struct exchange *slots;
	bool *taken;
	unsigned count, active;
	bool ended; /* no further exchange is wanted, or none is left */
	bool later; /* the next one has to be waited for */
	bool stopped;
};

static void begin(struct loop *loop, struct exchange *e)
{
	exchange_prepare(e, loop->server);
	curl_multi_add_handle(loop->server->multi, e->easy);
}

/* Hands the exchange back; begins the request that follows it, or keeps its handle for the next
 * one. The reason to stop is printed once. */
static void hand_back(struct loop *loop, struct exchange *e)
{
	enum supply supply;

	if (loop->stopped && e->outcome != OUTCOME_DONE)
		e->outcome = OUTCOME_GIVEN_UP;
	supply = loop->transfers->done(loop->transfers->context, e);
	if (supply == SUPPLY_READY) {
		exchange_renew(e);
		begin(loop, e);
		return;
	}
	if (supply == SUPPLY_END)
		loop->ended = loop->stopped = true;
	loop->taken[e - loop->slots] = false;
	loop->active--;
}

static void fill(struct loop *loop)
{
	loop->later = false;
	for (unsigned i = 0; i < loop->count && !loop->ended; i++) {
		CURL *easy = loop->slots[i].easy;
		enum supply supply;

		if (loop->taken[i])
			continue;
		loop->slots[i].easy = NULL;
		exchange_fini(&loop->slots[i]);
		loop->slots[i] = (struct exchange){.body = -1, .result = -1, .easy = easy};
		supply = loop->transfers->next(loop->transfers->context, &loop->slots[i]);
		loop->ended = supply == SUPPLY_END;
		loop->later = supply == SUPPLY_LATER;
		if (supply != SUPPLY_READY)
			return;
		loop->taken[i] = true;
		loop->active++;
		begin(loop, &loop->slots[i]);
	}
}

/* Begins again the exchanges that are due; returns the milliseconds until the next, 200 at most. */
static int begin_due(struct loop *loop)
{
	double now = report_now(), wait = 0.2;

	for (unsigned i = 0; i < loop->count; i++) {
		struct exchange *e = &loop->slots[i];

		if (!loop->taken[i] || e->due == 0)
			continue;
		if (e->due <= now)
			begin(loop, e);
		else if (e->due - now < wait)
			wait = e->due - now;
	}
	return (int)(wait * 1000) + 1;
}

static void collect(struct loop *loop)
{
	int left;

	for (CURLMsg *message; (message = curl_multi_info_read(loop->server->multi, &left));) {
		CURLcode code = message->data.result;
		struct exchange *e = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &e);
		curl_multi_remove_handle(loop->server->multi, message->easy_handle);
		exchange_judge(e, loop->server, code);
		if (e->outcome)
			hand_back(loop, e);
	}
}

static void give_up(struct loop *loop)
{
	for (unsigned i = 0; i < loop->count; i++) {
		struct exchange *e = &loop->slots[i];

		if (!loop->taken[i])
			continue;
		if (e->due == 0)
			curl_multi_remove_handle(loop->server->multi, e->easy);
		e->outcome = OUTCOME_GIVEN_UP;
		hand_back(loop, e);
	}
}

static void run(struct loop *loop)
{
	struct curl_waitfd waits[] = {{.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN},
	                              {.fd = loop->transfers->source, .events = CURL_WAIT_POLLIN}};

	for (;;) {
		int running, wait;

		fill(loop);
		if ((!loop->active && loop->ended) || loop->stopped || interrupt_number())
			break;
		wait = begin_due(loop);
		curl_multi_perform(loop->server->multi, &running);
		collect(loop);
		if (loop->transfers->tick)
			loop->transfers->tick(loop->transfers->context);
		if (loop->later || (loop->active && (loop->ended || loop->active == loop->count)))
			curl_multi_poll(loop->server->multi, waits, loop->later ? 2 : 1, wait,
			                NULL);
	}
	give_up(loop);
}

void transfer_run(const struct server *server, unsigned parallel, const struct transfers *transfers)
{
	struct loop loop = {.server = server,
	                    .transfers = transfers,
	                    .slots = calloc(parallel, sizeof *loop.slots),
	                    .taken = calloc(parallel, sizeof *loop.taken),
	                    .count = parallel};

	if (!loop.slots || !loop.taken)
		abort();
	/* An image may need the service and two others. */
	curl_multi_setopt(server->multi, CURLMOPT_MAXCONNECTS, 3L * parallel);
	run(&loop);
	for (unsigned i = 0; i < parallel; i++)
		exchange_fini(&loop.slots[i]);
	free(loop.slots);
	free(loop.taken);
}

/* One request
 * -------------------------------------------------------------------------------------- */

struct asking {
	const struct exchange *request;
	char *text;
	enum outcome outcome;
};

static enum supply next_asking(void *context, struct exchange *e)
{
	struct asking *asking = context;
	CURL *easy = e->easy;

	if (!asking->request)
		return SUPPLY_END;
	*e = *asking->request;
	e->easy = easy;
	asking->request = NULL;
	return SUPPLY_READY;
}

static enum supply asking_done(void *context, struct exchange *e)
{
	struct asking *asking = context;

	asking->outcome = e->outcome;
	asking->text = e->text;
	e->text = NULL;
	e->text_size = 0;
	return SUPPLY_SOON;
}

enum exit_code transfer_ask(const struct server *server, const struct exchange *request,
                            const char *name, char **text)
{
	struct asking asking = {.request = request};
	struct transfers transfers = {next_asking, asking_done, NULL, &asking, -1};

	transfer_run(server, 1, &transfers);
	if (asking.outcome == OUTCOME_DONE && (asking.text || request->accepted)) {
		*text = asking.text;
		return EXIT_DONE;
	}
	if (asking.outcome != OUTCOME_GIVEN_UP)
		report_error("%s%s%s", name ? name : "", name ? ": " : "",
		             asking.text ? asking.text : "the answer is empty");
	free(asking.text);
	return asking.outcome == OUTCOME_UNREACHABLE ? EXIT_UNREACHABLE : EXIT_SOME_FAILED;
}
