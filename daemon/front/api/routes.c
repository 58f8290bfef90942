/* The routes: method, path and handler; a path's part in braces is the request's argument. */
#include "front/api/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "base/text.h"
#include "front/api/accept.h"
#include "front/api/async.h"
#include "front/api/catalogue.h"
#include "front/api/gauges.h"
#include "front/api/origin.h"
#include "front/api/outcome.h"
#include "front/api/presets.h"
#include "front/api/representation.h"
#include "front/api/tokens.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/workers/canary.h"
#include "front/workers/device_table.h"
#include "front/workers/repertoire.h"
#include "front/workers/scheduler.h"
#include "front/workers/tracer.h"

/* A page loads only resources of this service, runs no inline scripts, is shown in no other page,
 * and sends nothing elsewhere. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* Bytes of the heads of all requests that have begun and have not ended. */
enum { HEADS_MAX = 256 << 20 };

static bool draining;

void routes_drain(void)
{
	draining = true;
	store_leave();
}

static bool is_ready(void)
{
	return devices_up() > 0 && canary_is_fresh() && !draining;
}

static void get_metrics(struct request *r)
{
	static const char *const types[] = {
	    [METRICS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	    [METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	};
	const enum metrics_format format = accept_openmetrics(r->head.text[HEAD_ACCEPT])
	                                       ? METRICS_OPENMETRICS
	                                       : METRICS_PROMETHEUS;
	size_t size = 0;
	char *text;

	gauges_update(is_ready());
	text = metrics_text(format, &size);
	answer_text(&r->answer, 200, types[format], text, size);
}

static void get_livez(struct request *r)
{
	answer_text(&r->answer, 200, "text/plain; charset=utf-8", strdup("ok\n"), 3);
}

/* One line for each condition: "+" holds, "-" does not; the short answer is only ok or not.
 * Programs being compiled are no condition. */
static void get_readyz(struct request *r)
{
	uint32_t built, pending;
	bool device = devices_up() > 0, image = canary_is_fresh();
	bool verbose = r->head.parameters && !strcmp(r->head.parameter[0].name, "verbose");
	bool ready = is_ready();
	char *text = NULL;

	devices_count_programs(&built, &pending);
	if (!verbose)
		text = strdup(ready ? "ready\n" : "not ready\n");
	else if (asprintf(&text,
	                  "%c devices: %u of %u up\n"
	                  "%c image: %s\n"
	                  "%c accepting: %s\n"
	                  "%c kernels: %u of %u programs are there\n"
	                  "%s\n",
	                  device ? '+' : '-', devices_up(), devices_wanted(), image ? '+' : '-',
	                  image ? "one has passed recently" : "none has passed recently",
	                  draining ? '-' : '+', draining ? "shutting down" : "yes",
	                  pending ? ' ' : '+', built, built + pending,
	                  ready ? "ready" : "not ready") < 0)
		text = NULL;
	answer_text(&r->answer, ready ? 200 : 503, "text/plain; charset=utf-8", text,
	            text ? strlen(text) : 0);
	if (!ready)
		answer_header(&r->answer, "Retry-After", "1");
}

/* Answers with a file of the pages for browsers. They are the same for everybody, and ask for
 * everything else through the API, with the token that their reader gives them. */
static void answer_page(struct request *r, const char *name)
{
	static const char *const types[][2] = {
	    {".html", "text/html; charset=utf-8"},
	    {".css", "text/css; charset=utf-8"},
	    {".js", "text/javascript; charset=utf-8"},
	    {".svg", "image/svg+xml"},
	};
	const char *suffix = name + strcspn(name, "."), *type = "text/plain; charset=utf-8";
	const struct embedded *file = page_embedded, *end = file + page_embedded_count;

	while (file < end && strcmp(file->name, name))
		file++;
	if (file == end) {
		fail_with(answer_problem, &r->answer, ERR_NOT_FOUND, "the pages have no file %.60s",
		          name);
		return;
	}
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(suffix, types[i][0]))
			type = types[i][1];
	answer_text(&r->answer, 200, type, strdup(file->text), strlen(file->text));
	answer_header(&r->answer, "Content-Security-Policy", "%s", page_policy);
}

static void get_index(struct request *r)
{
	static const char text[] =
	    "convolved " PACKAGE_VERSION
	    ", an image filtering service; in a browser this is a page. "
	    "Try:\n"
	    "  curl --data-binary @in.jpg 'http://HOST/v1/filters/gaussian?sigma=2' -o out.jpg\n"
	    "  curl -F image=@in.png 'http://HOST/v1/chain?filters=gaussian=sigma=1.4,sobel' -o "
	    "out.png\n"
	    "  curl -i -H 'Prefer: respond-async' --data-binary @in.jpg "
	    "'http://HOST/v1/filters/gaussian'\n"
	    "    GET /v1/jobs, GET or DELETE /v1/jobs/ID?wait=SECONDS, "
	    "GET /v1/jobs/ID/result?wait=SECONDS, GET /v1/jobs/ID/events\n"
	    "  curl --data-binary @in.jpg http://HOST/v1/presets/NAME -o out.jpg\n"
	    "GET /v1/filters /v1/devices /v1/kernels /metrics /livez /readyz /openapi.json\n"
	    "Pages: / /status /docs\n"
	    "JavaScript: /convolved.js\n";

	if (accept_html(r->head.text[HEAD_ACCEPT])) {
		answer_page(r, "index.html");
		return;
	}
	answer_text(&r->answer, 200, "text/plain; charset=utf-8", strdup(text), sizeof text - 1);
}

/* Answers with a page's file: the route's argument, or the path's, for a page without .html. */
static void get_page(struct request *r)
{
	const char *named = r->path + 1;
	char page[32];

	snprintf(page, sizeof page, "%s%s", named, strchr(named, '.') ? "" : ".html");
	answer_page(r, *r->argument ? r->argument : page);
}

static void get_openapi(struct request *r);

static const struct route routes[] = {
    {"POST", "/v1/filters/{name}", NULL, "Filter an image with one filter",
     "Prefer Idempotency-Key X-Busy-Status", "200:Image 202:Accepted 401 406 422 503 504 507",
     BY_ACCEPT},
    {"POST", "/v1/chain", NULL, "Filter an image with several filters, one after another",
     "Prefer Idempotency-Key X-Busy-Status", "200:Image 202:Accepted 401 404 406 422 503 504 507",
     BY_ACCEPT},
    {"POST", "/v1/presets/{preset}", NULL, "Filter an image with a chain that the service names",
     "Prefer Idempotency-Key X-Busy-Status", "200:Image 202:Accepted 401 404 406 422 503 504 507",
     BY_ACCEPT},
    {"GET", "/v1/filters", catalogue_get_filters,
     "All filters with their parameters, and all presets", "If-None-Match",
     "200:Filters 304:Unchanged 401", SHARED_BY_REPERTOIRE},
    {"GET", "/v1/filters/{name}", catalogue_get_filter, "One filter and its parameters",
     "If-None-Match", "200:Filter 304:Unchanged 401", SHARED_BY_REPERTOIRE},
    {"GET", "/v1/jobs", async_list, "The client's asynchronous jobs", "", "200:Jobs 401 403 503",
     0},
    {"GET", "/v1/jobs/{id}", async_get_job, "State and progress of an asynchronous job", "wait",
     "200:Job 401 404 503", 0},
    {"DELETE", "/v1/jobs/{id}", async_delete_job, "Cancel a job, or forget one that has ended", "",
     "204:Deleted 401 404 503 507", 0},
    {"GET", "/v1/jobs/{id}/result", async_get_result, "The answer that the POST would have had",
     "wait If-None-Match", "200:Image 304:Unchanged 401 404 406 409 410 422 503 504 507", 0},
    {"GET", "/v1/jobs/{id}/events", async_get_events, "The job's progress as a stream of events",
     "", "200:Events 401 404 503", 0},
    {"GET", "/v1/devices", catalogue_get_devices, "The OpenCL devices", "", "200:Devices 401",
     SHARED_A_MOMENT},
    {"GET", "/v1/kernels", catalogue_get_kernels,
     "Times of every kernel on every device, the tuner's choices, and all variants", "",
     "200:Kernels 401", SHARED_A_MOMENT},
    {"GET", "/metrics", get_metrics,
     "Metrics in the text format of Prometheus, or by Accept as OpenMetrics", "", "200:Text 401",
     SHARED_A_SECOND | BY_ACCEPT | FOR_MONITORS},
    {"GET", "/livez", get_livez, "Whether the service is alive", "", "200:Text",
     FOR_MONITORS | OPEN},
    {"GET", "/readyz", get_readyz, "Whether a test image has recently passed through all stages",
     "verbose", "200:Text 503:NotReady", FOR_MONITORS | OPEN},
    {"GET", "/openapi.json", get_openapi, "This document", "If-None-Match",
     "200:Document 304:Unchanged 401", SHARED_BY_REPERTOIRE},
    {"GET", "/", get_index, "A short introduction; for browsers a page to try filters on",
     "If-None-Match", "200:Index 304:Unchanged", OPEN | SHARED_BY_REPERTOIRE | BY_ACCEPT},
    {"GET", "/status", get_page, "A page that shows the metrics, live", "If-None-Match",
     "200:Page 304:Unchanged", OPEN | SHARED_BY_REPERTOIRE},
    {"GET", "/docs", get_page, "A page that shows this description", "If-None-Match",
     "200:Page 304:Unchanged", OPEN | SHARED_BY_REPERTOIRE},
    {"GET", "/convolved.js", get_page, "A JavaScript module for this interface", "If-None-Match",
     "200:Module 304:Unchanged", OPEN | SHARED_BY_REPERTOIRE},
    {"GET", "/page/{file}", get_page, NULL, "", "", OPEN | SHARED_BY_REPERTOIRE},
};

enum { ROUTES = sizeof routes / sizeof *routes };

static void get_openapi(struct request *r)
{
	catalogue_get_api(r, routes, ROUTES);
}

/* Returns the argument in a path of the route, and its length ("" if none); NULL: another path. */
static const char *match(const struct route *route, const char *path, size_t *length)
{
	size_t head = strcspn(route->path, "{");
	const char *tail = strchr(route->path, '}');

	*length = 0;
	if (!tail)
		return strcmp(route->path, path) ? NULL : "";
	if (strncmp(route->path, path, head))
		return NULL;
	path += head;
	*length = strcspn(path, "/");
	return *length && !strcmp(path + *length, tail + 1) ? path : NULL;
}

static bool method_fits(const struct route *route, const char *method)
{
	return !strcmp(route->method, method) ||
	       (!strcmp(method, "HEAD") && !strcmp(route->method, "GET"));
}

/* Answers a request without a route: OPTIONS, or 405 if its path has one with another method. */
static void answer_no_route(struct request *r)
{
	const bool all = !strcmp(r->path, "*"); /* the service as a whole */
	char allow[64];
	size_t length;

	snprintf(allow, sizeof allow, "OPTIONS%s", all ? ", GET, HEAD, POST, DELETE" : "");
	for (int i = 0; i < ROUTES; i++)
		if (match(&routes[i], r->path, &length)) {
			list_add(allow, sizeof allow, routes[i].method);
			if (method_fits(&routes[i], "HEAD"))
				list_add(allow, sizeof allow, "HEAD");
		}
	if (!strchr(allow, ',')) {
		fail_with(answer_problem, &r->answer, ERR_NOT_FOUND, "nothing is at %s; GET %s",
		          r->path,
		          strncmp(r->path, "/v1/metrics", strlen("/v1/metrics"))
		              ? "/ lists what is there"
		              : "/metrics has the metrics, in the text format of Prometheus");
		return;
	}
	if (!strcmp(r->method, "OPTIONS")) {
		r->answer.status = 204;
		origin_permit(r, allow);
	} else {
		fail_with(answer_problem, &r->answer, ERR_METHOD, "%s takes %s", r->path, allow);
	}
	answer_header(&r->answer, "Allow", "%s", allow);
}

static enum error empty_body(struct problem *problem)
{
	return problem_set(problem, ERR_EMPTY_BODY,
	                   "send the image as the body (curl --data-binary @FILE) or as the part "
	                   "`image` of a form (curl -F image=@FILE)");
}

/* Checks whether there is such a filter or preset, and whether the client may use it. */
static enum error check_work(struct request *r, struct problem *problem)
{
	if (strstr(r->route->path, "{preset}"))
		return presets_find(r->argument, &r->preset, problem);
	if (config->presets_only || r->terms.presets_only)
		return presets_insist(problem);
	if (*r->argument && filter_parse(r->argument) == FILTERS)
		return filter_unknown(r->argument, problem);
	return ERR_OK;
}

static enum error admit(struct request *r, struct problem *problem)
{
	const enum error e = check_work(r, problem);

	if (e)
		return e;
	if (draining && r->async && !archive_is_open())
		return problem_set(problem, ERR_DRAINING,
		                   "the service is shutting down and keeps no results");
	if (r->async && archive_check(problem))
		return ERR_STORAGE_UNUSABLE;
	if (!scheduler_has_hope(0))
		return problem_set(problem, ERR_NO_DEVICE,
		                   "no device is up; they are being restarted");
	if (r->head.announced != UINT64_MAX && r->head.announced > config->max_body)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "the body has %" PRIu64 " bytes; at most %" PRIu64
		                   " are accepted",
		                   r->head.announced, config->max_body);
	if (!r->head.announced)
		return empty_body(problem);
	return ERR_OK;
}

