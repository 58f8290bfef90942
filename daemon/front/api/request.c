/* Requests: parses parameters into a chain and a job's options, with errors for every mistake. */
#include "front/api/request.h"

#include <glib.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/loop.h"
#include "base/text.h"
#include "filters/chain_check.h"
#include "front/api/accept.h"
#include "front/workers/device_table.h"
#include "front/workers/repertoire.h"
#include "front/workers/scheduler.h"

enum { STRIPPED_LOOK = 64, DEVICE_PATTERN_MAX = 255, KEY_MAX = 255 };

struct request *request_new(struct head *head, const char *node)
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
	if (r->fingerprint)
		errand_abandon((struct errand *)r->fingerprint);
	if (r->job) {
		r->job->done = NULL;
		job_release(r->job);
	}
	request_drop_body(r);
	free(r->chain);
	free(r->argument);
	free(r->preset);
	head_fini(&r->head);
	share_give_all(&r->head_memory);
	free(r);
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
	r->async = accept_weigh(head->text[HEAD_PREFER], "respond-async", NULL);
	r->key = r->async ? head->text[HEAD_IDEMPOTENCY_KEY] : NULL;
	if (r->key && (!*r->key || strlen(r->key) > KEY_MAX))
		return problem_set(problem, ERR_BAD_REQUEST,
		                   "Idempotency-Key: expected 1 to %d bytes, such as a UUID",
		                   KEY_MAX);
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

/* Charges the body's memory to its client. e: whether there is enough of it. */
static enum error book_memory(struct request *r, enum error e, struct problem *problem)
{
	uint64_t reserved = r->body.reserved, held = r->memory.amount;

	r->has_body |= !e;
	if (e)
		return problem_set(problem, e, "no memory is free for the body now");
	if (reserved > held)
		return share_take(&r->memory, SHARE_BODY_MEMORY, r->terms.client, reserved - held,
		                  r->memory_max, problem);
	share_give(&r->memory, held - reserved);
	return ERR_OK;
}

enum error request_lend(struct request *r, uint64_t size, struct lent *lent,
                        struct problem *problem)
{
	uint64_t most = r->head.announced < r->body_max ? r->head.announced : r->body_max;
	bool known = r->head.announced != UINT64_MAX; /* roughly, for a form */
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

	if (!r->has_body)
		return ERR_OK;
	/* A file may stay writable for its HTTP worker, which can change but not shorten it: a
	 * codec worker trusts no body, and a client of that worker has sent it. */
	if ((!spool_release(&r->body) && r->body.in_memory) || spool_settle(&r->body, size))
		return problem_set(problem, ERR_IO, "the body is not where it should be");
	/* The body after curl -d: without line ends and zeros, which images have near the start. */
	r->terms.stripped =
	    r->urlencoded && pread(r->body.fd, start, sizeof start, 0) == sizeof start &&
	    !memchr(start, '\0', sizeof start) && !memchr(start, '\n', sizeof start) &&
	    !memchr(start, '\r', sizeof start);
	return ERR_OK;
}

/* The parameters while they are read. Those of the chain are kept as text, because filters have an
 * order of their own, and some parameters apply to all of them. */
struct reading {
	struct chain *chain;
	struct message_job options;
	/* NULL: not given. */
	const char *filters, *json, *luma, *chroma, *variant, *border_value, *regions;
	uint32_t border, feather, invert, channels;
	uint32_t alpha, page, pages; /* page PAGES_MAX: not given */
	uint32_t priority, codec, deadline_ms;
	uint64_t devices;
	bool is_preset;   /* it is only checked */
	uint32_t written; /* formats; a bit for each */
};

static enum error refuse(const struct common_parameter *p, const char *text, const char *expected,
                         struct problem *problem)
{
	return bad_parameter(problem, p->name, text, "%s: expected %s", p->name, expected);
}

static bool read_roi(struct reading *r, const char *text)
{
	return area_parse(text, &r->options.roi);
}

static bool read_target(struct reading *r, const char *text)
{
	char rest;

	r->options.has_target = 1;
	return strspn(text, "0123456789,") == strlen(text) &&
	       sscanf(text, "%7u,%7u%c", &r->options.target_x, &r->options.target_y, &rest) == 2;
}

static bool read_background(struct reading *r, const char *text)
{
	return background_parse(text, &r->options.coding);
}

