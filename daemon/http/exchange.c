/* Exchanges: requests as libmicrohttpd reads them go to the service, and the answers come out
 * again. The hard part is refusing: at once if the client waits for it (Expect) or has much to
 * send; else after a short body is dropped, as some clients send all before they look. */
#include "http/exchange.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memfd.h"
#include "http/form.h"
#include "http/headers.h"

enum {
	DISCARD_MAX = 8 << 20, /* bytes of a refused body that are read and dropped */
	STREAM_BLOCK = 4 << 10,
	FILE_BLOCK = 64 << 10, /* for a file that goes through TLS */
};

/* One request and its connection; or the refusal of a connection. */
struct exchange {
	struct service_request request;
	struct peer *peer;
	struct form *form; /* the reader of its body, once a part of a form has come */
	bool in_image, has_image, has_mask; /* the current part is one of both; the form has them */
	struct head_writer parameters;      /* the form's others */
	size_t parameter;                   /* start of the last one */
	const struct answer *answer;        /* once it is being sent; the request's */
	/* bytes of its body, including a form's parts around the image */
	uint64_t taken, discarded;
	size_t sent;   /* bytes of the current piece of a stream */
	uint64_t read; /* bytes that the client had taken when its answer began */
	bool past;     /* the answer is written past the library when it comes */
	bool refusal;  /* the library knows of no request */
	bool begun;    /* the library goes on to the body */
	bool complete; /* its body */
	bool suspended, gone;
	bool old;     /* HTTP/1.0 */
	bool expects; /* the client waits for permission to send its body */
	bool probed;  /* see stays() */
};

_Static_assert(HEAD_FORM_MAX >= HEAD_PARAMETERS_MAX * (HEAD_VALUE_MAX + (int)FORM_HEADER_MAX),
               "the front takes the parameters of every form");

static bool draining;

static enum error check_memory(const struct exchange *x, struct problem *problem)
{
	return x->parameters.failed ? no_memory(problem, "for the parameters") : ERR_OK;
}

/* A file's part is the image, unless it is the mask, or a parameter as by curl -F chain=@FILE. */
static enum error begin_part(void *context, const char *name, bool file, struct problem *problem)
{
	struct exchange *x = context;
	const bool mask = !strcmp(name, "mask");
	char place[24];

	x->in_image = mask || (file ? strcmp(name, "chain") : !strcmp(name, "image"));
	if (mask ? x->has_mask || !x->request.body_size : x->in_image && x->has_image)
		return problem_set_parameter(problem, ERR_BAD_REQUEST, name, "",
		                             mask
		                                 ? "expected one mask, behind the image"
		                                 : "the form has two images; send one per request");
	snprintf(place, sizeof place, "%" PRIu64, x->request.body_size);
	if (mask)
		head_add(&x->parameters, HEAD_MASK, place);
	x->has_mask |= mask;
	x->has_image |= x->in_image;
	if (x->in_image)
		return check_memory(x, problem);
	if (x->request.head.parameters++ >= HEAD_PARAMETERS_MAX)
		return problem_set(problem, ERR_BAD_REQUEST, "a request has at most %d parameters",
		                   HEAD_PARAMETERS_MAX);
	x->parameter = x->parameters.size;
	head_add(&x->parameters, HEAD_NAME, name);
	head_add(&x->parameters, HEAD_VALUE, "");
	return check_memory(x, problem);
}

static enum error take_part(void *context, const char *data, size_t size, struct problem *problem)
{
	struct exchange *x = context;
	const char *name, *value;
	size_t length;

	if (x->in_image)
		return service_write(&x->request, data, size, problem);
	name = x->parameters.data + x->parameter + 1;
	value = name + strlen(name) + 2;
	length = (size_t)(x->parameters.data + x->parameters.size - 1 - value); /* so far */
	if (size > HEAD_VALUE_MAX - length)
		return bad_parameter(problem, name, "", "a parameter has at most %d bytes",
		                     HEAD_VALUE_MAX);
	if (memchr(data, '\0', size))
		return bad_parameter(problem, name, value, "expected text without NUL");
	head_extend(&x->parameters, data, size);
	return check_memory(x, problem);
}

static const struct form_calls form_calls = {.begin = begin_part, .data = take_part};

static void answer_past(struct exchange *x);

