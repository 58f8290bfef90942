/* OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0). A route becomes an operation; a route with
 * {name} in its path becomes one operation for each filter, because their parameters differ. What
 * several operations share (parameters, answers, problems, schemas) are components that they refer
 * to. */
#include "front/api/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/api/catalogue.h"
#include "front/workers/repertoire.h"

/* Schemas of objects: "member:type", matching describe_…() in catalogue.c and async.c. A
 * type is one of JSON's or the name of another schema; "[]" makes it a list, "=" a text that is it
 * as JSON, "?" says that the member may be missing, "~" that it may be null. */
static const struct {
	const char *name, *members;
} objects[] = {
    {"Parameter", "name:string type:string text:string default:any~ unit:string? "
                  "minimum:number?~ maximum:number?~ choices:string[]?"},
    {"Filter", "name:string text:string parameters:Parameter[]"},
    {"Common", "name:string text:string chain_only:boolean choices:string[]?"},
    {"Filters", "filters:Filter[] common:Common[]"},
    {"Progress", "tiles_done:integer tiles:integer~"},
    {"Links", "self:string result:string events:string"},
    {"Job", "id:string state:string progress:Progress left_seconds:number~ links:Links "
            "kept_seconds:integer? lost:string[]? problem:Problem?"},
    {"JobEvent", "event:string data:Job="},
    {"Device", "id:string index:string name:string driver:string type:string state:string "
               "jpeg:boolean memory_bytes:integer "
               "tiles_done:integer tiles_in_flight:integer restarts:integer startup_seconds:number "
               "pid:integer"},
    {"Devices", "devices:Device[]"},
    {"Kernel", "kernel:string device:string count:integer total_seconds:number min_seconds:number "
               "p50_seconds:number "
               "p90_seconds:number p99_seconds:number max_seconds:number bytes:integer "
               "bytes_per_second:number"},
    {"Candidate", "variant:string shape:string sample_seconds:number~"},
    {"Choice", "device:string work:string variant:string chosen:integer candidates:Candidate[]"},
    {"Variant", "name:string origin:string text:string"},
    {"Kernels", "kernels:Kernel[] choices:Choice[] variants:Variant[]"},
    {"Problem", "type:string title:string status:integer detail:string? parameter:string? "
                "value:string?"},
};

/* What a route may answer; media "" is an image in any format, NULL no body. The schema is one of
 * the above, or a JSON type; of a stream it is that of each event. Several media, separated by
 * spaces, have the same. */
static const struct {
	const char *name, *status, *text, *media, *schema;
} answers[] = {
    {"Image", "200",
     "The filtered image, in the format of the body unless format or Accept names another", "",
     NULL},
    {"Accepted", "202", "Accepted, with Prefer: respond-async; Location is the job's address",
     "application/json", "Job"},
    {"Job", "200", "The job", "application/json", "Job"},
    {"Unchanged", "304", "Not modified: If-None-Match names this version", NULL, NULL},
    {"Deleted", "204", "Cancelled or forgotten", NULL, NULL},
    {"Events", "200", "Events `progress`, whose data is the job as JSON, and `end`",
     "text/event-stream", "JobEvent"},
    {"Filters", "200", "The filters", "application/json", "Filters"},
    {"Filter", "200", "The filter", "application/json", "Filter"},
    {"Devices", "200", "The devices", "application/json", "Devices"},
    {"Kernels", "200", "The kernels", "application/json", "Kernels"},
    {"Index", "200", "A text, or a page", "text/plain text/html", "string"},
    {"Page", "200", "A page", "text/html", "string"},
    {"Module", "200", "The module", "text/javascript", "string"},
    {"Document", "200", "The document", "application/json", "object"},
    {"Text", "200", "A text", "text/plain", "string"},
    {"NotReady", "503", "Not ready; verbose tells why", "text/plain", "string"},
};