static bool read_raw(struct reading *r, const char *text)
{
	r->options.raw = 1;
	return image_parse(text, &r->options.raw_image);
}

/* The others say themselves what is wrong. */
static enum error parse_format(struct reading *r, const struct common_parameter *p,
                               const char *text, struct problem *problem)
{
	const struct format_offer *offer;
	char names[160] = "", expected[192];

	r->options.format = format_parse(text);
	if (r->options.format && format_in(r->written, r->options.format))
		return ERR_OK;
	for (size_t i = 0; (offer = format_offer(i)); i++)
		if (format_in(r->written, offer->format))
			list_add(names, sizeof names, offer->name);
	snprintf(expected, sizeof expected, "one of %s", names);
	return refuse(p, text, expected, problem);
}

static enum error parse_compression(struct reading *r, const struct common_parameter *p,
                                    const char *text, struct problem *problem)
{
	char all[96];

	r->options.coding.compression = compression_parse(text);
	if (r->options.coding.compression != COMPRESSIONS)
		return ERR_OK;
	format_list_compressions(r->written, all, sizeof all);
	return refuse(p, text, all, problem);
}

static enum error parse_device(struct reading *r, const struct common_parameter *p,
                               const char *text, struct problem *problem)
{
	char devices[160], expected[224];

	if (strlen(text) > DEVICE_PATTERN_MAX)
		return bad_parameter(problem, p->name, text,
		                     "device: a pattern has at most %d bytes", DEVICE_PATTERN_MAX);
	if (r->is_preset)
		return ERR_OK;
	r->devices = devices_fitting(text);
	devices_describe(devices, sizeof devices);
	snprintf(expected, sizeof expected, "a pattern that matches one of: %s", devices);
	if (!r->devices && *devices)
		return refuse(p, text, expected, problem);
	if (!scheduler_has_hope(r->devices))
		return problem_set_parameter(
		    problem, ERR_NO_DEVICE, p->name, text,
		    "no device that matches is up; GET /v1/devices shows their states");
	return ERR_OK;
}

/* The parameters of a chain; every filter also takes all but the first few. */
static const struct common_parameter commons[] = {
#define PLACE(type, to)                                                                            \
	.member = _Generic(((struct reading *)0)->to, type                                         \
	                   : offsetof(struct reading, to)) /* also checks its type */
#define TEXT(to, json)            .is_text = true, .schema = json, PLACE(const char *, to)
#define READ(reader, valid, json) .read = reader, .expected = valid, .schema = json
#define PARSE(reader, json)       .parse = reader, .schema = json
#define WORD(to, words)           .kind = {VALUE_WORD, .unit = words}, PLACE(uint32_t, to)
#define SWITCH(to)                WORD(to, "0|1"), .schema = "{'enum':[0,1],'default':0}"
#define INTEGER(to, least, most, of, standard)                                                     \
	.kind = {VALUE_INTEGER, least, most, of}, .default_ = standard, PLACE(uint32_t, to)
#define COMMON(name, scope, how, text) {name, SCOPE_##scope, text, how},
#include "filters/parameters.def"
};

enum { COMMONS = sizeof commons / sizeof *commons };

const struct common_parameter *request_common_parameter(size_t i)
{
	return i < COMMONS ? &commons[i] : NULL;
}

static enum error read_parameter(struct reading *r, enum scope scope, const char *name,
                                 const char *text, struct problem *problem)
{
	const bool one_filter = scope == SCOPE_FILTER;
	const struct common_parameter *p = commons, *end = commons + COMMONS;
	char all[256] = "";
	void *member;
	double value;
	enum error e;

	if (!strcmp(name, "mask"))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text,
		                             "mask: expected an image as a part of a form, behind "
		                             "the part image: curl -F image=@FILE -F mask=@FILE");
	if (one_filter && chain_knows_parameter(r->chain, name))
		return chain_set_parameter(r->chain, name, text, problem);
	while (p < end && (strcmp(p->name, name) != 0 || p->scope < scope))
		p++;
	if (p == end && one_filter) /* lists the filters */
		return chain_set_parameter(r->chain, name, text, problem);
	if (p == end) {
		for (p = commons; p < end; p++)
			if (p->scope >= scope)
				list_add(all, sizeof all, p->name);
		return bad_parameter(problem, name, text, "%s takes %s",
		                     scope ? "a request for a preset" : "a chain", all);
	}
	member = (char *)r + p->member;
	if (p->is_text) {
		*(const char **)member = text;
		return ERR_OK;
	}
	if (p->parse)
		return p->parse(r, p, text, problem);
	if (p->read)
		return p->read(r, text) ? ERR_OK : refuse(p, text, p->expected, problem);
	e = value_parse(&p->kind, p->name, text, &value, problem);
	*(uint32_t *)member = e ? 0 : (uint32_t)value;
	return e;
}