/* Handles news for a request. The refusal of a connection may end in it. */
static void exchange_wake(void *context)
{
	struct exchange *x = context;

	if (x->past && !x->answer) {
		answer_past(x);
		return;
	}
	if (!x->suspended)
		return;
	x->suspended = false;
	intake_excuse(&x->peer->intake); /* a suspended connection would notice nothing */
	MHD_resume_connection(x->peer->connection);
}

/* Ends a connection, which the library then notices. */
static void exchange_cut(void *context)
{
	const struct exchange *x = context;

	shutdown(x->peer->intake.fd, SHUT_RDWR);
}

/* The library may pass on one more piece that it has. */
static void suspend(struct exchange *x)
{
	if (!x->suspended)
		MHD_suspend_connection(x->peer->connection);
	x->suspended = true;
}

/* Returns true unless the client is known to have gone. A client that has closed its side may still
 * read, and TCP shows the difference only once something is sent. So it is sent 100 Continue, which
 * may come any number of times before an answer (RFC 9110, 15.2), but not in HTTP/1.0. */
static bool stays(struct exchange *x)
{
	static const char nothing[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct peer *peer = x->peer;

	if (!peer->left)
		return true;
	if (peer->gone || x->old || x->answer)
		return false;
	if (!x->probed && !intake_send(&peer->intake, nothing, sizeof nothing - 1))
		return false;
	x->probed = true;
	return true;
}

/* Suspends the connection until there is news. False: the client has left; the request must end. */
static bool exchange_suspend(struct exchange *x)
{
	x->gone = !stays(x);
	if (!x->gone)
		suspend(x);
	return !x->gone;
}

void exchange_set_timeout(struct MHD_Connection *connection)
{
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
	                          (unsigned)limits.idle_timeout);
}

void exchange_free(struct exchange *x)
{
	if (!x)
		return;
	x->peer->exchange = NULL;
	form_free(x->form);
	free(x->parameters.data);
	service_end(&x->request);
	free(x);
}

static struct exchange *exchange_new(struct peer *peer, const char *method, const char *url)
{
	struct exchange *x = calloc(1, sizeof *x);
	enum error e;