/* Parameters of single routes, and headers. */
static const struct {
	const char *name, *in, *schema, *text;
} parameters[] = {
    {"wait", "query", "{'type':'integer','minimum':0,'maximum':300,'default':0}",
     "Seconds that the answer may wait for the end of the job"},
    {"verbose", "query", "{'type':'string'}", "List the conditions and which of them hold"},
    {"Prefer", "header", "{'type':'string','examples':['respond-async']}",
     "respond-async: 202 as soon as the body has arrived (RFC 7240)"},
    {"X-Busy-Status", "header", "{'type':'string','examples':['503']}",
     "503: the status of a refusal because of load, in place of 429 (for balancers)"},
    {"traceparent", "header",
     "{'type':'string','examples':['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01']}",
     "The trace that the request belongs to, for the log (W3C Trace Context); a malformed one is "
     "ignored"},
    {"If-None-Match", "header", "{'type':'string','examples':['W/\\u00225e99d570e3306928\\u0022']}",
     "ETags that the client has: 304 if one of them is still the answer's"},
};

/* What any request may be refused for, before its route counts. */
static const char everywhere[] = "400 403 408 413 414 415 421 429 431 500 501 505";

/* Headers of answers: of all (""), of images, of those with one of these statuses. */
static const struct {
	const char *name, *of, *text;
	bool always;
} headers[] = {
    {"Server-Timing", "", "Milliseconds of every stage and kernel; stages overlap", true},
    {"X-Request-Id", "", "Identifies the request in the log", true},
    {"X-Image", "image", "WIDTHxHEIGHTxBANDS:TYPE of the answer", true},
    {"X-Pages", "image",
     "Number of pages or frames of the body; missing if it has one. With pages=all the answer has "
     "as many, each as X-Image says",
     false},
    {"X-Device", "image", "The devices that filtered it", false},
    {"X-Codec", "image",
     "Who has decoded and encoded it: cpu or a device; where two did, as decode=…, encode=…", true},
    {"X-Lost", "image", "What the image has lost by its format; missing if it has lost nothing",
     false},
    {"X-Verify-Samples", "image", "With verify=1: samples that were compared", false},
    {"X-Verify-Mismatches", "image", "With verify=1: samples that were wrong, and were replaced",
     false},
    {"X-Verify-Max-Difference", "image", "With verify=1: the largest difference", false},
    {"ETag", "200 304", "For If-None-Match; only of what may be asked for again", false},
    {"Location", "202", "The job's address", true},
    {"Preference-Applied", "202", "respond-async", true},
    {"Retry-After", "409 429 503", "Seconds to wait before asking again", true},
    {"X-Busy-Status", "503", "429, if the request's X-Busy-Status changed it", false},
    {"WWW-Authenticate", "401", "Bearer, and what is wrong with the token", true},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static json_t *reference(const char *kind, const char *name)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

/* The next word of a space-separated list; NULL after the last. */
static const char *next_word(const char **list, char word[64])
{
	size_t length = strcspn(*list, " ");

	if (!length)
		return NULL;
	snprintf(word, 64, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ' ');
	return word;
}

/* Schemas ------------------------------------------------------------------------------------- */

static json_t *member_schema(const char *type, const char *suffix)
{
	char name[32];
	json_t *schema;

	snprintf(name, sizeof name, "%.*s", (int)(suffix - type), type);
	if (!strcmp(name, "any"))
		return json_object();
	schema = isupper((unsigned char)*name) ? reference("schemas", name)
	         : strchr(suffix, '~')         ? json_pack("{s:[s, s]}", "type", name, "null")
	                                       : json_pack("{s:s}", "type", name);
	if (strchr(suffix, '='))
		return json_pack("{s:s, s:s, s:o}", "type", "string", "contentMediaType",
		                 "application/json", "contentSchema", schema);
	return strstr(suffix, "[]") ? json_pack("{s:s, s:o}", "type", "array", "items", schema)
	                            : schema;
}

static json_t *object_schema(const char *members)
{
	json_t *required = json_array(), *properties = json_object();
	char word[64];

	while (next_word(&members, word)) {
		char *type = strchr(word, ':');
		const char *suffix;

		*type++ = '\0';
		suffix = type + strcspn(type, "[=?~");
		if (!strchr(suffix, '?'))
			json_array_append_new(required, json_string(word));
		json_object_set_new(properties, word, member_schema(type, suffix));
	}
	return json_pack("{s:s, s:o, s:o}", "type", "object", "required", required, "properties",
	                 properties);
}

static void set_limit(json_t *schema, const char *key, double limit, bool whole)
{
	json_object_set_new(schema, key,
	                    whole ? json_integer((json_int_t)limit) : json_real(limit));
}

/* A filter's parameter as it is in a query. */
static json_t *parameter_schema(const struct parameter *p)
{
	bool whole = p->type == PARAMETER_INTEGER || p->type == PARAMETER_ODD;
	json_t *schema, *value = catalogue_default(p);

	if (p->type == PARAMETER_CHOICE) {
		schema = json_pack("{s:o}", "enum", catalogue_choices(p));
	} else if (p->type == PARAMETER_MATRIX) {
		schema = catalogue_schema("{'type':'string','examples':['1,2,1;2,4,2;1,2,1']}");
	} else {
		schema = p->type == PARAMETER_NUMBERS
		             ? catalogue_schema("{'type':['number','string'],"
		                                "'pattern':'^[-+.,; 0-9eE]+$'}")
		         : parameter_takes_share(p)
		             ? catalogue_schema("{'type':['number','string'],"
		                                "'pattern':'^[+.0-9eE]+%$'}")
		             : json_pack("{s:s}", "type", whole ? "integer" : "number");
		set_limit(schema, "minimum", p->min, whole);
		set_limit(schema, "maximum", p->max, whole);
		if (!json_is_null(value))
			set_limit(schema, "default", p->default_, whole);
	}
	if (p->type == PARAMETER_ODD)
		json_object_set_new(schema, "not", json_pack("{s:i}", "multipleOf", 2));
	if (p->type == PARAMETER_CHOICE)
		json_object_set(schema, "default", value);
	if (p->filter == FILTER_COLORMATRIX)
		json_object_set_new(schema, "examples",
		                    json_pack("[s]", "0,0,1,0;0,1,0,0;1,0,0,0"));
	json_decref(value);
	return schema;
}

static bool is_required(const struct parameter *p)
{
	return p->type == PARAMETER_MATRIX || p->filter == FILTER_COLORMATRIX;
}

/* A filter's parameter as it is in a JSON chain, which may also have rows as arrays. */
static json_t *link_parameter_schema(const struct parameter *p)
{
	static const char rows[] =
	    "{'type':'array','items':{'type':'array','items':{'type':'number'}}}";
	static const char numbers[] = "{'type':'array','items':{'oneOf':[{'type':'number'},"
	                              "{'type':'array','items':{'type':'number'}}]}}";
	json_t *schema = parameter_schema(p);

	if (p->type != PARAMETER_MATRIX && p->type != PARAMETER_NUMBERS)
		return schema;
	return json_pack("{s:[o, o]}", "oneOf", schema,
	                 catalogue_schema(p->type == PARAMETER_MATRIX ? rows : numbers));
}

/* A filter as an element of a JSON chain. */
static json_t *link_schema(enum filter filter)
{
	json_t *properties = json_pack("{s:{s:[s]}}", "filter", "enum", filter_name(filter));
	json_t *required = json_pack("[s]", "filter");
	const struct parameter *p;

	for (size_t i = 0; (p = filter_parameter(filter, i)); i++) {
		if (is_required(p))
			json_array_append_new(required, json_string(p->name));
		json_object_set_new(properties, p->name, link_parameter_schema(p));
	}
	return json_pack("{s:s, s:s, s:o, s:o, s:b}", "type", "object", "description",
	                 filter_text(filter), "required", required, "properties", properties,
	                 "additionalProperties", 0);
}

static json_t *chain_schema(void)
{
	json_t *links = json_array();

	for (enum filter f = 0; f < FILTERS; f++)
		json_array_append_new(links, link_schema(f));
	return json_pack("{s:s, s:i, s:i, s:{s:o}}", "type", "array", "minItems", 1, "maxItems",
	                 CHAIN_FILTERS_MAX, "items", "oneOf", links);
}

/* The problem types. */
static json_t *problem_types(void)
{
	json_t *types = json_array();

	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++)
		json_array_append_new(types, json_sprintf("/problems/%s", error_slug(e)));
	return json_pack("{s:o}", "enum", types);
}