/* Chains as JSON ------------------------------------------------------------------------------- */

/* Every value is converted to the text that a query would hold, so that there is one parser of
 * parameters and one set of limits. */
static const char example[] = "[{\"filter\":\"gaussian\",\"sigma\":1.4},{\"filter\":\"sobel\"}]";

/* Prints a number, a row of them with ',' between them, or rows with ';'. Returns false if a query
 * could not hold the value. */
static bool print_value(GString *out, const json_t *value, const char *separators)
{
	const bool matrix = json_is_array(json_array_get(value, 0));
	const double number = json_number_value(value);
	const json_t *item;
	char text[32];
	size_t i;

	if (json_is_number(value)) { /* with the fewest digits that give the same value */
		snprintf(text, sizeof text, "%.15g", number);
		if (strtod(text, NULL) != number)
			snprintf(text, sizeof text, "%.17g", number);
		g_string_append(out, text);
		return true;
	}
	if (!json_array_size(value) || !*separators)
		return false;
	separators += *separators == ';' && !matrix;
	json_array_foreach(value, i, item) {
		if (i)
			g_string_append_c(out, *separators);
		if (json_is_array(item) != matrix || !print_value(out, item, separators + 1))
			return false;
	}
	return true;
}

static enum error add_json(struct chain *chain, json_t *link, struct problem *problem)
{
	const char *filter = json_string_value(json_object_get(link, "filter"));
	const char *name;
	json_t *value;
	GString *text;
	enum error e;

	if (!filter)
		return bad_parameter(
		    problem, "chain", "",
		    "each filter of chain is an object whose member filter is its name, as in %s",
		    example);
	e = chain_add_filter(chain, filter, problem);
	json_object_foreach(link, name, value) {
		if (e || !strcmp(name, "filter"))
			continue;
		text = g_string_new(json_string_value(value));
		if (json_is_string(value) || print_value(text, value, ";,"))
			e = chain_set_parameter(chain, name, text->str, problem);
		else
			e = bad_parameter(problem, name, text->str,
			                  "%s: expected a number, a text, or the rows of a matrix, "
			                  "as in [[1,2,1],[2,4,2],[1,2,1]]",
			                  name);
		g_string_free(text, TRUE);
	}
	return e;
}

static enum error parse_json(struct chain *chain, const char *text, struct problem *problem)
{
	json_error_t error;
	json_t *list = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	json_t *link;
	enum error e = ERR_OK;
	size_t i;

	if (!list)
		return bad_parameter(
		    problem, "chain", text,
		    "chain: not JSON: %s in line %d, column %d; expected a list as in %s",
		    error.text, error.line, error.column, example);
	if (!json_array_size(list))
		e = bad_parameter(problem, "chain", text,
		                  "chain: expected a list of at least one filter, as in %s",
		                  example);
	json_array_foreach(list, i, link)
		if (!e)
			e = add_json(chain, link, problem);
	json_decref(list);
	return e;
}

/* Requests ------------------------------------------------------------------------------------- */

/* Puts the filters into the chain in the order in which they are applied. */
static enum error add_filters(const struct reading *r, struct problem *problem)
{
	enum error e = ERR_OK;

	if (r->filters && r->json)
		return bad_parameter(problem, "chain", r->json,
		                     "filters and chain mean the same: give one of them");
	if (r->filters)
		e = chain_parse(r->chain, r->filters, problem);
	else if (r->json)
		e = parse_json(r->chain, r->json, problem);
	if (!e && r->channels && !r->chain->count)
		e = bad_parameter(problem, "channels", channel_names[r->channels],
		                  "channels applies to filters=, which is missing");
	if (!e)
		chain_set_channels(r->chain, r->channels);
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

static enum error check_together(const struct reading *r, enum priority best,
                                 struct problem *problem)
{
	const struct message_job *options = &r->options;
	const struct image *raw = &options->raw_image;
	char value[8];

