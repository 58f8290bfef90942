/* convolved-trace: sends the front's spans of requests to a collector by OTLP over HTTP. It ends
 * when the front does, after a last attempt to send its spans.
 *
 * It gathers spans in a ring for a moment, posts the oldest as one request at a time, and repeats a
 * request after a temporary failure. Spans that do not fit meanwhile are lost, and counted. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "wire/wire.h"

enum {
	SPANS_KEPT = 4096,
	SENDER_PORTS_MAX = 7,
	BATCH = 512,          /* spans in a request */
	GATHER_MS = 500,      /* that the first of a request waits for others */
	TIMEOUT_MS = 10000,   /* for a request */
	RETRY_MS = 1000,      /* before the first repetition, doubled for the next ones */
	RETRY_MAX_MS = 60000, /* also if the collector asks for more */
	ANSWER_MAX = 64 << 10,
};

static struct span ring[SPANS_KEPT];
/* posted: the oldest spans, in a request without a final answer yet */
static size_t oldest, count, posted;
static uint64_t lost_spans; /* and not told */
static uint64_t due;        /* milliseconds, when the next request begins; 0: not known */
static unsigned tries;      /* failed attempts at the request */
static bool told;           /* that the collector does not answer as it should */
static CURLM *multi;
static CURL *transfer;
static bool under_way;
static char host[256];
static char error[CURL_ERROR_SIZE];
static size_t answered; /* bytes of the collector's answer */

/* The answer contains nothing useful; more than any real answer ends the transfer. */
static size_t skip(char *, size_t size, size_t n, void *)
{
	answered += size * n;
	return answered <= ANSWER_MAX ? size * n : 0;
}

/* Lists the TCP ports of the endpoint, the environment's proxies and DNS. Returns their number. */
static size_t sender_ports(const char *endpoint, uint16_t ports[SENDER_PORTS_MAX])
{
	enum { DNS = 53, PROXY = 1080 /* without a port, for libcurl */ };
	static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
	                                      "all_proxy", "ALL_PROXY"};
	CURLU *parts = curl_url();
	size_t ports_known = 0;
	char *port;

	ports[ports_known++] = DNS;
	for (int i = -1; i < (int)(sizeof proxies / sizeof *proxies); i++) {
		const char *url = i < 0 ? endpoint : getenv(proxies[i]);

		if (!url || curl_url_set(parts, CURLUPART_URL, url, CURLU_GUESS_SCHEME))
			continue;
		port = NULL;
		if (curl_url_get(parts, CURLUPART_PORT, &port, i < 0 ? CURLU_DEFAULT_PORT : 0u))
			ports[ports_known++] = PROXY;
		else
			ports[ports_known++] = (uint16_t)atoi(port);
		curl_free(port);
	}
	curl_url_cleanup(parts);
	return ports_known;
}

static enum error sender_init(const char *endpoint)
{
	static char json[] = "Content-Type: application/json";
	static struct curl_slist type = {.data = json};
	const bool closed = endpoint[strlen(endpoint) - 1] == '/';
	enum error e = ERR_OK;
	char *url;