static json_t *make_schemas(void)
{
	json_t *schemas = json_object(), *problem;

	for (size_t i = 0; i < COUNT(objects); i++)
		json_object_set_new(schemas, objects[i].name, object_schema(objects[i].members));
	problem = json_object_get(json_object_get(schemas, "Problem"), "properties");
	json_object_set_new(problem, "type", problem_types());
	json_object_set_new(schemas, "Chain", chain_schema());
	return schemas;
}

/* Answers -------------------------------------------------------------------------------------- */

/* True if the header is one of an answer with this status. */
static bool header_fits(const char *of, const char *status, bool image)
{
	char word[64];

	if (!*of)
		return true;
	while (next_word(&of, word))
		if (!strcmp(word, status) || (image && !strcmp(word, "image")))
			return true;
	return false;
}

static json_t *answer_headers(const char *status, bool image)
{
	json_t *list = json_object();

	for (size_t i = 0; i < COUNT(headers); i++)
		if (header_fits(headers[i].of, status, image))
			json_object_set_new(list, headers[i].name,
			                    reference("headers", headers[i].name));
	return list;
}

/* Bytes. (In 3.1 a media type without a schema means that; generators recognise this.) */
static json_t *binary_schema(void)
{
	return json_pack("{s:s, s:s}", "type", "string", "format", "binary");
}