	snprintf(value, sizeof value, "%u", options->coding.quality);
	if (options->coding.quality && options->coding.lossless)
		return bad_parameter(
		    problem, "quality", value,
		    "quality is for lossy encoding: leave out lossless=1 or quality");
	if (r->alpha && !options->raw)
		return bad_parameter(
		    problem, "alpha", "1",
		    "alpha is for raw pixels: other formats declare it themselves");
	if (r->alpha && (raw->bands % 2 || raw->bands > BANDS_MAX))
		return bad_parameter(problem, "alpha", "1", "alpha needs 2 or 4 bands, not %u",
		                     raw->bands);
	if (r->priority < (uint32_t)best)
		return problem_set_parameter(
		    problem, ERR_CLASS_FORBIDDEN, "priority", "interactive",
		    "this token is for batch work: use priority=batch, its default");
	return ERR_OK;
}

/* Reads all parameters; those of a request for a preset, and then the preset's. */
static enum error read_parameters(struct reading *r, const struct request *request,
                                  const char *filter, struct problem *problem)
{
	const struct head *head = &request->head;
	const enum scope scope = filter            ? SCOPE_FILTER
	                         : request->preset ? SCOPE_PRESET
	                                           : SCOPE_CHAIN;
	enum error e = filter ? chain_add_filter(r->chain, filter, problem) : ERR_OK;

	for (unsigned i = 0; !e && i < head->parameters; i++) {
		const char *name = head->parameter[i].name, *value = head->parameter[i].value;
		const bool own = i < head->parameters - request->fixed;

		for (unsigned before = 0; before < i; before++)
			if (!strcmp(head->parameter[before].name, name))
				return bad_parameter(problem, name, value,
				                     "%s is given more than once", name);
		e = read_parameter(r, own ? scope : SCOPE_CHAIN, name, value, problem);
		if (!e && r->page < PAGES_MAX && r->pages)
			e = bad_parameter(problem, name, value,
			                  "page names one page, and pages=all is every page: "
			                  "expected one of the two");
	}
	return e;
}

static enum error parse(struct request *request, const char *filter, struct reading *r,
                        struct problem *problem)
{
	struct job_terms *terms = &request->terms;
	struct chain *chain = r->chain;
	enum error e;

	chain_init(chain);
	r->page = PAGES_MAX;
	r->priority = terms->best;
	e = read_parameters(r, request, filter, problem);
	if (!e && r->border_value)
		e = chain_set_border_value(chain, r->border_value, problem);
	if (!e && r->regions)
		e = chain_set_regions(chain, r->regions, problem);
	chain->border = r->border;
	chain->regions.feather = r->feather;
	r->options.mask = request->head.mask;
	r->options.mask_invert = r->invert;
	chain->regions.invert = r->invert && (r->regions || !r->options.mask);
	if (!e)
		e = add_filters(r, problem);
	if (!e)
		e = check_together(r, terms->best, problem);
	if (!e && r->options.mask && request->preset) /* which it would change */
		e = problem_set_parameter(problem, ERR_BAD_PARAMETER, "mask", "",
		                          "mask: expected a request without a preset");
	if (!e) /* regions are given in the image, and the chain filters the roi */
		regions_move(&chain->regions, &chain->coefficient[chain->regions.first],
		             -(int)r->options.roi.x, -(int)r->options.roi.y);
	if (!e)
		e = accept_parse(request->head.text[HEAD_ACCEPT], r->written, r->options.accept,
		                 problem);
	r->options.raw_image.alpha = r->alpha;
	r->options.page = r->pages ? PAGES_ALL : r->page < PAGES_MAX ? r->page + 1 : PAGE_FIRST;
	request->options = r->options;
	terms->priority = (enum priority)r->priority;
	terms->codec = (enum jpeg_by)r->codec;
	terms->devices = r->devices;
	terms->deadline =
	    r->deadline_ms ? request->arrived + r->deadline_ms * UINT64_C(1000000) : 0;
	return e;
}

enum error request_parse(struct request *request, const char *filter, struct chain *chain,
                         struct problem *problem)
{
	struct reading r = {.chain = chain, .written = repertoire().written};

	return parse(request, filter, &r, problem);
}

enum error request_check_preset(const struct head *head, struct problem *problem)
{
	static struct chain chain;
	struct request request = {.head = *head};
	struct reading r = {
	    .chain = &chain, .is_preset = true, .written = format_sets_known().written};

	return parse(&request, NULL, &r, problem);
}