	if (!x)
		return NULL;
	x->peer = peer;
	e = headers_read(peer->connection, peer->name, peer->address, method, url, &x->request.head,
	                 &x->expects);
	x->request.head.monitoring = peer->monitoring;
	x->request.head.loopback = peer->loopback;
	if (e || !service_begin(&x->request, &peer->guest, x)) {
		exchange_free(x);
		return NULL;
	}
	/* check_arrival() of intake.c gives an answer, which the library would not. */
	MHD_set_connection_option(peer->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	peer->exchange = x;
	return x;
}

/* Supplies a stream's next bytes; while there are none, the connection is suspended. */
static ssize_t stream_read(void *context, uint64_t, char *out, size_t room)
{
	struct exchange *x = context;
	const struct answer *a = x->answer;
	size_t size;

	if (x->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (x->sent == a->text_size) {
		x->sent = 0;
		if (!service_piece(&x->request))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (!a->text_size && !exchange_suspend(x))
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	size = MIN(a->text_size - x->sent, room);
	if (size)
		memcpy(out, a->text + x->sent, size);
	x->sent += size;
	return (ssize_t)size;
}

static ssize_t file_read(void *context, uint64_t position, char *out, size_t room)
{
	const struct exchange *x = context;
	ssize_t size = pread(x->answer->file, out, room, (off_t)position);

	return size > 0 ? size : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* The kernel sends files, but not through TLS, for which the library would read 4 KiB at a time. */
static struct MHD_Response *make_response(struct exchange *x)
{
	const struct answer *a = x->answer;
	struct MHD_Response *response;
	int fd;

	if (x->request.streams)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
		                                         stream_read, x, NULL);
	if (a->file < 0 && !a->file_size)
		return MHD_create_response_from_buffer(a->text_size, a->text ? a->text : "",
		                                       MHD_RESPMEM_MUST_COPY);
	if (a->file < 0 || x->peer->intake.tls) /* without a file, 304 only says its size */
		return MHD_create_response_from_callback(a->file_size, FILE_BLOCK, file_read, x,
		                                         NULL);
	fd = fcntl(a->file, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	response = MHD_create_response_from_fd64(a->file_size, fd);
	if (!response)
		close(fd);
	return response;
}

static enum MHD_Result exchange_send(struct exchange *x)
{
	const struct answer *a = &x->request.answer;
	struct MHD_Response *response;
	enum MHD_Result result;

	x->read = intake_read(&x->peer->intake);
	x->answer = a;
	response = make_response(x);
	if (!response)
		return MHD_NO;
	exchange_set_timeout(x->peer->connection);
	if (draining || x->peer->refused)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	for (unsigned i = 0; i < a->headers; i++)
		MHD_add_response_header(response, a->header[i].name, a->header[i].value);
	result = MHD_queue_response(x->peer->connection, (unsigned)a->status, response);
	MHD_destroy_response(response);
	return result;
}

/* Returns the answer as bytes of HTTP/1.1, which the caller frees; NULL without memory. */
static char *write_message(const struct answer *answer, bool bodiless, size_t *size)
{
	char *text = NULL;
	const char *reason = MHD_get_reason_phrase_for((unsigned)answer->status);
	FILE *out = open_memstream(&text, size);

	if (!out)
		return NULL;
	fprintf(out, "HTTP/1.1 %d %s\r\nConnection: close\r\n", answer->status, reason);
	for (unsigned i = 0; i < answer->headers; i++)
		fprintf(out, "%s: %s\r\n", answer->header[i].name, answer->header[i].value);
	fprintf(out, "Content-Length: %" PRIu64 "\r\n\r\n",
	        answer->file >= 0 ? answer->file_size : answer->text_size);
	if (answer->text && !bodiless)
		fwrite(answer->text, 1, answer->text_size, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static bool is_bodiless(const struct exchange *x)
{
	const char *method = x->request.head.text[HEAD_METHOD];

	return x->request.answer.status == MHD_HTTP_NOT_MODIFIED ||
	       (method && !strcmp(method, "HEAD"));
}

/* Answers where the library accepts no answer, by writing past it while nothing else is being sent:
 * at once, or when there is an answer. The connection ends with it. */
static void answer_past(struct exchange *x)
{
	size_t size = 0;
	char *message;

	x->past = true;
	if (!x->request.answered)
		return;
	/* An answer that is too large to be written at once becomes an error: it has come before
	 * the end of a body on which it does not depend. */
	if (x->request.streams || (x->request.answer.file >= 0 && !is_bodiless(x))) {
		const bool endless = x->discarded > DISCARD_MAX;
		char client[HEAD_CLIENT_SIZE];
		struct problem problem;
		enum error e =
		    problem_set(&problem, endless ? ERR_BODY_TOO_LARGE : ERR_BAD_REQUEST,
		                "%s; send this request without a body",
		                endless ? "the body has more than 8 MB, and is not wanted"
		                        : "the body is incomplete or malformed");

		strcpy(client, x->request.head.text[HEAD_CLIENT]);
		service_end(&x->request);
		service_refuse(&x->request, client, e, &problem, x);
		return;
	}
	x->answer = &x->request.answer;
	message = write_message(x->answer, is_bodiless(x), &size);
	intake_end(&x->peer->intake, message ? message : "", size);
	free(message);
	if (x->refusal)
		exchange_free(x);
}

/* Refuses a connection on which no request is under way. Nothing is read from it any more. */
static void refuse(struct peer *peer, enum error error, const struct problem *problem)
{
	struct exchange *x;

	if (peer->refused)
		return;
	peer->refused = true;
	intake_hold(&peer->intake);
	x = calloc(1, sizeof *x);
	if (!x) {
		shutdown(peer->intake.fd, SHUT_RDWR);
		return;
	}
	x->peer = peer;
	x->refusal = true;
	service_refuse(&x->request, peer->name, error, problem, x);
	peer->exchange = x;
	answer_past(x);
}

/* Answers an earlier request with the refusal. */
static void exchange_refuse(void *context, enum error error, const struct problem *problem)
{
	struct peer *peer = context;
	struct exchange *x = peer->exchange;

	if (!x) {
		refuse(peer, error, problem);
		return;
	}
	peer->refused = true;
	service_fail(&x->request, error, problem);
	exchange_wake(x);
}

void exchange_break(void *context, enum error error, const struct problem *problem)
{
	struct peer *peer = context;
	struct exchange *x = peer->exchange;

	if (!x) {
		refuse(peer, error, problem);
	} else if (!x->complete && !x->answer && !x->past && !x->suspended && !x->gone) {
		service_fail(&x->request, error, problem);
		answer_past(x);
	}
}

void exchange_look(void *context)
{
	const struct peer *peer = context;
	const struct exchange *x = peer->exchange;

	if (x && x->answer)
		service_read(&x->request, intake_read(&peer->intake) - x->read);
}

/* The first call for a request, which has no body yet, and its repetition after a wait. Only here
 * can a refusal come before the body. Without a body the answer waits for the next call, because an
 * answer in the first call makes libmicrohttpd close the connection. */
static enum MHD_Result exchange_begin(struct exchange *x)
{
	/* Refuses instead of waiting for a large body, which then need not be sent. */
	uint64_t size = x->request.head.announced;
	bool asks = (size && x->expects) || (size != UINT64_MAX && size > DISCARD_MAX);

	if (x->gone)
		return MHD_NO;
	if (asks && x->request.answered)
		return exchange_send(x);
	x->begun = x->request.decided || !asks;
	if (!x->begun) {
		service_decide(&x->request);
		suspend(x);
	}
	return MHD_YES;
}

/* Makes the reader of a form, at its first piece or its end. */
static enum error open_form(struct exchange *x, struct problem *problem)
{
	const struct head *head = &x->request.head;

	if (!head->form || !head->announced || x->form)
		return ERR_OK;
	return form_new(&x->form, head->text[HEAD_CONTENT_TYPE], &form_calls, x, problem);
}

/* Receives a piece of the body. Returns the size of its rest, which the library must pass on again
 * when there is news. */
static size_t exchange_receive(struct exchange *x, const char *data, size_t size)
{
	const struct head *head = &x->request.head;
	struct problem problem;
	enum error e;
	int fd;

	/* Passes on a body that has come in one piece with its request. */
	if (!x->request.decided && !head->form && head->announced == size &&
	    size <= LINK_WHOLE_MAX && size <= limits.spool_size &&
	    service_wants_body(&x->request) && !memfd_sealed("body", data, size, &fd)) {
		x->complete = service_take(&x->request, fd, size);
		close(fd);
		if (x->complete)
			return 0;
	}
	service_decide(&x->request);
	if (!service_wants_body(&x->request)) {
		x->discarded += size;
	} else if (!service_has_room(&x->request, x->taken + size)) {
		suspend(x);
		return size;
	} else {
		e = open_form(x, &problem);
		if (!e)
			e = x->form ? form_read(x->form, data, size, &problem)
			            : service_write(&x->request, data, size, &problem);
		if (e)
			service_fail(&x->request, e, &problem);
		x->taken += size;
	}
	if (!service_wants_body(&x->request))
		exchange_wake(x); /* nothing else may do it any more */
	else if (service_writes(&x->request))
		suspend(x);
	if (x->discarded > DISCARD_MAX && !x->answer)
		answer_past(x);
	return 0;
}

static void complete(struct exchange *x)
{
	struct problem problem;
	enum error e = ERR_OK;

	if (service_wants_body(&x->request)) {
		e = open_form(x, &problem);
		if (!e && x->form)
			e = form_finish(x->form, &problem);
	}
	if (e)
		service_fail(&x->request, e, &problem);
	service_finish(&x->request, &x->parameters);
	x->complete = true;
}

enum MHD_Result exchange_handle(void *, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **exchange)
{
	struct exchange *x = *exchange;

	if (!x) {
		struct peer *peer =
		    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		        ->socket_context;

		*exchange = x = peer && !peer->refused ? exchange_new(peer, method, url) : NULL;
		if (!x)
			return MHD_NO;
		x->old = !strcmp(version, MHD_HTTP_VERSION_1_0);
	}
	if (!x->begun)
		return exchange_begin(x);
	if (*size) {
		*size = exchange_receive(x, data, *size);
		return MHD_YES;
	}
	/* The body is complete, or the connection was resumed. An answer that was to be written
	 * past the library comes in time for the library itself. */
	if (x->gone || (x->past && x->answer))
		return MHD_NO;
	x->past = false;
	if (!x->complete && (x->request.decided || !x->request.head.announced))
		complete(x);
	if (x->request.answered)
		return exchange_send(x);
	return exchange_suspend(x) ? MHD_YES : MHD_NO;
}

void exchange_leave(struct exchange *x)
{
	if (!x->suspended || !x->complete || stays(x))
		return;
	x->gone = true;
	exchange_wake(x); /* to its end */
}

void exchanges_drain(void)
{
	draining = true;
}

const struct connection_calls exchange_calls = {
    .crowded = exchange_refuse, .wake = exchange_wake, .cut = exchange_cut};