static json_t *image_media(void)
{
	json_t *media = json_object();

	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(repertoire().written, f))
			json_object_set_new(media, format_media_type(f),
			                    json_pack("{s:o}", "schema", binary_schema()));
	return media;
}

/* One of our schemas, whose names begin with a capital letter, or a JSON type. */
static json_t *content_schema(const char *name)
{
	return isupper((unsigned char)*name) ? reference("schemas", name)
	                                     : json_pack("{s:s}", "type", name);
}

static json_t *text_media(const char *names, const char *schema)
{
	json_t *media = json_object();
	char name[64];

	while (next_word(&names, name))
		json_object_set_new(media, name,
		                    json_pack("{s:o}", "schema", content_schema(schema)));
	return media;
}

static json_t *make_answer(size_t i)
{
	const char *media = answers[i].media;
	bool image = media && !*media;
	json_t *answer = json_pack("{s:s, s:o}", "description", answers[i].text, "headers",
	                           answer_headers(answers[i].status, image));

	if (media)
		json_object_set_new(answer, "content",
		                    image ? image_media() : text_media(media, answers[i].schema));
	return answer;
}

/* The answer to all errors with this status: their titles. */
static json_t *make_problem(int status)
{
	char text[1024] = "", code[8];
	size_t used = 0;

	snprintf(code, sizeof code, "%d", status);
	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++)
		if (error_status(e) == status && used < sizeof text)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
			                         used ? "; " : "", error_title(e));
	return json_pack("{s:s, s:o, s:{s:{s:o}}}", "description", text, "headers",
	                 answer_headers(code, false), "content", "application/problem+json",
	                 "schema", reference("schemas", "Problem"));
}

static json_t *make_answers(void)
{
	json_t *list = json_object();
	char name[32];

	for (size_t i = 0; i < COUNT(answers); i++)
		json_object_set_new(list, answers[i].name, make_answer(i));
	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++) {
		snprintf(name, sizeof name, "Problem%d", error_status(e));
		if (!json_object_get(list, name))
			json_object_set_new(list, name, make_problem(error_status(e)));
	}
	return list;
}

/* Adds the problems with these statuses. */
static void add_problems(json_t *list, const char *statuses)
{
	char word[64], name[72];

	while (next_word(&statuses, word)) {
		snprintf(name, sizeof name, "Problem%s", word);
		json_object_set_new(list, word, reference("responses", name));
	}
}

