/* Exchanges: what libmicrohttpd reads of a request goes into a struct request, and its answer comes
 * out again.  The hard part is refusing. A request that is refused is answered at once if the
 * client waits for that (Expect) or has much to send; otherwise a short body is read and dropped
 * first, because some clients do not look at the answer before they have sent everything. */
#include "http/exchange.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "front/api/origin.h"
#include "front/api/refusals.h"
#include "front/api/representation.h"
#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/base/loop.h"
#include "front/base/metrics.h"
#include "front/jobs/unread.h"
#include "http/form.h"
#include "http/headers.h"
#include "http/intake.h"

enum {
	DISCARD_MAX = 8 << 20, /* bytes of a refused body that are read and dropped */
	STREAM_BLOCK = 4 << 10,
};

/* One request and its connection. */
struct exchange {
	struct exchange *next, **link; /* of all exchanges */
	struct request *request;
	struct MHD_Connection *connection;
	struct form *form;        /* the file that its body is, or NULL */
	bool has_image, in_image; /* the reader of its form, if the body is one */
	uint64_t discarded;
	uint64_t heard; /* loop_now() when data last arrived */
	size_t sent;    /* bytes of the current piece of a stream */
	struct unread unread;
	uint64_t acknowledged; /* bytes on the connection when its answer began */
	bool complete;         /* its body */
	bool answered, suspended, gone;
	bool old;     /* HTTP/1.0 */
	bool expects; /* the client waits for permission to send its body */
	bool probed;  /* see stays() */
};

static const struct config *config;
static struct exchange *exchanges;
static unsigned active; /* how many they are */
static struct loop_timer look;
static bool draining, ended;

/* A part of a form begins: the image, or a parameter. */
static enum error begin_part(void *context, const char *name, bool file, struct problem *problem)
{
	struct exchange *x = context;

	/* With curl -F chain=@FILE the parameter has a file name. */
	x->in_image = file ? strcmp(name, "chain") : !strcmp(name, "image");
	if (!x->in_image)
		return request_add_parameter(x->request, name, "", problem);
	if (x->has_image)
		return problem_set_parameter(problem, ERR_BAD_REQUEST, name, "",
		                             "the form has two images; send one per request");
	x->has_image = true;
	return ERR_OK;
}

static enum error take_part(void *context, const char *data, size_t size, struct problem *problem)
{
	struct exchange *x = context;

	return x->in_image ? request_write(x->request, data, size, problem)
	                   : request_extend_parameter(x->request, data, size, problem);
}

static const struct form_calls form_calls = {begin_part, take_part};

static int socket_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* Bytes that a TCP client's system has acknowledged; of others it is not known. */
static uint64_t acknowledged(int socket)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;

	return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) ? 0 : info.tcpi_bytes_acked;
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
	    ->socket_context;
}

/* Resumes a request, which may be suspended, when there is news for it. */
static void exchange_wake(void *context)
{
	struct exchange *x = context;

	if (!x->suspended)
		return;
	x->suspended = false;
	x->heard = loop_now(); /* a suspended connection would notice nothing */
	if (peer_of(x->connection))
		intake_excuse(&peer_of(x->connection)->intake);
	MHD_resume_connection(x->connection);
}

/* Abandons a request that waits for its answer, because the client will not read it. */
static void exchange_abandon(struct exchange *x)
{
	x->gone = true;
	routes_abandon(x->request);
}

static void suspend(struct exchange *x)
{
	x->suspended = true;
	MHD_suspend_connection(x->connection);
}

/* True unless the client is known to have gone. One that has closed its side may still read: TCP
 * says the same of a client that has closed its socket, until it is sent something. So it is sent
 * what says nothing: 100 Continue, of which any number may come before an answer (RFC 9110, 15.2),
 * but not in HTTP/1.0. */
static bool stays(struct exchange *x)
{
	static const char nothing[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct peer *peer = peer_of(x->connection);

	if (!peer || !peer->left)
		return true;
	if (peer->gone || x->old || x->answered)
		return false;
	if (!x->probed && !intake_send(socket_of(x->connection), nothing, sizeof nothing - 1))
		return false;
	x->probed = true;
	return true;
}

/* Suspends the connection until there is news. False: the client has left, or there will be
 * none. */
static bool exchange_suspend(struct exchange *x)
{
	if (ended || !stays(x)) {
		exchange_abandon(x);
		return false;
	}
	suspend(x);
	return true;
}

/* The silence after which libmicrohttpd closes the connection, in seconds; 0: never. */
static void set_timeout(struct MHD_Connection *connection, uint64_t seconds)
{
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)seconds);
}