/* The body's size so far known, while it arrives and afterwards. */
static uint64_t size_of(const struct request *r)
{
	return r->has_body ? r->body.size : r->head.announced == UINT64_MAX ? 0 : r->head.announced;
}

static enum work_class class_of(const struct request *r)
{
	return r->options.verify
	           ? WORK_VERIFIED
	           : work_class(r->terms.priority == PRIORITY_BATCH, work_cost(size_of(r)));
}

/* Makes a request for a preset one for its chain, to be stored as that: presets may change. */
static enum error write_out(struct request *r, struct problem *problem)
{
	const unsigned own = r->head.parameters;
	const enum error e = presets_append(&r->head, r->preset, problem);

	r->head.text[HEAD_PATH] = "/v1/chain";
	r->fixed = r->head.parameters - own;
	return e;
}

/* Parses the parameters into the request's chain and options, unless that is done. */
static enum error parse(struct request *r, struct problem *problem)
{
	static struct chain chain; /* far larger than most: only what is used is kept */
	double wait, left;
	uint64_t now;
	enum error e = ERR_OK;

	if (r->chain)
		return ERR_OK;
	if (r->preset)
		e = write_out(r, problem);
	if (!e)
		e = request_parse(r, *r->argument && !r->preset ? r->argument : NULL, &chain,
		                  problem);
	if (e)
		return e;
	now = loop_now();
	wait = admission_predict(class_of(r), work_cost(size_of(r)));
	left = r->terms.deadline > now ? (double)(r->terms.deadline - now) * 1e-9 : 0;
	if (r->terms.deadline && wait > left)
		return problem_set(problem, ERR_TOO_LATE,
		                   "this request would take about %.3f s, and %.3f s are left",
		                   wait, left);
	r->chain = chain_copy(&chain, 0);
	return r->chain ? ERR_OK : no_memory(problem, "for the chain");
}

