/* OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0). openapi.json has all that is the same in
 * every service; its members beside the document are parts that several operations have. A route
 * becomes an operation; a route with {name} in its path becomes one operation for each filter,
 * because their parameters differ. */
#include "front/api/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/api/catalogue.h"
#include "front/workers/repertoire.h"

/* Statuses of refusals of any request, before its route counts. */
static const char everywhere[] = "400 403 408 413 414 415 421 429 431 500 501 505";

static json_t *reference(const char *kind, const char *name)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

static json_t *member(const json_t *object, const char *name, const char *of_it)
{
	return json_object_get(json_object_get(object, name), of_it);
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

/* Adds an answer for each status of an error, whose text is the titles of its errors. */
static void add_errors(json_t *responses, const json_t *template)
{
	char name[32];

	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++) {
		json_t *response;
		const char *text;

		snprintf(name, sizeof name, "Problem%d", error_status(e));
		if (!json_object_get(responses, name))
			json_object_set_new(responses, name, json_deep_copy(template));
		response = json_object_get(responses, name);
		text = json_string_value(json_object_get(response, "description"));
		json_object_set_new(
		    response, "description",
		    json_sprintf("%s%s%s", text, *text ? "; " : "", error_title(e)));
	}
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

/* A route's answers are STATUS:NAME. */
static json_t *route_answers(const struct route *route)
{
	json_t *list = json_object();
	const char *names = route->answers;
	char word[64];

	while (next_word(&names, word)) {
		char *name = strchr(word, ':');

		*name++ = '\0';
		json_object_set_new(list, word, reference("responses", name));
	}
	add_problems(list, everywhere);
	add_problems(list, route->problems);
	return list;
}

static json_t *make_parameter(const char *name, const char *in, const char *text, json_t *schema,
                              bool required)
{
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "in", in, "description", text,
	                 "required", required, "schema", schema);
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

static json_t *route_parameters(const struct route *route, enum filter filter,
                                const json_t *skeleton)
{
	json_t *list = json_array();
	const char *query = route->query;
	char word[64];

	if (strstr(route->path, "{id}"))
		json_array_append(list, json_object_get(skeleton, "id"));
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

static json_t *make_operation(const struct route *route, const char *path, enum filter filter,
                              const json_t *skeleton)
{
	bool image = !route->act;
	const char *tag = strncmp(path, "/v1/", 4) ? "service" : path + 4;
	json_t *operation =
	    json_pack("{s:o, s:s, s:[o], s:o, s:o}", "operationId", operation_id(route, path),
	              "summary", image && filter < FILTERS ? filter_text(filter) : route->summary,
	              "tags", json_stringn(tag, strcspn(tag, "/")), "parameters",
	              route_parameters(route, filter, skeleton), "responses", route_answers(route));

	if (image)
		json_object_set(operation, "requestBody",
		                json_object_get(skeleton, filter < FILTERS ? "image" : "chain"));
	return operation;
}

/* filter: replaces {name} in the route's path; FILTERS if there is none. */
static void add_operation(json_t *paths, const struct route *route, enum filter filter,
                          const json_t *skeleton)
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
	json_object_set_new(item, method, make_operation(route, path, filter, skeleton));
}

static void add_paths(json_t *paths, const struct route *routes, size_t count,
                      const json_t *skeleton)
{
	for (size_t i = 0; i < count; i++)
		if (!routes[i].summary)
			continue;
		else if (strstr(routes[i].path, "{name}"))
			for (enum filter f = 0; f < FILTERS; f++)
				add_operation(paths, &routes[i], f, skeleton);
		else
			add_operation(paths, &routes[i], FILTERS, skeleton);
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

void openapi_answer(struct request *r, const struct route *routes, size_t count)
{
	json_t *skeleton = json_loads(openapi_embedded->text, 0, NULL);
	json_t *document = json_object_get(skeleton, "document");
	json_t *info = json_object_get(document, "info");
	json_t *components = json_object_get(document, "components");
	json_t *schemas = json_object_get(components, "schemas");
	json_t *responses = json_object_get(components, "responses");
	json_t *parameters = json_object_get(components, "parameters");
	json_t *media = member(responses, "Image", "content");
	json_t *links = json_array(), *types = json_array();
	const struct common_parameter *p;

	json_object_set_new(info, "version", json_string(PACKAGE_VERSION));
	add_paths(json_object_get(document, "paths"), routes, count, skeleton);
	for (enum filter filter = 0; filter < FILTERS; filter++)
		json_array_append_new(links, link_schema(filter));
	json_object_set_new(schemas, "Chain",
	                    json_pack("{s:s, s:i, s:i, s:{s:o}}", "type", "array", "minItems", 1,
	                              "maxItems", CHAIN_FILTERS_MAX, "items", "oneOf", links));
	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++)
		json_array_append_new(types, json_sprintf("/problems/%s", error_slug(e)));
	json_object_set_new(member(schemas, "Problem", "properties"), "type",
	                    json_pack("{s:o}", "enum", types));
	for (size_t i = 0; (p = request_common_parameter(i)); i++)
		json_object_set_new(
		    parameters, p->name,
		    make_parameter(p->name, "query", p->text, catalogue_schema(p->schema), false));
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(repertoire().written, f))
			json_object_set_new(media, format_media_type(f),
			                    json_pack("{s:{s:s, s:s}}", "schema", "type", "string",
			                              "format", "binary"));
	add_errors(responses, json_object_get(skeleton, "problem"));
	json_object_set_new(member(components, "headers", "X-Lost"), "schema", lost_schema());
	answer_json(&r->answer, 200, json_incref(document));
	json_decref(skeleton);
}
