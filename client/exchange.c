/* One request: its callbacks, and the meaning of its answer. */
#include "client/exchange.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/place.h"
#include "client/report.h"
#include "client/smprint.h"

enum {
	TEXT_MAX = 64 << 20,
	LOOK_SECONDS = 30,        /* longest silence before immediate answers: all but images */
	HOLD_SECONDS = 50,        /* for a job's end; proxies often wait for 60 s */
	PEER_SECONDS = 60,        /* longest silence elsewhere */
	PEER_TEXT_MAX = 64 << 10, /* kept bytes of a peer's message */
	QUERY_MAX = 8000,    /* bytes; proxies take little more. Longer ones travel as a form */
	NOTICE_SECONDS = 10, /* longer pauses are reported */
};

static size_t read_upload(char *data, size_t size, size_t count, void *context)
{
	struct upload *u = context;
	ssize_t got;

	if (u->sent == u->size)
		return 0;
	got = pread(u->file, data, size * count, u->sent);
	if (got <= 0) {
		u->e->failure = got < 0 ? errno : -1;
		return CURL_READFUNC_ABORT;
	}
	if (got > u->size - u->sent)
		got = (ssize_t)(u->size - u->sent);
	u->sent += got;
	return (size_t)got;
}

static int seek_upload(void *context, curl_off_t offset, int origin)
{
	struct upload *u = context;

	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	u->sent = offset;
	return CURL_SEEKFUNC_OK;
}

static bool is_success(const struct exchange *e)
{
	long status = 0;

	curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

static size_t keep_text(struct exchange *e, const char *data, size_t size)
{
	char *text;

	if (e->peer && !(e->whole && is_success(e)) && size > PEER_TEXT_MAX - e->text_size)
		return 0; /* it is long enough, and may never end */
	text = size <= TEXT_MAX - e->text_size ? realloc(e->text, e->text_size + size + 1) : NULL;

	if (!text) {
		e->failure = EMSGSIZE;
		return 0;
	}
	e->text = text;
	memcpy(text + e->text_size, data, size);
	e->text_size += size;
	text[e->text_size] = '\0';
	return size;
}

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
	struct exchange *e = context;

	size *= count;
	if (!is_success(e) || e->result < 0)
		return keep_text(e, data, size);
	if (e->peer && lseek(e->result, 0, SEEK_CUR) > EXCHANGE_PEER_MAX)
		return 0;
	for (size_t done = 0; done < size;) {
		ssize_t put = write(e->result, data + done, size - done);

		if (put < 0 && errno != EINTR) {
			e->failure = errno;
			return 0;
		}
		done += put > 0 ? (size_t)put : 0;
	}
	return size;
}

static void forget_text(struct exchange *e)
{
	free(e->text);
	e->text = NULL;
	e->text_size = 0;
}

static unsigned silence_allowed(const struct exchange *e, const struct server *server)
{
	unsigned most = e->peer       ? PEER_SECONDS
	                : e->body < 0 ? LOOK_SECONDS + (e->waits ? HOLD_SECONDS : 0)
	                              : server->timeout;

	return most < server->timeout ? most : server->timeout;
}

/* Adds the parameters of a query, unescaped. */
static void add_parameters(struct exchange *e, const char *query)
{
	while (*query) {
		curl_mimepart *part = curl_mime_addpart(e->form);
		size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
		int name_size, value_size = 0;
		char *n = curl_easy_unescape(e->easy, query, (int)name, &name_size);
		char *v = name < size ? curl_easy_unescape(e->easy, query + name + 1,
		                                           (int)(size - name - 1), &value_size)
		                      : NULL;

		if (!n || !part || curl_mime_name(part, n) ||
		    curl_mime_data(part, v ? v : "", (size_t)value_size))
			abort();
		curl_free(n);
		curl_free(v);
		query += size + (query[size] == '&');
	}
}

/* Adds a file, which is read while it is sent. */
static void add_file(struct exchange *e, const char *name, struct upload *upload)
{
	curl_mimepart *part = curl_mime_addpart(e->form);

	if (!part || curl_mime_name(part, name) || curl_mime_filename(part, name) ||
	    curl_mime_type(part, "application/octet-stream") ||
	    curl_mime_data_cb(part, upload->size, read_upload, seek_upload, NULL, upload))
		abort();
}