static enum error check_access(struct request *r, struct problem *problem)
{
	const unsigned traits = r->route ? r->route->traits : 0;

	if (r->head.monitoring && !(traits & FOR_MONITORS))
		return problem_set(problem, ERR_NOT_FOUND,
		                   "this address serves only GET /metrics, /livez and /readyz");
	if (r->head.monitoring || traits & OPEN)
		return ERR_OK;
	return tokens_admit(r->head.text[HEAD_AUTHORIZATION], &r->terms, problem);
}

static enum error find_route(struct request *r)
{
	const char *argument = NULL;
	size_t length = 0;

	for (int i = 0; i < ROUTES && !r->route; i++) {
		argument = match(&routes[i], r->path, &length);
		if (argument && method_fits(&routes[i], r->method))
			r->route = &routes[i];
	}
	if (r->route)
		r->argument = strndup(argument, length);
	return r->route && !r->argument ? ERR_MEMORY : ERR_OK;
}

void routes_begin(struct request *r)
{
	struct problem problem;
	enum error e;

	e = origin_check(r, &problem);
	if (!e)
		e = find_route(r);
	if (!e && !origin_asks(r)) /* a preflight has no token */
		e = check_access(r, &problem);
	if (e) {
		answer_problem(&r->answer, e, e == ERR_MEMORY ? NULL : &problem);
		return;
	}
	if (!r->route) {
		answer_no_route(r);
		return;
	}
	if (r->route->act)
		return; /* by routes_resume() */
	tracer_join(&r->terms.trace);
	e = admit(r, &problem);
	/* Refuses invalid parameters before the body arrives; a form may bring more parameters. */
	if (!e && !r->head.form)
		e = parse(r, &problem);
	if (!e)
		e = admission_check(r->terms.client, class_of(r), size_of(r), &problem);
	/* This is not a job yet: slow bodies keep no job out. */
	if (!e)
		e = share_take(&r->place, SHARE_BODIES, r->terms.client, 1, config->max_bodies,
		               &problem);
	if (e) {
		answer_problem(&r->answer, e, &problem);
		return;
	}
	r->expected = true;
	r->body_max = config->max_body;
	r->memory_max = config->max_memory;
}