	gethostname(host, sizeof host - 1);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return ERR_INTERNAL;
	multi = curl_multi_init();
	transfer = curl_easy_init();
	/* OTLP's exporters make the URL so. */
	if (!multi || !transfer || asprintf(&url, "%s%sv1/traces", endpoint, closed ? "" : "/") < 0)
		return ERR_MEMORY;
	if (curl_easy_setopt(transfer, CURLOPT_URL, url))
		e = ERR_MEMORY;
	free(url);
	curl_easy_setopt(transfer, CURLOPT_POST, 1L);
	curl_easy_setopt(transfer, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(transfer, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	curl_easy_setopt(transfer, CURLOPT_HTTPHEADER, &type);
	curl_easy_setopt(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(transfer, CURLOPT_USERAGENT, "convolved/" PACKAGE_VERSION);
	curl_easy_setopt(transfer, CURLOPT_WRITEFUNCTION, skip);
	curl_easy_setopt(transfer, CURLOPT_ERRORBUFFER, error);
	return e;
}

/* ---- encoding ----
 *
 * Spans as a request of OTLP, the OpenTelemetry protocol, in its JSON encoding
 * (https://opentelemetry.io/docs/specs/otlp/, ExportTraceServiceRequest). */

enum { KIND_INTERNAL = 1, KIND_SERVER = 2, STATUS_ERROR = 2 };

/* Integers of 64 bits are texts in the encoding. */
static json_t *number(uint64_t n)
{
	return json_sprintf("%ju", (uintmax_t)n);
}

static void add_text(json_t *list, const char *name, const char *text)
{
	if (*text)
		json_array_append_new(
		    list, json_pack("{s:s, s:{s:s}}", "key", name, "value", "stringValue", text));
}

static json_t *attributes(const struct span *span)
{
	json_t *list = json_array();

#define SPAN_TEXT(symbol, name) add_text(list, name, span->text[SPAN_##symbol]);
#define SPAN_NUMBER(symbol, name)                                                                  \
	if (span->number[SPAN_##symbol])                                                           \
		json_array_append_new(list,                                                        \
		                      json_pack("{s:s, s:{s:o}}", "key", name, "value",            \
		                                "intValue", number(span->number[SPAN_##symbol])));
#include "wire/spans.def"
	return list;
}

/* Returns the request, which the caller frees; NULL without memory. Only UTF-8 texts are in it. */
static char *encode(const struct span *spans, size_t number_of_spans)
{
	json_t *resource = json_array(), *list = json_array(), *request;
	char *text;

	add_text(resource, "service.name", "convolved");
	add_text(resource, "service.version", PACKAGE_VERSION);
	add_text(resource, "host.name", host);
	for (const struct span *span = spans; span < spans + number_of_spans; span++)
		json_array_append_new(
		    list,
		    json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:s*, s:o*}", "traceId",
		              span->trace, "spanId", span->id, "name", span->name, "kind",
		              span->server ? KIND_SERVER : KIND_INTERNAL, "startTimeUnixNano",
		              number(span->start), "endTimeUnixNano", number(span->end),
		              "attributes", attributes(span), "parentSpanId",
		              *span->parent ? span->parent : NULL, "status",
		              span->failed ? json_pack("{s:i}", "code", STATUS_ERROR) : NULL));
	request = json_pack("{s:[{s:{s:o}, s:[{s:{s:s}, s:o}]}]}", "resourceSpans", "resource",
	                    "attributes", resource, "scopeSpans", "scope", "name", "convolved",
	                    "spans", list);
	text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	return text;
}

/* ---- requests ---- */

static void drop_posted(void)
{
	oldest = (oldest + posted) % SPANS_KEPT;
	count -= posted;
	posted = 0;
	tries = 0;
	due = count ? now_ms() + (count >= BATCH ? 0 : GATHER_MS) : 0;
}

static void finish(CURLcode result)
{
	uint64_t wait = (uint64_t)RETRY_MS << MIN(tries, 6);
	curl_off_t asked = 0;
	long status = 0;
	bool taken;

	curl_easy_getinfo(transfer, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(multi, transfer);
	under_way = false;
	taken = !result && status / 100 == 2;
	if (taken && told)
		log_notice("the collector takes spans again");
	else if (result && !told)
		log_warning("the collector does not answer: %s",
		            *error ? error : curl_easy_strerror(result));
	else if (!taken && !told)
		log_warning("the collector answers %ld", status);
	told = !taken;
	if (!result && status != 429 && status != 502 && status != 503 && status != 504) {
		lost_spans += taken ? 0 : posted;
		drop_posted();
		return;
	}
	/* The collector may accept the request later (OTLP, failures). */
	curl_easy_getinfo(transfer, CURLINFO_RETRY_AFTER, &asked);
	if (asked > 0)
		wait = (uint64_t)MIN(asked, RETRY_MAX_MS / 1000) * 1000;
	tries++;
	due = now_ms() + MIN(wait, RETRY_MAX_MS);
}

/* Does pending work. Returns the milliseconds during which only transfers are left to do. */
static int work(void)
{
	const uint64_t now = now_ms();
	int running, left;
	CURLMsg *ended;
	char *body;

	if (!under_way && count && (now >= due || (!posted && count >= BATCH))) {
		/* The oldest spans, up to the end of the ring. */
		if (!posted)
			posted = MIN(MIN(count, BATCH), SPANS_KEPT - oldest);
		body = encode(&ring[oldest], posted);
		if (!body || curl_easy_setopt(transfer, CURLOPT_COPYPOSTFIELDS, body)) {
			lost_spans += posted;
			drop_posted();
		} else {
			answered = 0;
			*error = '\0';
			under_way = !curl_multi_add_handle(multi, transfer);
		}
		free(body);
	}
	if (!under_way)
		return count ? (int)(due > now ? due - now : 0) : TIMEOUT_MS;
	curl_multi_perform(multi, &running);
	while ((ended = curl_multi_info_read(multi, &left)))
		if (ended->msg == CURLMSG_DONE)
			finish(ended->data.result);
	return under_way ? TIMEOUT_MS : 0;
}

/* ---- messages ---- */

enum { EXPENDABLE = 1000, FLUSH_MS = 800 };

static enum error start(const char *endpoint)
{
	struct message ready = {.type = MSG_READY};
	int flags = fcntl(WORKER_SOCKET, F_GETFL);
	uint16_t ports[SENDER_PORTS_MAX];
	struct sandbox_access access = {.ports = ports,
	                                .port_count = sender_ports(endpoint, ports)};

	if (flags < 0 || fcntl(WORKER_SOCKET, F_SETFL, flags | O_NONBLOCK) ||
	    sandbox_enter(SANDBOX_TRACE, &access) || sender_init(endpoint))
		return ERR_INTERNAL;
	return wire_send(WORKER_SOCKET, &ready, NULL);
}

/* Receives all waiting spans. Returns false when no more will come. */
static bool receive_spans(void)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	enum wire_result result;

	while ((result = wire_receive(WORKER_SOCKET, &message, fds)) == WIRE_MESSAGE &&
	       message.type == MSG_SPAN) {
		if (count == SPANS_KEPT) {
			lost_spans++;
			continue;
		}
		ring[(oldest + count++) % SPANS_KEPT] = message.span.span;
		if (!due)
			due = now_ms() + GATHER_MS;
	}
	if (result == WIRE_NOTHING || result == WIRE_CLOSED)
		return result == WIRE_NOTHING;
	if (result == WIRE_BROKEN)
		log_error("the front sent an invalid message");
	else
		log_error("cannot continue after the message %s", message_name(message.type));
	exit(1);
}

int main(void)
{
	static struct start how;
	struct message lost = {.type = MSG_SPANS_LOST};
	uint64_t end;
	int ready, wait;

	start_receive("convolved-trace", EXPENDABLE, &how);
	if (start(how.endpoint)) {
		log_error("cannot start: %m");
		return 1;
	}
	for (bool more = true; more;) {
		struct curl_waitfd front = {.fd = WORKER_SOCKET, .events = CURL_WAIT_POLLIN};

		curl_multi_poll(multi, &front, 1, work(), &ready);
		more = !front.revents || receive_spans();
		lost.spans_lost.count = lost_spans;
		lost_spans = 0;
		if (more && lost.spans_lost.count && wire_send(WORKER_SOCKET, &lost, NULL))
			log_debug("the front does not take a message: %m");
	}
	end = now_ms() + FLUSH_MS;
	for (uint64_t now; count && !tries && (now = now_ms()) < end;) {
		due = now;
		wait = work();
		curl_multi_poll(multi, NULL, 0, MIN(wait, (int)(end - now)), &ready);
	}
	return 0;
}
