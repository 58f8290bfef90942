/* Requests: parses parameters into a chain and the options of a job, with an error for every way in
 * which they can be wrong. */
#include "front/api/request.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/text.h"
#include "filters/chain_check.h"
#include "front/api/accept.h"
#include "front/api/chain_json.h"
#include "front/jobs/admission.h"
#include "front/workers/device_table.h"
#include "front/workers/repertoire.h"
#include "front/workers/scheduler.h"

enum { STRIPPED_LOOK = 64, DEVICE_PATTERN_MAX = 255 };

_Static_assert((int)HEAD_CLIENT_SIZE <= (int)FAIR_CLIENT_SIZE,
               "a job's terms name the head's client");

static const char *node = "";

void request_init(const struct config *config)
{
	node = config->node;
}

struct request *request_new(struct head *head)
{
	struct request *r = calloc(1, sizeof *r);
	uint64_t number = 0;

	if (!r || getrandom(&number, sizeof number, 0) < 0) {
		free(r);
		head_fini(head);
		return NULL;
	}
	r->head = *head;
	*head = (struct head){0};
	r->method = r->head.text[HEAD_METHOD];
	r->path = r->head.text[HEAD_PATH];
	snprintf(r->id, sizeof r->id, "%0*" PRIx64 "%s%s", REQUEST_NUMBER_DIGITS, number,
	         *node ? "-" : "", node);
	r->arrived = loop_now();
	r->body = SPOOL_NONE;
	answer_init(&r->answer);
	return r;
}

void request_drop_body(struct request *r)
{
	spool_close(&r->body);
	r->has_body = false;
	share_give_all(&r->place);
	share_give_all(&r->memory);
}

void request_free(struct request *r)
{
	answer_fini(&r->answer);
	waiter_leave(&r->waiter);
	if (r->job) {
		job_forget(r->job);
		job_release(r->job);
	}
	request_drop_body(r);
	free(r->chain);
	free(r->argument);
	head_fini(&r->head);
	share_give_all(&r->head_memory);
	free(r);
}

/* The text after the next comma that is not within quotes. */
static const char *next_preference(const char *at)
{
	bool quoted = false;

	for (; *at && (quoted || *at != ','); at++) {
		if (*at == '"')
			quoted = !quoted;
		else if (quoted && *at == '\\' && at[1])
			at++;
	}
	return at;
}

/* True if a Prefer header asks for an asynchronous answer. */
static bool prefers_async(const char *prefer)
{
	static const char name[] = "respond-async";

	for (const char *at = prefer; *at; at = next_preference(at)) {
		at += strspn(at, ", \t");
		if (!strncasecmp(at, name, sizeof name - 1) && strchr(",; \t", at[sizeof name - 1]))
			return true;
	}
	return false;
}

enum error request_read(struct request *r, struct problem *problem)
{
	static const char urlencoded[] = "application/x-www-form-urlencoded";
	const struct head *head = &r->head;
	const char *type = head->text[HEAD_CONTENT_TYPE],
	           *coding = head->text[HEAD_CONTENT_ENCODING];

	if (head->text[HEAD_CLIENT])
		snprintf(r->terms.client, sizeof r->terms.client, "%s", head->text[HEAD_CLIENT]);
	if (head->text[HEAD_TRACE])
		trace_parse(head->text[HEAD_TRACE], &r->terms.trace);
	r->urlencoded = type && !strncasecmp(type, urlencoded, sizeof urlencoded - 1);
	r->async = head->text[HEAD_PREFER] && prefers_async(head->text[HEAD_PREFER]);
	if (coding && strcasecmp(coding, "identity") && head->announced)
		return problem_set(problem, ERR_CONTENT_CODED,
		                   "Content-Encoding: %.60s; expected the body as it is, without a "
		                   "coding",
		                   coding);
	if (head->parameters > HEAD_PARAMETERS_MAX)
		return problem_set(problem, ERR_BAD_REQUEST, "a request has at most %d parameters",
		                   HEAD_PARAMETERS_MAX);
	return ERR_OK;
}

/* Charges the body's memory to its client. e: whether there is so much. */
static enum error book_memory(struct request *r, enum error e, struct problem *problem)
{
	uint64_t reserved = r->body.reserved, held = r->memory.amount;
	enum share_outcome outcome = SHARE_TAKEN;