void exchange_set_timeout(struct MHD_Connection *connection)
{
	set_timeout(connection, config->idle_timeout);
}

static void publish(void)
{
	metric_set(METRIC_REQUESTS, NULL, NULL, active);
}

static struct exchange *exchange_new(const struct listener *listener,
                                     struct MHD_Connection *connection, const char *method,
                                     const char *url)
{
	static const struct sockaddr_storage none;
	struct exchange *x = calloc(1, sizeof *x);
	struct peer *peer = peer_of(connection);
	struct head head;
	enum error e;

	if (!x)
		return NULL;
	x->connection = connection;
	e = headers_read(connection, peer ? &peer->source : &none, config, method, url, &head,
	                 &x->expects);
	head.monitoring = listener->metrics;
	head.loopback = peer && peer->loopback;
	if (e)
		head_fini(&head);
	else
		x->request = request_new(&head);
	if (!x->request) {
		free(x);
		return NULL;
	}
	x->request->waiter.wake = exchange_wake;
	x->request->waiter.context = x;
	x->next = exchanges;
	x->link = &exchanges;
	if (x->next)
		x->next->link = &x->next;
	exchanges = x;
	active++;
	publish();
	x->heard = loop_now();
	set_timeout(connection, 0);
	if (!loop_timer_left(&look))
		loop_timer_start(&look, 1000);
	if (peer) {
		peer->exchange = x;
		peer->served = true;
	}
	return x;
}

static void exchange_free(struct exchange *x)
{
	if (peer_of(x->connection))
		peer_of(x->connection)->exchange = NULL;
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	unread_end(&x->unread);
	form_free(x->form);
	request_free(x->request);
	free(x);
	active--;
	publish();
}