static enum error job_of(struct request *r, struct problem *problem)
{
	r->options.pixels_max = config->max_pixels;
	r->options.buffered_size_max = config->max_buffered_size;
	r->options.body_size = r->body.size;
	r->job = job_new(r->chain, &r->body);
	r->chain = NULL; /* owned by the job, or NULL if it has gone */
	if (!r->job)
		return no_memory(problem, "for the job");
	r->has_body = false;
	r->options.job = r->job->id;
	r->job->options = r->options;
	r->job->terms = r->terms;
	r->job->terms.route = r->route->path;
	r->job->memory = r->memory;
	r->memory = (struct share){0};
	return ERR_OK;
}

/* Reads a stored request again, up to its job. */
static enum error read_again(struct request *r, const struct stored *s, struct problem *problem)
{
	static struct chain chain; /* see parse() */
	const size_t size = s->record.head.size;
	char *block = malloc(size + 1);
	struct spool *body = &s->job->body;
	enum error e;

	if (!block)
		return no_memory(problem, "for the request");
	memcpy(block, s->record.head.data, size);
	if (head_read(&r->head, block, size))
		return problem_set(problem, ERR_BAD_REQUEST, "the request cannot be read again");
	r->method = r->head.text[HEAD_METHOD];
	r->path = r->head.text[HEAD_PATH];
	r->arrived = s->arrived;
	r->terms = s->job->terms;
	if (find_route(r) || !r->route || r->route->act)
		return problem_set(problem, ERR_NOT_FOUND, "nothing is at %s", r->path);
	e = request_parse(r, *r->argument ? r->argument : NULL, &chain, problem);
	if (e)
		return e;
	r->chain = chain_copy(&chain, 0);
	if (!r->chain)
		return no_memory(problem, "for the chain");
	/* The system may have started since. */
	if (r->terms.deadline && (int64_t)(r->terms.deadline - loop_now()) <= 0)
		r->terms.deadline = 1;
	r->body = *body;
	r->has_body = true;
	*body = SPOOL_NONE;
	return job_of(r, problem);
}