	r->has_body |= !e;
	if (e)
		return problem_set(problem, e, "no memory is free for the body now");
	if (reserved > held)
		outcome = share_take(&r->memory, SHARE_BODY_MEMORY, r->terms.client,
		                     reserved - held, r->memory_max);
	else
		share_give(&r->memory, held - reserved);
	return outcome ? share_problem(outcome, SHARE_BODY_MEMORY, r->terms.client, r->memory_max,
	                               problem)
	               : ERR_OK;
}

/* True if a body looks as curl -d leaves it: without line ends and zero bytes, which every image
 * has near its start. */
static bool looks_stripped(const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!data[i] || data[i] == '\n' || data[i] == '\r')
			return false;
	return size >= STRIPPED_LOOK;
}

enum error request_lend(struct request *r, uint64_t size, struct lent *lent,
                        struct problem *problem)
{
	uint64_t most = r->head.announced < r->body_max ? r->head.announced : r->body_max;
	bool known = r->head.announced != UINT64_MAX; /* of a form, only about */
	enum error e;

	*lent = (struct lent){.fd = -1};
	size = known || size > most ? most : size;
	e = r->has_body ? spool_extend(&r->body, size) : spool_open(&r->body, size);
	e = book_memory(r, e, problem);
	if (e)
		return e;
	if (spool_await(&r->body, r->waiter.wake, r->waiter.context))
		return ERR_OK;
	if (spool_take_file(&r->body))
		return problem_set(problem, ERR_IO, "cannot write the body to a file");
	*lent = (struct lent){r->body.writer, r->body.in_memory, size, size == most};
	return ERR_OK;
}

enum error request_take(struct request *r, int fd, uint64_t size, struct problem *problem)
{
	enum error e = spool_adopt(&r->body, size, fd);

	if (e == ERR_IO)
		return problem_set(problem, e, "the body is not what it should be");
	return book_memory(r, e, problem);
}

enum error request_settle(struct request *r, uint64_t size, struct problem *problem)
{
	char start[STRIPPED_LOOK];
	ssize_t got;

	if (!r->has_body)
		return ERR_OK;
	/* A file may stay writable for its HTTP worker, which can change it but not shorten it: a
	 * codec worker trusts no body, and the worker's own client has sent it. */
	if ((!spool_release(&r->body) && r->body.in_memory) || spool_settle(&r->body, size))
		return problem_set(problem, ERR_IO, "the body is not where it should be");
	got = r->urlencoded ? pread(r->body.fd, start, sizeof start, 0) : 0;
	r->terms.stripped = got > 0 && looks_stripped(start, (size_t)got);
	return ERR_OK;
}

/* Parameters to be parsed into a chain and options. Those of filters are kept as text, because the
 * filters have an order of their own, and some parameters apply to all of them. */
struct reading {
	const struct common_parameter *parameter; /* the one that is read now */
	struct chain *chain;
	struct message_job *options;
	struct job_terms *terms;
	uint64_t arrived;
	const char *filters, *json, *luma, *chroma, *variant; /* NULL: not given */
	const char *channels;
};

/* For several parameters: `member` is a text of struct reading. */
static enum error keep_text(struct reading *r, const char *text, struct problem *problem)
{
	(void)problem;
	*(const char **)(void *)((char *)r + r->parameter->member) = text;
	return ERR_OK;
}

/* For several parameters: `member` is a uint32_t of struct message_job. */
static enum error parse_switch(struct reading *r, const char *text, struct problem *problem)
{
	const char *name = r->parameter->name;

	if (strcmp(text, "0") && strcmp(text, "1"))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text,
		                             "%s: expected 0 or 1", name);
	*(uint32_t *)(void *)((char *)r->options + r->parameter->member) = *text == '1';
	return ERR_OK;
}

static enum error parse_border(struct reading *r, const char *text, struct problem *problem)
{
	return chain_set_border(r->chain, text, problem);
}

static enum error parse_border_value(struct reading *r, const char *text, struct problem *problem)
{
	return chain_set_border_value(r->chain, text, problem);
}

static enum error parse_roi(struct reading *r, const char *text, struct problem *problem)
{
	if (area_parse(text, &r->options->roi))
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "roi", text,
	                             "roi: expected x,y,width,height in pixels, the last two at "
	                             "least 1, as in 100,50,640,480");
}