static json_t *route_answers(const struct route *route)
{
	json_t *list = json_object();
	const char *names = route->answers;
	char word[64];

	while (next_word(&names, word))
		for (size_t i = 0; i < COUNT(answers); i++)
			if (!strcmp(answers[i].name, word))
				json_object_set_new(list, answers[i].status,
				                    reference("responses", word));
	add_problems(list, everywhere);
	add_problems(list, route->problems);
	return list;
}

/* Operations ----------------------------------------------------------------------------------- */

static json_t *make_parameter(const char *name, const char *in, const char *text, json_t *schema,
                              bool required)
{
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "in", in, "description", text,
	                 "required", required, "schema", schema);
}

static json_t *make_parameters(void)
{
	const struct common_parameter *p;
	json_t *list = json_object();

	for (size_t i = 0; (p = request_common_parameter(i)); i++)
		json_object_set_new(
		    list, p->name,
		    make_parameter(p->name, "query", p->text, catalogue_schema(p->schema), false));
	for (size_t i = 0; i < COUNT(parameters); i++)
		json_object_set_new(list, parameters[i].name,
		                    make_parameter(parameters[i].name, parameters[i].in,
		                                   parameters[i].text,
		                                   catalogue_schema(parameters[i].schema), false));
	return list;
}

static bool filter_has(enum filter filter, const char *name)
{
	const struct parameter *p;

	for (size_t i = 0; filter < FILTERS && (p = filter_parameter(filter, i)); i++)
		if (!strcmp(p->name, name))
			return true;
	return false;
}

/* The parameters of an image's route; filter FILTERS: of a chain. */
static void add_image_parameters(json_t *list, enum filter filter)
{
	const struct common_parameter *common;
	const struct parameter *p;

	for (size_t i = 0; filter < FILTERS && (p = filter_parameter(filter, i)); i++)
		json_array_append_new(list, make_parameter(p->name, "query", p->text,
		                                           parameter_schema(p), is_required(p)));
	for (size_t i = 0; (common = request_common_parameter(i)); i++)
		if (!(common->for_chain && filter < FILTERS) && !filter_has(filter, common->name))
			json_array_append_new(list, reference("parameters", common->name));
	json_array_append_new(list, reference("parameters", "Prefer"));
	json_array_append_new(list, reference("parameters", "X-Busy-Status"));
}

static json_t *image_body(bool chain)
{
	json_t *part =
	    catalogue_schema("{'type':'object','required':['image'],'properties':{'image':{'type':'"
	                     "string','format':'binary'}},'description':'Parameters "
	                     "may also be parts of the form'}");

	if (chain)
		json_object_set_new(json_object_get(part, "properties"), "chain",
		                    reference("schemas", "Chain"));
	return json_pack(
	    "{s:b, s:s, s:{s:{s:o}, s:{s:o}, s:{s:o}}}", "required", 1, "description",
	    "The image; its format is recognised by its content, whatever the declared type",
	    "content", "application/octet-stream", "schema", binary_schema(), "image/*", "schema",
	    binary_schema(), "multipart/form-data", "schema", part);
}

static json_t *route_parameters(const struct route *route, enum filter filter)
{
	json_t *list = json_array();
	const char *query = route->query;
	char word[64];

	if (strstr(route->path, "{id}"))
		json_array_append_new(
		    list,
		    make_parameter(
		        "id", "path", "The address of the job",
		        catalogue_schema(
		            "{'type':'string','pattern':'^[0-9a-f]{16}(-[0-9A-Za-z._-]+)?$'}"),
		        true));
	while (next_word(&query, word))
		json_array_append_new(list, reference("parameters", word));
	if (!route->act)
		add_image_parameters(list, filter);
	json_array_append_new(list, reference("parameters", "traceparent"));
	return list;
}

static void to_lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* The method and the path with letters and digits kept, the rest as '-'. */
static json_t *operation_id(const struct route *route, const char *path)
{
	char id[96];

	snprintf(id, sizeof id, "%s%s", route->method, path);
	to_lower(id);
	for (char *at = id; *at; at++)
		*at = isalnum((unsigned char)*at) ? *at : '-';
	return json_string(id);
}