/* Supplies a stream's next bytes; while there are none, the connection is suspended. */
static ssize_t stream_read(void *context, uint64_t position, char *out, size_t room)
{
	struct exchange *x = context;
	struct answer *a = &x->request->answer;
	size_t size;

	(void)position;
	if (x->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (x->sent == a->text_size) {
		answer_piece(a, NULL, 0);
		x->sent = 0;
		if (!x->request->stream(x->request))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (!a->text_size && !exchange_suspend(x))
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	size = a->text_size - x->sent < room ? a->text_size - x->sent : room;
	if (size)
		memcpy(out, a->text + x->sent, size);
	x->sent += size;
	return (ssize_t)size;
}

/* The body of an answer: the kernel sends a file, a text is in memory. */
static struct MHD_Response *make_response(struct exchange *x)
{
	struct answer *a = &x->request->answer;
	struct MHD_Response *response;
	int fd;

	if (x->request->stream)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
		                                         stream_read, x, NULL);
	if (a->file < 0) {
		response = MHD_create_response_from_buffer(a->text_size, a->text ? a->text : "",
		                                           MHD_RESPMEM_MUST_COPY);
		return response;
	}
	fd = fcntl(a->file, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	response = MHD_create_response_from_fd64(a->file_size, fd);
	if (!response)
		close(fd);
	return response;
}

/* The headers of every answer. */
static void complete_headers(struct request *r)
{
	if (!answer_has(&r->answer, "Server-Timing"))
		answer_header(&r->answer, "Server-Timing", "total;dur=%.3f",
		              (double)(loop_now() - r->arrived) * 1e-6);
	answer_header(&r->answer, "X-Request-Id", "%s", r->id);
	representation_protect(&r->answer);
	representation_vary(&r->answer, r->route && !r->route->act);
	origin_mark(r);
}

/* Ends a connection, which the library then notices. */
static void cut(void *context)
{
	struct exchange *x = context;

	shutdown(socket_of(x->connection), SHUT_RDWR);
}

static enum MHD_Result exchange_send(struct exchange *x)
{
	struct request *r = x->request;
	struct answer *a = &r->answer;
	struct MHD_Response *response;
	enum MHD_Result result;

	complete_headers(r);
	representation_revalidate(a, r->head.text[HEAD_IF_NONE_MATCH]);
	representation_compress(a, r->head.text[HEAD_ACCEPT_ENCODING]);
	response = make_response(x);
	if (!response)
		return MHD_NO;
	x->answered = true;
	request_drop_body(r);
	exchange_set_timeout(x->connection);
	if (a->content_type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, a->content_type);
	if (draining)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	for (unsigned i = 0; i < a->headers; i++)
		MHD_add_response_header(response, a->header[i].name, a->header[i].value);
	result = MHD_queue_response(x->connection, (unsigned)a->status, response);
	MHD_destroy_response(response);
	routes_answered(r);
	x->acknowledged = acknowledged(socket_of(x->connection));
	if (a->file >= 0 && a->status != 304)
		unread_begin(&x->unread, r->id, r->terms.client, a->file_size, cut, x);
	return result;
}

/* Sends an answer where libmicrohttpd accepts none, by writing past it, which is possible because
 * nothing else is being sent then. The connection ends with it. */
static void send_past(struct MHD_Connection *connection, const struct answer *answer, bool sending)
{
	struct peer *peer = peer_of(connection);
	int fd = socket_of(connection);
	size_t size = 0;
	char *message =
	    answer_message(answer, MHD_get_reason_phrase_for((unsigned)answer->status), &size);

	if (sending && message) {
		intake_end(&peer->intake, message, size);
	} else {
		if (message && !intake_send(fd, message, size))
			log_debug("http: cannot send the answer %d", answer->status);
		shutdown(fd, SHUT_RD); /* libmicrohttpd sees the end of it, and closes */
	}
	free(message);
}

/* Answers a request while its body is still arriving. sending: the client is in the middle of it.
 */
static void answer_past(struct exchange *x, bool sending)
{
	x->answered = true;
	complete_headers(x->request);
	routes_answered(x->request);
	send_past(x->connection, &x->request->answer, sending);
}

static void refuse(struct MHD_Connection *connection, const char *client, enum error error,
                   const struct problem *problem, bool sending)
{
	struct answer answer;

	answer_init(&answer);
	answer_problem(&answer, error, problem);
	representation_protect(&answer);
	send_past(connection, &answer, sending);
	refusals_note(&(struct refusal){.client = client,
	                                .reason = answer.reason,
	                                .detail = answer.detail,
	                                .status = answer.status});
	answer_fini(&answer);
	peer_of(connection)->refused = true;
}

void exchange_refuse(struct MHD_Connection *connection, const char *client, enum error error,
                     const struct problem *problem)
{
	refuse(connection, client, error, problem, false);
}

/* True if its body is incomplete and no answer has been sent. */
static bool is_receiving(const struct exchange *x)
{
	return !x->complete && !x->answered && !x->suspended && !x->gone;
}

void exchange_break(struct MHD_Connection *connection, const char *client, enum error error,
                    const struct problem *problem)
{
	struct exchange *x = peer_of(connection)->exchange;

	if (!x) {
		refuse(connection, client, error, problem, true);
	} else if (is_receiving(x)) {
		if (!x->request->answer.status)
			answer_problem(&x->request->answer, error, problem);
		answer_past(x, true);
	}
}

/* Answers a request whose body has stopped arriving. libmicrohttpd's own timeout, which would close
 * the connection without an answer, is off while a body arrives. */
static void end_stalled(struct exchange *x)
{
	struct problem problem;

	problem_set(&problem, ERR_BODY_TIMEOUT, "no data for %llu s, and the body is incomplete",
	            (unsigned long long)config->idle_timeout);
	if (!x->request->answer.status) /* else it was only to be sent after the body */
		answer_problem(&x->request->answer, ERR_BODY_TIMEOUT, &problem);
	answer_past(x, false);
}

/* Looks at all requests, at least once a second. */
static void look_around(void *context)
{
	uint64_t now = loop_now(), limit = config->idle_timeout * 1000000000u, next = limit;

	(void)context;
	for (struct exchange *x = exchanges; x; x = x->next) {
		uint64_t left = x->heard + limit > now ? x->heard + limit - now : 0;

		if (x->unread.id)
			unread_report(&x->unread,
			              acknowledged(socket_of(x->connection)) - x->acknowledged);
		if (!is_receiving(x))
			continue;
		next = left && left < next ? left : next;
		if (!left)
			end_stalled(x);
	}
	/* A reload may shorten the time at any moment. */
	if (active)
		loop_timer_start(&look, next / 1000000 < 1000 ? next / 1000000 + 1 : 1000);
}

static void open_form(struct exchange *x)
{
	struct problem problem;
	enum error e =
	    form_new(&x->form, x->request->head.text[HEAD_CONTENT_TYPE], &form_calls, x, &problem);

	if (e)
		answer_problem(&x->request->answer, e, &problem);
}

/* The first call for a request: it has headers but no body yet. */
static enum MHD_Result exchange_begin(struct exchange *x)
{
	struct request *r = x->request;
	uint64_t announced = r->head.announced;
	struct problem problem;
	enum error e = request_read(r, &problem);

	if (e)
		answer_problem(&r->answer, e, &problem);
	else
		routes_begin(r);
	if (e == ERR_CONTENT_CODED)
		answer_header(&r->answer, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
	if (!r->answer.status && r->head.form && r->expected)
		open_form(x);
	if (!r->answer.status)
		return MHD_YES;
	/* A body that is not worth reading: answers now. Without a body it waits for the next call,
	 * because an answer in the first one makes libmicrohttpd close the connection. */
	if ((announced && x->expects) || (announced != UINT64_MAX && announced > DISCARD_MAX))
		return exchange_send(x);
	return MHD_YES;
}

/* A piece of the body. */
static enum MHD_Result exchange_receive(struct exchange *x, const char *data, size_t size)
{
	struct request *r = x->request;
	struct problem problem;
	enum error e;

	x->heard = loop_now();
	if (r->answer.status || !r->expected) {
		x->discarded += size;
		return x->discarded <= DISCARD_MAX ? MHD_YES : MHD_NO;
	}
	e = x->form ? form_read(x->form, data, size, &problem)
	            : request_write(r, data, size, &problem);
	if (e) {
		answer_problem(&r->answer, e, &problem);
		request_drop_body(r); /* the answer may take its time */
	}
	/* More of the body would have to wait in memory. */
	if (!x->suspended && !ended && spool_await(&r->body, exchange_wake, x))
		suspend(x);
	return MHD_YES;
}

static void end_form(struct exchange *x)
{
	struct problem problem;
	enum error e = form_finish(x->form, &problem);

	if (e)
		answer_problem(&x->request->answer, e, &problem);
}

/* The service ends before the request is done. */
static void answer_too_late(struct exchange *x)
{
	struct problem problem;

	problem_set(&problem, ERR_DRAINING,
	            "the service is shutting down, and its drain time is over; send the request "
	            "again");
	answer_problem(&x->request->answer, ERR_DRAINING, &problem);
}

/* The body is complete, or the connection was resumed. */
static enum MHD_Result exchange_finish(struct exchange *x)
{
	struct request *r = x->request;

	if (x->gone)
		return MHD_NO;
	if (x->form && !r->answer.status && !x->complete)
		end_form(x);
	if (ended && !r->answer.status)
		answer_too_late(x);
	if (!r->answer.status && !x->complete)
		routes_finish(r);
	x->complete = true;
	if (!r->answer.status)
		routes_resume(r);
	if (r->answer.status)
		return exchange_send(x);
	return exchange_suspend(x) ? MHD_YES : MHD_NO;
}

enum MHD_Result exchange_handle(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **exchange)
{
	struct exchange *x = *exchange;
	enum MHD_Result result;

	if (!x && peer_of(connection) && peer_of(connection)->refused)
		return MHD_NO;
	if (!x) {
		*exchange = x = exchange_new(context, connection, method, url);
		if (x)
			x->old = !strcmp(version, MHD_HTTP_VERSION_1_0);
		return x ? exchange_begin(x) : MHD_NO;
	}
	if (!*size)
		return exchange_finish(x);
	result = exchange_receive(x, data, *size);
	*size = 0;
	return result;
}

void exchange_completed(void *context, struct MHD_Connection *connection, void **exchange,
                        enum MHD_RequestTerminationCode code)
{
	(void)context, (void)connection, (void)code;
	if (*exchange)
		exchange_free(*exchange);
	*exchange = NULL;
}

void exchange_leave(struct exchange *x)
{
	if (!x->suspended || !x->complete || stays(x))
		return;
	exchange_abandon(x);
	exchange_wake(x);
}

unsigned exchanges_active(void)
{
	return active;
}

void exchanges_drain(void)
{
	draining = true;
}

void exchanges_end(void)
{
	ended = true;
	for (struct exchange *x = exchanges; x; x = x->next) {
		if (x->request->answer.status)
			x->gone = true; /* a stream, which is cut off */
		else if (x->suspended)
			answer_too_late(x);
		exchange_wake(x);
	}
}

enum error exchanges_init(const struct config *c)
{
	config = c;
	return loop_timer_init(&look, look_around, NULL);
}

void exchanges_fini(void)
{
	loop_timer_fini(&look);
}