static enum error parse_target(struct reading *r, const char *text, struct problem *problem)
{
	char rest;

	r->options->has_target = 1;
	if (strspn(text, "0123456789,") == strlen(text) &&
	    sscanf(text, "%7u,%7u%c", &r->options->target_x, &r->options->target_y, &rest) == 2)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "target", text,
	                             "target: expected x,y in pixels, as in 100,50");
}

static enum error parse_regions(struct reading *r, const char *text, struct problem *problem)
{
	return chain_set_regions(r->chain, text, problem);
}

static enum error parse_feather(struct reading *r, const char *text, struct problem *problem)
{
	uint32_t *feather = &r->chain->regions.feather;
	char rest;

	if (text[0] >= '0' && text[0] <= '9' && sscanf(text, "%5u%c", feather, &rest) == 1 &&
	    *feather <= REGIONS_FEATHER_MAX)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "feather", text,
	                             "feather: expected an integer from 0 to %d, in pixels",
	                             REGIONS_FEATHER_MAX);
}

static enum error parse_invert(struct reading *r, const char *text, struct problem *problem)
{
	r->chain->regions.invert = *text == '1';
	if (!strcmp(text, "0") || !strcmp(text, "1"))
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "invert", text,
	                             "invert: expected 0 or 1");
}

static enum error parse_channels(struct reading *r, const char *text, struct problem *problem)
{
	r->channels = text;
	if (channels_parse(text) != CHANNELS)
		return ERR_OK;
	return problem_set_parameter(
	    problem, ERR_BAD_PARAMETER, "channels", text,
	    "channels: expected one of all, color, alpha, red, green, blue, luma, chroma");
}

static enum error parse_format(struct reading *r, const char *text, struct problem *problem)
{
	const struct format_offer *offer;
	uint32_t written = repertoire().written;
	char names[160] = "";

	r->options->format = format_parse(text);
	if (r->options->format && format_in(written, r->options->format))
		return ERR_OK;
	for (size_t i = 0; (offer = format_offer(i)); i++)
		if (format_in(written, offer->format))
			list_add(names, sizeof names, offer->name);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "format", text,
	                             "format: expected one of %s", names);
}

static enum error parse_quality(struct reading *r, const char *text, struct problem *problem)
{
	uint32_t *quality = &r->options->coding.quality;
	char rest;

	if (text[0] < '0' || text[0] > '9' || sscanf(text, "%3u%c", quality, &rest) != 1 ||
	    *quality < 1 || *quality > 100)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "quality", text,
		                             "quality: expected an integer from 1 to 100");
	return ERR_OK;
}

static enum error parse_compression(struct reading *r, const char *text, struct problem *problem)
{
	char all[96];

	r->options->coding.compression = compression_parse(text);
	if (r->options->coding.compression != COMPRESSIONS)
		return ERR_OK;
	format_list_compressions(repertoire().written, all, sizeof all);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "compression", text,
	                             "compression: expected %s", all);
}

static enum error parse_subsample(struct reading *r, const char *text, struct problem *problem)
{
	r->options->coding.subsample = subsample_parse(text);
	if (r->options->coding.subsample != SUBSAMPLES)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "subsample", text,
	                             "subsample: expected auto, on or off");
}

static enum error parse_background(struct reading *r, const char *text, struct problem *problem)
{
	if (background_parse(text, &r->options->coding))
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "background", text,
	                             "background: expected one value from 0 to 255, or three "
	                             "separated by commas: red, green and blue, as in "
	                             "255,255,255");
}

static enum error parse_raw(struct reading *r, const char *text, struct problem *problem)
{
	uint32_t alpha = r->options->raw_image.alpha; /* alpha= may have come before */

	r->options->raw = 1;
	if (!image_parse(text, &r->options->raw_image))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "raw", text,
		                             "raw: expected WIDTHxHEIGHTxBANDS:TYPE, with 1 to %d "
		                             "bands of u8, u16 or f32, as in 640x480x3:u8",
		                             IMAGE_BANDS_MAX);
	r->options->raw_image.alpha = alpha;
	return ERR_OK;
}