struct job *routes_revive(const struct stored *s, enum error *e, struct problem *problem)
{
	struct head none = {0};
	struct request *r;
	struct job *job = NULL;

	*e = ERR_NOT_READY;
	if (!devices_up() || !repertoire().written)
		return NULL;
	r = request_new(&none, "");
	*e = r ? read_again(r, s, problem) : problem_set(problem, ERR_MEMORY, "no memory");
	if (r) {
		job = r->job;
		r->job = NULL;
		request_free(r);
	}
	if (*e == ERR_NO_DEVICE) /* the one that it names */
		*e = ERR_NOT_READY;
	return job;
}

static void job_done(struct job *job, void *context)
{
	struct request *r = context;

	outcome_record(r->id, job);
	waiter_wake(&r->waiter);
}

struct request *routes_open(struct head *head, enum error refused, const struct problem *why,
                            void (*wake)(void *context), void (*cut)(void *context), void *context)
{
	const char *client = head->text[HEAD_CLIENT] ? head->text[HEAD_CLIENT] : "";
	struct share memory = {0};
	struct problem problem;
	struct request *r;
	enum error e;

	e = share_take(&memory, SHARE_HEADS, client, head->size, HEADS_MAX, &problem);
	if (e) {
		r = routes_refuse(client, e, &problem);
		head_fini(head); /* which the client's name is in */
		return r;
	}
	r = request_new(head, config->node);
	if (!r) {
		share_give_all(&memory);
		return NULL;
	}
	r->head_memory = memory;
	r->waiter.wake = wake;
	r->waiter.context = context;
	r->cut = cut;
	metric_add(METRIC_REQUESTS, NULL, NULL, 1);
	e = refused ? refused : request_read(r, &problem);
	if (e)
		answer_problem(&r->answer, e, refused ? why : &problem);
	else
		routes_begin(r);
	if (e == ERR_CONTENT_CODED)
		answer_header(&r->answer, "Accept-Encoding", "identity");
	return r;
}