static json_t *route_tag(const char *path)
{
	const char *first = strncmp(path, "/v1/", 4) ? "service" : path + 4;

	return json_pack("[o]", json_stringn(first, strcspn(first, "/")));
}

static json_t *make_operation(const struct route *route, const char *path, enum filter filter)
{
	bool image = !route->act;
	json_t *operation =
	    json_pack("{s:o, s:s, s:o, s:o, s:o}", "operationId", operation_id(route, path),
	              "summary", image && filter < FILTERS ? filter_text(filter) : route->summary,
	              "tags", route_tag(path), "parameters", route_parameters(route, filter),
	              "responses", route_answers(route));

	if (image)
		json_object_set_new(operation, "requestBody", image_body(filter == FILTERS));
	return operation;
}

/* filter: replaces {name} in the route's path; FILTERS if there is none. */
static void add_operation(json_t *paths, const struct route *route, enum filter filter)
{
	const char *tail = strchr(route->path, '}');
	char path[96], method[16];
	json_t *item;

	snprintf(method, sizeof method, "%s", route->method);
	to_lower(method);
	snprintf(path, sizeof path, "%s", route->path);
	if (filter < FILTERS)
		snprintf(path, sizeof path, "%.*s%s%s", (int)strcspn(route->path, "{"), route->path,
		         filter_name(filter), tail + 1);
	item = json_object_get(paths, path);
	if (!item) {
		item = json_object();
		json_object_set_new(paths, path, item);
	}
	json_object_set_new(item, method, make_operation(route, path, filter));
}

static json_t *make_paths(const struct route *routes, size_t count)
{
	json_t *paths = json_object();

	for (size_t i = 0; i < count; i++)
		if (!routes[i].summary)
			continue;
		else if (strstr(routes[i].path, "{name}"))
			for (enum filter f = 0; f < FILTERS; f++)
				add_operation(paths, &routes[i], f);
		else
			add_operation(paths, &routes[i], FILTERS);
	return paths;
}

/* X-Lost: a list in which a space follows each comma, which an array's serialisation has not. */
static json_t *lost_schema(void)
{
	char tokens[256], meanings[1024];
	size_t length = 0, told = 0;

	for (enum loss l = 0; l < LOSSES; l++) {
		const char *token = loss_token(l);

		if (length < sizeof tokens)
			length += (size_t)snprintf(tokens + length, sizeof tokens - length, "%s%s",
			                           l ? "|" : "", token);
		if (told < sizeof meanings)
			told += (size_t)snprintf(meanings + told, sizeof meanings - told,
			                         "%s%s: %s", l ? "; " : "", token, loss_text(l));
	}
	return json_pack("{s:s, s:o, s:s}", "type", "string", "pattern",
	                 json_sprintf("^(%s)(, (%s))*$", tokens, tokens), "description", meanings);
}

static json_t *make_headers(void)
{
	json_t *list = json_object();

	for (size_t i = 0; i < COUNT(headers); i++)
		json_object_set_new(list, headers[i].name,
		                    json_pack("{s:s, s:b, s:{s:s}}", "description", headers[i].text,
		                              "required", headers[i].always, "schema", "type",
		                              "string"));
	json_object_set_new(json_object_get(list, "X-Lost"), "schema", lost_schema());
	return list;
}

void openapi_answer(struct request *r, const struct route *routes, size_t count)
{
	answer_json(
	    &r->answer, 200,
	    json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:s}], s:[{}, {s:[]}], s:o, s:{s:o, s:o, s:o, "
	              "s:o, s:{s:{s:s, s:s, s:s}}}}",
	              "openapi", "3.1.0", "info", "title", "convolved", "version", PACKAGE_VERSION,
	              "description",
	              "Filters images on OpenCL devices. Every GET may also be a HEAD.", "servers",
	              "url", "/", "security", "token", "paths", make_paths(routes, count),
	              "components", "schemas", make_schemas(), "parameters", make_parameters(),
	              "responses", make_answers(), "headers", make_headers(), "securitySchemes",
	              "token", "type", "http", "scheme", "bearer", "description",
	              "If tokens are configured; /livez and /readyz need none"));
}