/* Each is given once at most, so a page that is set is the other's. */
static enum error page_chosen(const char *name, const char *text, struct problem *problem)
{
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text,
	                             "page names one page, and pages=all is every page: expected "
	                             "one of the two");
}

static enum error parse_page(struct reading *r, const char *text, struct problem *problem)
{
	uint32_t page;
	char rest;

	if (text[0] < '0' || text[0] > '9' || sscanf(text, "%6u%c", &page, &rest) != 1 ||
	    page >= PAGES_MAX)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "page", text,
		                             "page: expected an integer from 0, the first page, to "
		                             "%d",
		                             PAGES_MAX - 1);
	if (r->options->page == PAGES_ALL)
		return page_chosen("page", text, problem);
	r->options->page = page + 1;
	return ERR_OK;
}

static enum error parse_pages(struct reading *r, const char *text, struct problem *problem)
{
	bool all = !strcmp(text, "all");

	if (!all && strcmp(text, "first"))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "pages", text,
		                             "pages: expected first or all");
	if (all && r->options->page)
		return page_chosen("pages", text, problem);
	if (all)
		r->options->page = PAGES_ALL;
	return ERR_OK;
}

static enum error parse_priority(struct reading *r, const char *text, struct problem *problem)
{
	r->terms->priority = priority_parse(text);
	if (r->terms->priority == PRIORITIES)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "priority", text,
		                             "priority: expected interactive or batch");
	if (r->terms->priority < r->terms->best)
		return problem_set_parameter(problem, ERR_CLASS_FORBIDDEN, "priority", text,
		                             "this token is for batch work: use priority=batch, "
		                             "its default");
	return ERR_OK;
}

static enum error parse_codec(struct reading *r, const char *text, struct problem *problem)
{
	static const char *const names[] = {
	    [JPEG_BY_ANY] = "auto", [JPEG_BY_CPU] = "cpu", [JPEG_BY_GPU] = "gpu"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i])) {
			r->terms->codec = (enum jpeg_by)i;
			return ERR_OK;
		}
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "codec", text,
	                             "codec: expected auto, cpu or gpu");
}

static enum error parse_device(struct reading *r, const char *text, struct problem *problem)
{
	char devices[160];

	if (strlen(text) > DEVICE_PATTERN_MAX)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "device", text,
		                             "device: a pattern has at most %d bytes",
		                             DEVICE_PATTERN_MAX);
	r->terms->devices = devices_fitting(text);
	devices_describe(devices, sizeof devices);
	if (!r->terms->devices && *devices)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "device", text,
		                             "device: expected a pattern that matches one of: %s",
		                             devices);
	if (!scheduler_has_hope(r->terms->devices))
		return problem_set_parameter(problem, ERR_NO_DEVICE, "device", text,
		                             "no device that matches is up; GET /v1/devices shows "
		                             "their states");
	return ERR_OK;
}

static enum error parse_deadline(struct reading *r, const char *text, struct problem *problem)
{
	unsigned ms;
	char rest;

	if (text[0] < '0' || text[0] > '9' || sscanf(text, "%8u%c", &ms, &rest) != 1 || ms < 1 ||
	    ms > DEADLINE_MAX_MS)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "deadline_ms", text,
		                             "deadline_ms: expected an integer from 1 to %d",
		                             DEADLINE_MAX_MS);
	r->terms->deadline = r->arrived + ms * UINT64_C(1000000);
	return ERR_OK;
}

/* The parameters that a chain takes; every filter takes them, too, except for the first few. */
static const struct common_parameter commons[] = {
#define CHAIN true
#define ANY   false
#define PLACE(type, of, to)                                                                        \
	_Generic(((struct of *)0)->to, type : offsetof(struct of, to)) /* also checks its type */
#define TEXT(to)                                  keep_text, .member = PLACE(const char *, reading, to)
#define SWITCH(to)                                parse_switch, .member = PLACE(uint32_t, message_job, to)
#define COMMON(name, chain, reader, schema, text) {name, chain, schema, text, .parse = reader},
#include "filters/parameters.def"
#undef COMMON
#undef PLACE
#undef TEXT
#undef SWITCH
#undef CHAIN
#undef ANY
};

enum { COMMONS = sizeof commons / sizeof *commons };

const struct common_parameter *request_common_parameter(size_t i)
{
	return i < COMMONS ? &commons[i] : NULL;
}