struct request *routes_refuse(const char *client, enum error error, const struct problem *problem)
{
	struct head none = {0};
	struct request *r = request_new(&none, config->node);

	if (!r)
		return NULL;
	snprintf(r->terms.client, sizeof r->terms.client, "%s", client);
	answer_problem(&r->answer, error, problem);
	return r;
}

void routes_close(struct request *r)
{
	if (r->method) /* or it is a refusal */
		metric_add(METRIC_REQUESTS, NULL, NULL, -1);
	unread_end(&r->unread);
	request_free(r);
}

void routes_fail(struct request *r, enum error error, const struct problem *problem)
{
	if (r->answer.status)
		return;
	answer_problem(&r->answer, error, problem);
	request_drop_body(r); /* the answer may take its time */
}

void routes_finish(struct request *r, uint64_t size)
{
	struct problem problem;
	enum error e = request_settle(r, size, &problem);

	if (!e && r->route->act)
		return;
	if (!e) {
		metric_observe(METRIC_STAGE_DURATION, "receive", NULL, loop_now() - r->arrived, "");
		e = r->has_body && r->body.size ? parse(r, &problem) : empty_body(&problem);
	}
	if (!e)
		e = admission_check(r->terms.client, class_of(r), size_of(r), &problem);
	if (!e)
		e = job_of(r, &problem);
	share_give_all(&r->place);
	r->expected = false;
	if (!e && r->async) {
		async_accept(r);
		return;
	}
	if (!e && job_submit(r->job, job_done, r))
		e = no_memory(&problem, "for the job");
	if (e)
		routes_fail(r, e, &problem);
}

void routes_resume(struct request *r)
{
	if (r->route->act)
		representation_answer(r);
	else if (r->async && !r->expected)
		async_accept(r);
	else if (r->job && r->job->finished)
		answer_job(&r->answer, r->job, r->job->times.accepted - r->arrived);
}

void routes_abandon(struct request *r)
{
	waiter_leave(&r->waiter);
	/* Others may wait for what it held; a job that has been stored runs on. */
	if (r->route->act || r->async || r->job->finished)
		return;
	outcome_gone(r->id, r->job);
	r->job->done = NULL;
	job_cancel(r->job, ERR_CANCELLED, NULL);
}

static void complete_headers(struct request *r)
{
	if (!answer_has(&r->answer, "Server-Timing"))
		answer_header(&r->answer, "Server-Timing", "total;dur=%.3f",
		              (double)(loop_now() - r->arrived) * 1e-6);
	answer_header(&r->answer, "X-Request-Id", "%s", r->id);
	representation_finish(&r->answer, r->route && r->route->traits & BY_ACCEPT);
	origin_mark(r);
}

const struct answer *routes_answer(struct request *r)
{
	const char *busy_status = r->head.text[HEAD_BUSY_STATUS];
	struct problem problem;
	enum error e = ERR_OK;

	complete_headers(r);
	representation_revalidate(&r->answer, r->head.text[HEAD_IF_NONE_MATCH]);
	/* Counts a file that the client has to read; if there is no room for it, answers so. */
	if (r->answer.file >= 0 && r->answer.status != 304)
		e = unread_begin(&r->unread, r->id, r->terms.client, r->answer.file_size, r->cut,
		                 r->waiter.context, &problem);
	if (e) {
		answer_fini(&r->answer);
		answer_init(&r->answer);
		answer_problem(&r->answer, e, &problem);
		complete_headers(r);
	}
	request_drop_body(r);
	outcome_answered(r);
	/* A balancer may repeat requests by status alone, and not know 429; so a refusal because of
	 * load gets the status that the request names. Metrics and logs have 429. */
	if (r->answer.status == 429 && busy_status && !strcmp(busy_status, "503")) {
		answer_header(&r->answer, "X-Busy-Status", "%d", r->answer.status);
		r->answer.status = 503;
	}
	return &r->answer;
}