/* Sends the image as the body, or as a part of a form. The service can refuse parameters of the
 * address before it reads the body. */
static void prepare_post(struct exchange *e, const struct server *server)
{
	size_t path = strcspn(e->target, "?#"), size = strcspn(e->target + path, "#");
	char *bare, *query;

	if (size <= QUERY_MAX && !e->mask) {
		curl_easy_setopt(e->easy, CURLOPT_POST, 1L);
		curl_easy_setopt(e->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)e->size);
		return;
	}
	e->form = curl_mime_init(e->easy);
	if (size > QUERY_MAX) {
		bare = strndup(e->target, path);
		query = strndup(e->target + path + 1, size - 1);
		if (!bare || !query)
			abort();
		server_prepare(server, e->easy, bare);
		add_parameters(e, query);
		free(bare);
		free(query);
	}
	add_file(e, "image", &e->body_upload);
	if (e->mask)
		add_file(e, "mask", &e->mask_upload);
	curl_easy_setopt(e->easy, CURLOPT_MIMEPOST, e->form);
}

/* Asks the service to answer when the job has ended, or before it would seem to be silent. */
static void prepare_wait(struct exchange *e, const struct server *server)
{
	unsigned seconds = server->timeout / 2 < HOLD_SECONDS ? server->timeout / 2 : HOLD_SECONDS;
	char *target = NULL;

	if (asprintf(&target, "%s?wait=%u", e->target, seconds) < 0)
		abort();
	server_prepare(server, e->easy, target);
	free(target);
}

static void forget_form(struct exchange *e)
{
	curl_mime_free(e->form);
	e->form = NULL;
}

static void forget_heads(struct exchange *e)
{
	curl_slist_free_all(e->own_heads);
	e->own_heads = NULL;
}