static enum error parse_parameter(struct reading *r, bool one_filter, const char *name,
                                  const char *text, struct problem *problem)
{
	char all[256] = "";

	if (one_filter && chain_knows_parameter(r->chain, name))
		return chain_set_parameter(r->chain, name, text, problem);
	for (size_t i = 0; i < COMMONS; i++)
		if (!strcmp(commons[i].name, name) && !(one_filter && commons[i].for_chain)) {
			r->parameter = &commons[i];
			return commons[i].parse(r, text, problem);
		}
	if (one_filter) /* lists the filters */
		return chain_set_parameter(r->chain, name, text, problem);
	for (size_t i = 0; i < COMMONS; i++)
		list_add(all, sizeof all, commons[i].name);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text, "a chain takes %s",
	                             all);
}

/* Puts the filters into the chain in the order in which they are applied. */
static enum error add_filters(const struct reading *r, struct problem *problem)
{
	enum error e = ERR_OK;

	if (r->filters && r->json)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "chain", r->json,
		                             "filters and chain mean the same: give one of them");
	if (r->filters)
		e = chain_parse(r->chain, r->filters, problem);
	else if (r->json)
		e = chain_parse_json(r->chain, r->json, problem);
	if (!e && r->channels && channels_parse(r->channels) && !r->chain->count)
		e = problem_set_parameter(problem, ERR_BAD_PARAMETER, "channels", r->channels,
		                          "channels applies to filters=, which is missing");
	if (!e && r->channels)
		chain_set_channels(r->chain, channels_parse(r->channels));
	if (!e && r->luma)
		e = chain_parse_for(r->chain, CHANNELS_LUMA, "luma", r->luma, problem);
	if (!e && r->chroma)
		e = chain_parse_for(r->chain, CHANNELS_CHROMA, "chroma", r->chroma, problem);
	if (!e)
		e = chain_check(r->chain, problem);
	if (!e && r->variant)
		e = chain_set_variant(r->chain, r->variant, problem);
	return e;
}

/* Checks that involve several parameters. */
static enum error check_options(const struct message_job *options, struct problem *problem)
{
	const struct image *raw = &options->raw_image;
	char value[8];

	snprintf(value, sizeof value, "%u", options->coding.quality);
	if (options->coding.quality && options->coding.lossless)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "quality", value,
		    "quality is for lossy encoding: leave out lossless=1 or quality");
	if (raw->alpha && !options->raw)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "alpha", "1",
		    "alpha is for raw pixels: other formats declare it themselves");
	if (raw->alpha && (raw->bands % 2 || raw->bands > BANDS_MAX))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "alpha", "1",
		                             "alpha needs 2 or 4 bands, not %u", raw->bands);
	return ERR_OK;
}

enum error request_parse(struct request *r, const char *filter, struct chain *chain,
                         struct problem *problem)
{
	struct message_job *options = &r->options;
	struct reading reading = {
	    .chain = chain, .options = options, .terms = &r->terms, .arrived = r->arrived};
	enum error e = ERR_OK;

	chain_init(chain);
	*options = (struct message_job){0};
	r->terms.priority = r->terms.best;
	r->terms.deadline = 0;
	r->terms.devices = 0;
	if (filter)
		e = chain_add_filter(chain, filter, problem);
	for (unsigned i = 0; !e && i < r->head.parameters; i++) {
		const char *name = r->head.parameter[i].name, *value = r->head.parameter[i].value;

		for (unsigned before = 0; before < i; before++)
			if (!strcmp(r->head.parameter[before].name, name))
				return problem_set_parameter(problem, ERR_BAD_PARAMETER, name,
				                             value, "%s is given more than once",
				                             name);
		e = parse_parameter(&reading, filter != NULL, name, value, problem);
	}
	if (!e)
		e = add_filters(&reading, problem);
	if (!e)
		e = check_options(options, problem);
	if (!e) /* regions are given in the image, and the chain filters the roi */
		regions_move(&chain->regions, &chain->coefficient[chain->regions.first],
		             -(int)options->roi.x, -(int)options->roi.y);
	if (!e)
		e = accept_parse(r->head.text[HEAD_ACCEPT], repertoire().written, options->accept,
		                 problem);
	return e;
}