void exchange_prepare(struct exchange *e, const struct server *server)
{
	if (!e->easy && !(e->easy = curl_easy_init()))
		abort();
	curl_easy_reset(e->easy);
	forget_form(e);
	forget_heads(e);
	forget_text(e);
	e->body_upload = (struct upload){e, e->body, e->size, 0};
	if (e->mask)
		e->mask_upload = (struct upload){e, e->mask->copy, e->mask->size, 0};
	e->failure = 0;
	e->due = 0;
	*e->detail = '\0';
	if (e->result >= 0 && (ftruncate(e->result, 0) || lseek(e->result, 0, SEEK_SET)))
		e->failure = errno;
	server_prepare_any(e->easy);
	if (e->peer) {
		e->peer->prepare(e);
		curl_easy_setopt(e->easy, CURLOPT_MAXFILESIZE_LARGE, EXCHANGE_PEER_MAX);
	} else if (e->waits) {
		prepare_wait(e, server);
	} else {
		server_prepare(server, e->easy, e->target);
	}
	curl_easy_setopt(e->easy, CURLOPT_CUSTOMREQUEST, e->method);
	curl_easy_setopt(e->easy, CURLOPT_HTTPHEADER, e->own_heads ? e->own_heads : e->heads);
	curl_easy_setopt(e->easy, CURLOPT_PRIVATE, e);
	curl_easy_setopt(e->easy, CURLOPT_ERRORBUFFER, e->detail);
	curl_easy_setopt(e->easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(e->easy, CURLOPT_WRITEDATA, e);
	curl_easy_setopt(e->easy, CURLOPT_BUFFERSIZE, 128L << 10);
	curl_easy_setopt(e->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(e->easy, CURLOPT_LOW_SPEED_TIME, (long)silence_allowed(e, server));
	if (e->body < 0)
		return;
	if (e->peer) {
		curl_easy_setopt(e->easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(e->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)e->size);
	} else {
		prepare_post(e, server);
	}
	curl_easy_setopt(e->easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
	if (e->form)
		return;
	curl_easy_setopt(e->easy, CURLOPT_READFUNCTION, read_upload);
	curl_easy_setopt(e->easy, CURLOPT_READDATA, &e->body_upload);
	curl_easy_setopt(e->easy, CURLOPT_SEEKFUNCTION, seek_upload);
	curl_easy_setopt(e->easy, CURLOPT_SEEKDATA, &e->body_upload);
}

void exchange_say(struct exchange *e, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = vsmprint(format, args);
	va_end(args);
	forget_text(e);
	e->text = text;
	e->text_size = strlen(text);
}

void exchange_say_address(struct exchange *e, const char *format, const char *address)
{
	char *shown = place_shown(address);
	const char *place = strstr(format, "%s");

	exchange_say(e, "%.*s%s%s", (int)(place - format), format, shown, place + 2);
	free(shown);
}

const char *exchange_header(const struct exchange *e, const char *name)
{
	struct curl_header *found;

	return curl_easy_header(e->easy, name, 0, CURLH_HEADER, -1, &found) ? NULL : found->value;
}

static const char *member(const json_t *problem, const char *name)
{
	const char *text = json_string_value(json_object_get(problem, name));

	return text ? text : "";
}

/* Tells whether the answer has the times of a job. */
static bool is_of_job(const struct exchange *e)
{
	const char *times = exchange_header(e, "Server-Timing");

	return times && strstr(times, "queue;");
}

/* Tells whether the awaited job is open. */
static bool is_job_open(const struct exchange *e)
{
	json_t *job =
	    e->status == 200 && e->result < 0 && e->text ? json_loads(e->text, 0, NULL) : NULL;
	const char *state = member(job, "state");
	bool open = e->status == 409 || !strcmp(state, "waiting") || !strcmp(state, "running");

	json_decref(job);
	return open;
}

/* Tells whether every image would be refused. A parameter may also be wrong for this image alone;
 * a mask may only be too large for it. */
static bool is_request_wrong(const struct exchange *e, const json_t *problem, long status)
{
	const char *type = member(problem, "type");

	if (status / 100 == 4 && !strcmp(member(problem, "parameter"), "mask"))
		return strcmp(type, "/problems/too-many-pixels") != 0;
	if (status == 404)
		return !strcmp(type, "/problems/unknown-filter") ||
		       !strcmp(type, "/problems/unknown-preset");
	return status == 400 && !strcmp(type, "/problems/bad-parameter") && !is_of_job(e) &&
	       !(e->own_format && !strcmp(member(problem, "parameter"), "format"));
}

/* Adds the ID by which the operator finds the request in the log. */
static void append(struct exchange *e, const char *request)
{
	char *text = e->text;

	e->text = NULL;
	exchange_say(e, "%s (request %.80s)", text, request);
	free(text);
}

/* Tells whether a status refuses every image. */
static bool for_all(long status)
{
	return status / 100 == 3 || status == 401 || status == 403 || status == 404 ||
	       status == 405;
}

/* Judges a problem document, and makes it a sentence. The detail of a parameter's problem names the
 * parameter; any other detail needs the title before it. */
static void say_problem(struct exchange *e, const struct server *server, long status)
{
	json_t *problem = e->text ? json_loads(e->text, 0, NULL) : NULL;
	const char *type = json_string_value(json_object_get(problem, "type"));
	const char *title = json_string_value(json_object_get(problem, "title"));
	const char *detail = json_string_value(json_object_get(problem, "detail"));
	const char *parameter = json_string_value(json_object_get(problem, "parameter"));
	const char *value = json_string_value(json_object_get(problem, "value"));
	bool alone = detail && type && !strcmp(type, "/problems/bad-parameter");
	const char *elsewhere = NULL, *request = exchange_header(e, "X-Request-Id");

	e->wrong = is_request_wrong(e, problem, status);
	e->outcome = for_all(status) ? OUTCOME_REFUSED : OUTCOME_FAILED;
	if (e->waits && (status == 404 || is_of_job(e)))
		e->outcome = status == 404 || status == 503 ? OUTCOME_GONE : OUTCOME_ENDED;
	else if (e->wrong)
		e->outcome = OUTCOME_WRONG;
	/* It is not followed, as the token would go to another host. */
	curl_easy_getinfo(e->easy, CURLINFO_REDIRECT_URL, &elsewhere);
	if (elsewhere)
		exchange_say_address(
		    e, "the service redirects to %s: give that address if you trust it", elsewhere);
	else if (status == 401)
		exchange_say(e, "%s: %s%s", title ? title : "the service asks for a token",
		             server->token_file
		                 ? "it does not accept the one in "
		                 : "give a file with one by --token-file or $CONVOLVED_TOKEN_FILE",
		             server->token_file ? server->token_file : "");
	else if (!title && !detail)
		exchange_say(e, "status %ld, not from a convolved: %.80s", status,
		             e->text ? e->text : "");
	else
		exchange_say(e, "%s%s%s%s%s%s%s%s", alone || !title ? "" : title,
		             alone || !title || !detail ? "" : ": ", detail ? detail : "",
		             parameter ? " (" : "", parameter ? parameter : "",
		             parameter && value && *value ? "=" : "",
		             parameter && value ? value : "", parameter ? ")" : "");
	json_decref(problem);
	if (status >= 500 && request)
		append(e, request);
}

/* Tells whether an answer of the service, or of a proxy while a job is awaited, may be better next
 * time. */
static bool is_passing(const struct exchange *e)
{
	if (e->waits && is_of_job(e))
		return false;
	return e->status == 429 || e->status == 503 ||
	       (e->waits && (e->status == 502 || e->status == 504));
}

/* Tells whether it timed out after the connection was made. */
static bool fell_silent(const struct exchange *e, CURLcode code)
{
	curl_off_t connected = 0;

	curl_easy_getinfo(e->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
	return code == CURLE_OPERATION_TIMEDOUT && connected > 0;
}

/* Returns the seconds until the next attempt; negative if none is worth it. A request changes
 * nothing at the service, or has a key, so a broken one may be sent again. */
static double pause_before_next(const struct exchange *e, const struct server *server,
                                CURLcode code)
{
	unsigned doubled = e->attempts < 6 ? e->attempts : 6;
	double backoff = 0.1 * (double)(1u << doubled);
	curl_off_t asked = 0;

	if (e->failure || (fell_silent(e, code) && !e->peer && !e->waits))
		return -1;
	switch (code) {
	case CURLE_OK:
		if (!(e->peer ? e->peer->is_passing(e) : is_passing(e)))
			return -1;
		curl_easy_getinfo(e->easy, CURLINFO_RETRY_AFTER, &asked);
		/* A peer that does not ask for a time gets up to 13 s. */
		if (asked > server->timeout)
			asked = server->timeout;
		return asked > 0 ? (double)asked : e->peer ? 2 * backoff : 1;
	case CURLE_COULDNT_CONNECT:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return backoff < 1 ? backoff : 1;
	default:
		return -1;
	}
}

/* Returns the length of an address up to its path. */
static size_t origin_size(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : strlen(url);
}

/* Returns why there is no answer. */
static void judge_failure(struct exchange *e, const struct server *server, CURLcode code)
{
	const char *why = *e->detail ? e->detail : curl_easy_strerror(code);
	const char *address = NULL;
	char *shown;
	long number = 0;

	curl_easy_getinfo(e->easy, CURLINFO_OS_ERRNO, &number);
	if (code == CURLE_COULDNT_CONNECT && number > 0)
		why = strerror((int)number);
	e->outcome = OUTCOME_FAILED;
	if (e->failure < 0)
		exchange_say(e, "the file became shorter while it was read");
	else if (e->failure)
		exchange_say(e, "%s: %s",
		             code == CURLE_ABORTED_BY_CALLBACK ? "cannot read the file"
		             : e->peer                         ? "cannot keep a copy"
		                                               : "cannot store the result",
		             strerror(e->failure));
	else if (code == CURLE_FILESIZE_EXCEEDED || code == CURLE_WRITE_ERROR)
		exchange_say(e, "it is too large: the maximum is 5 GiB");
	else if (code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE ||
	         code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR)
		exchange_say(e, "the connection broke off: %s", why);
	else if (e->peer) {
		e->outcome = e->peer->unreachable;
		curl_easy_getinfo(e->easy, CURLINFO_EFFECTIVE_URL, &address);
		shown = place_shown(address ? address : e->target);
		exchange_say(e, "%s at %.*s %s: %s", e->peer->name, (int)origin_size(shown), shown,
		             fell_silent(e, code) ? "fell silent" : "cannot be reached", why);
		free(shown);
	} else {
		/* Ends the batch: attempts with a hung service would take hours. */
		e->outcome = OUTCOME_UNREACHABLE;
		exchange_say(
		    e, "%s %s: %s", server->shown,
		    fell_silent(e, code) ? "timed out (see --timeout)" : "cannot be reached", why);
	}
}

bool exchange_has_end(const struct exchange *e)
{
	curl_off_t length = -1;
	long version = 0;

	curl_easy_getinfo(e->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	curl_easy_getinfo(e->easy, CURLINFO_HTTP_VERSION, &version);
	return length >= 0 || version >= CURL_HTTP_VERSION_2_0 ||
	       exchange_header(e, "Transfer-Encoding");
}

/* Judges a 200 whose body should be a result: only an image from a convolved is one, not a page of
 * another server. */
static void judge_result(struct exchange *e, const struct server *server)
{
	const char *type = exchange_header(e, "Content-Type");
	curl_off_t size = 0;

	curl_easy_getinfo(e->easy, CURLINFO_SIZE_DOWNLOAD_T, &size);
	e->outcome = OUTCOME_REFUSED;
	if (!type || !exchange_header(e, "X-Image") ||
	    (strncasecmp(type, "image/", 6) && strcasecmp(type, "application/octet-stream")))
		exchange_say(
		    e, "the answer is not an image (its type is %s): is there a convolved at %s?",
		    type ? type : "not given", server->shown);
	else if (!size || !exchange_has_end(e)) {
		e->outcome = OUTCOME_FAILED;
		exchange_say(e, size ? "the result may be cut short: its end is not marked"
		                     : "the result is empty");
	} else
		e->outcome = OUTCOME_DONE;
}

/* Attempts are spread a little: requests refused together would come back together. One line
 * announces a long pause, for all that wait together. */
static void postpone(struct exchange *e, CURLcode code, double seconds)
{
	static double told;
	const char *who = e->peer ? e->peer->name : "the service";

	e->attempts++;
	e->due = report_now() + seconds * (1 + 0.2 * (double)random() / RAND_MAX);
	if (seconds >= NOTICE_SECONDS && report_now() >= told) {
		report_remark("%s is busy, trying again in %.0f s", who, seconds);
		told = e->due;
	} else if (code)
		report_waiting("cannot reach %s, trying again", who);
	else
		report_waiting("%s is busy, trying again in %.0f s", who, seconds);
}

void exchange_judge(struct exchange *e, const struct server *server, CURLcode code)
{
	curl_off_t taken = 0;
	double pause;

	curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &e->status);
	if (code == CURLE_WRITE_ERROR && e->peer && !e->failure &&
	    (e->status != 200 || (e->result < 0 && !e->whole)))
		code = CURLE_OK; /* keep_text() had enough */
	if (!code && e->waits && is_job_open(e)) {
		/* A proxy may have answered at once. */
		curl_easy_getinfo(e->easy, CURLINFO_TOTAL_TIME_T, &taken);
		e->attempts = 0;
		e->due = report_now() + (taken < 1000000 ? 1 : 0);
		return;
	}
	if (!code && e->peer && e->peer->correct && e->peer->correct(e)) {
		e->due = report_now();
		return;
	}
	pause = pause_before_next(e, server, code);
	if (pause >= 0 && e->attempts < server->retries) {
		postpone(e, code, pause);
	} else if (code) {
		judge_failure(e, server, code);
	} else if (e->peer) {
		e->peer->judge(e);
	} else if (e->status == 200 && e->result >= 0) {
		judge_result(e, server);
	} else if (e->status == 200 || e->status == e->accepted) {
		e->outcome = OUTCOME_DONE;
	} else {
		say_problem(e, server, e->status);
	}
}

void exchange_renew(struct exchange *e)
{
	forget_text(e);
	e->outcome = OUTCOME_NONE;
	e->attempts = e->corrections = 0;
	e->due = 0;
}

void exchange_fini(struct exchange *e)
{
	curl_easy_cleanup(e->easy);
	e->easy = NULL;
	forget_form(e);
	forget_heads(e);
	forget_text(e);
}
