/* Descriptions of the service, made from its tables.
 *
 * OpenAPI 3.1: openapi.json has the parts that are the same in every service; its members beside
 * the document are parts shared by several operations. A route with {name} in its path becomes one
 * operation for each filter, because their parameters differ. */
#include "front/api/catalogue.h"

#include <glib.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "front/api/presets.h"
#include "front/base/metrics.h"
#include "front/workers/device_table.h"
#include "front/workers/discovery.h"
#include "front/workers/repertoire.h"

/* Values --------------------------------------------------------------------------------------- */

/* NAN (no default, no bound) is null in JSON. */
static json_t *number_or_null(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

static json_t *list_words(const char *words)
{
	json_t *list = json_array();
	const char *word;
	size_t length;

	for (size_t i = 0; (word = value_word(words, i, &length)); i++)
		json_array_append_new(list, json_stringn(word, length));
	return list;
}

/* JSON that is written with ' for ". */
static json_t *schema_of_text(const char *text)
{
	char *copy = g_strdelimit(g_strdup(text), "'", '"');
	json_t *schema = json_loads(copy, 0, NULL);

	g_free(copy);
	return schema;
}

/* Returns the schema of a value in a query; default_: NAN if there is none. */
static json_t *schema_of_kind(const struct value_kind *kind, double default_)
{
	const bool whole = kind->type != VALUE_NUMBER;
	const struct {
		const char *name;
		double number;
	} facts[] = {{"minimum", kind->min}, {"maximum", kind->max}, {"default", default_}};
	char word[32];
	json_t *schema;

	if (kind->type == VALUE_WORD) {
		value_print(kind, default_, word, sizeof word);
		return json_pack("{s:o, s:s}", "enum", list_words(kind->unit), "default", word);
	}
	schema = json_pack("{s:s}", "type", whole ? "integer" : "number");
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (!isnan(facts[i].number))
			json_object_set_new(schema, facts[i].name,
			                    whole ? json_integer((json_int_t)facts[i].number)
			                          : json_real(facts[i].number));
	if (kind->type == VALUE_ODD)
		json_object_set_new(schema, "not", json_pack("{s:i}", "multipleOf", 2));
	return schema;
}

/* Replaces the enum 'formats' of a schema by the formats that are offered. */
static json_t *schema_of_common(const struct common_parameter *p)
{
	const struct format_offer *offer;
	json_t *schema, *choices;

	if (!p->schema)
		return schema_of_kind(&p->kind, p->default_);
	schema = schema_of_text(p->schema);
	if (json_is_string(json_object_get(schema, "enum"))) {
		choices = json_array();
		for (size_t i = 0; (offer = format_offer(i)); i++)
			if (format_in(repertoire().written, offer->format))
				json_array_append_new(choices, json_string(offer->name));
		json_object_set_new(schema, "enum", choices);
	}
	return schema;
}

/* The catalogue -------------------------------------------------------------------------------- */

/* Returns the choices of a filter's parameter with which it has a window; NULL if the choice does
 * not matter for that. */
static json_t *list_windows(enum filter filter, size_t at, const json_t *choices)
{
	static struct chain chain;
	json_t *list = json_array();
	struct filter_call *call;
	uint32_t x, y;

	chain_init(&chain);
	call = chain_append(&chain, filter, CHANNELS_ALL);
	for (size_t i = 0; i < json_array_size(choices); i++) {
		call->value[at] = (double)i;
		filter_radius(call, &x, &y);
		if (x || y)
			json_array_append(list, json_array_get(choices, i));
	}
	if (json_array_size(list) && json_array_size(list) < json_array_size(choices))
		return list;
	json_decref(list);
	return NULL;
}

static json_t *describe_filter(enum filter filter)
{
	static const char *const types[] = {"number", "integer", "odd",
	                                    "choice", "matrix",  "numbers"};
	const struct filter_row *row = known_filters[filter].row;
	/* Results depend on pixels around their own. */
	const bool border = row->radius || row->window.by || row->window.number || row->smoothing;
	json_t *parameters = json_array(), *choices, *standard;
	const struct parameter *p;

	for (size_t i = 0; (p = filter_parameter(filter, i)); i++) {
		const bool choice = p->type == PARAMETER_CHOICE;

		choices = choice ? list_words(p->unit) : NULL;
		standard = choice ? json_incref(json_array_get(choices, (size_t)p->default_))
		                  : number_or_null(p->default_);
		json_array_append_new(
		    parameters,
		    json_pack("{s:s, s:s, s:s, s:o, s:s*, s:o*, s:o*, s:o*, s:o*}", "name", p->name,
		              "type", types[p->type], "text", p->text, "default", standard, "unit",
		              choice ? NULL : p->unit, "minimum",
		              choice ? NULL : number_or_null(p->min), "maximum",
		              choice ? NULL : number_or_null(p->max), "choices", choices, "border",
		              choice ? list_windows(filter, i, choices) : NULL));
	}
	return json_pack("{s:s, s:s, s:b, s:o}", "name", known_filters[filter].name, "text",
	                 known_filters[filter].text, "border", border, "parameters", parameters);
}

void catalogue_get_filters(struct request *r)
{
	json_t *list = json_array(), *common = json_array();
	const struct common_parameter *p;

	for (enum filter f = 0; f < FILTERS; f++)
		json_array_append_new(list, describe_filter(f));
	for (size_t i = 0; (p = request_common_parameter(i)); i++) {
		json_t *schema = schema_of_common(p), *choices = json_object_get(schema, "enum");
		bool has_words = json_is_string(json_array_get(choices, 0)); /* not 0 and 1 */
		bool is_number = p->kind.type != VALUE_WORD && p->kind.unit && *p->kind.unit;

		json_array_append_new(
		    common,
		    json_pack("{s:s, s:s, s:b, s:b, s:O*, s:O*, s:s*, s:O*, s:O*}", "name", p->name,
		              "text", p->text, "chain_only", p->scope == SCOPE_CHAIN, "with_preset",
		              p->scope == SCOPE_PRESET, "choices", has_words ? choices : NULL,
		              "type", json_object_get(schema, "type"), "unit",
		              is_number ? p->kind.unit : NULL, "minimum",
		              json_object_get(schema, "minimum"), "maximum",
		              json_object_get(schema, "maximum")));
		json_decref(schema);
	}
	answer_json(&r->answer, 200,
	            json_pack("{s:o, s:o, s:o}", "filters", list, "presets", presets_describe(),
	                      "common", common));
}

void catalogue_get_filter(struct request *r)
{
	enum filter f = filter_parse(r->argument);
	struct problem problem;

	if (f == FILTERS)
		answer_problem(&r->answer, filter_unknown(r->argument, &problem), &problem);
	else
		answer_json(&r->answer, 200, describe_filter(f));
}

void catalogue_get_devices(struct request *r)
{
	json_t *list = json_array();
	const struct device *d;
	char index[32];

	for (unsigned i = 0; (d = device_get(i)); i++) {
		if (device_state(d) == DEVICE_REMOVED)
			continue;
		snprintf(index, sizeof index, "%u:%u", d->found.platform, d->found.device);
		json_array_append_new(
		    list,
		    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:f, s:i}",
		              "id", d->label, "index", index, "name", d->ready.name, "driver",
		              d->ready.driver, "type", device_types[d->found.type], "state",
		              device_states[device_state(d)], "jpeg",
		              d->ready.jpeg_pixels && d->programs.jpeg, "memory_bytes",
		              (json_int_t)d->ready.memory, "tiles_done", (json_int_t)d->tiles,
		              "tiles_in_flight", (json_int_t)d->held_count, "restarts",
		              (json_int_t)d->worker.restarts, "startup_seconds",
		              d->ready.startup_ms * 1e-3, "pid", (int)d->worker.pid));
	}
	answer_json(&r->answer, 200, json_pack("{s:o}", "devices", list));
}

/* The choice of a device's tuner for one kind of work, and the times that it measured. */
static json_t *describe_choice(const struct device *d, const struct message_choice *c)
{
	json_t *candidates = json_array();
	char shape[48];

	for (unsigned i = 0; i < c->count; i++) {
		const double ns = (double)c->candidate[i].ns;

		snprintf(shape, sizeof shape, "%ux%u by %ux%u", c->candidate[i].shape.x,
		         c->candidate[i].shape.y, c->candidate[i].shape.group_x,
		         c->candidate[i].shape.group_y);
		json_array_append_new(
		    candidates,
		    json_pack("{s:s, s:s, s:o}", "variant", kernel_name(c->candidate[i].kernel),
		              "shape", shape, "sample_seconds",
		              ns > 0 && c->samples ? json_real(ns * 1e-9 / (double)c->samples)
		                                   : json_null()));
	}
	return json_pack("{s:s, s:s, s:s, s:i, s:o}", "device", d->label, "work", c->work,
	                 "variant", kernel_name(c->candidate[c->chosen].kernel), "chosen",
	                 (int)c->chosen, "candidates", candidates);
}

void catalogue_get_kernels(struct request *r)
{
	static const char *const origins[] = {"general", "special", "classic"};
	const struct device *d;
	struct metric_summary s;
	json_t *kernels = json_array(), *choices = json_array(), *variants = json_array();

	for (size_t i = 0; metric_summary(METRIC_KERNEL_DURATION, i, &s); i++) {
		const double bytes = metric_value(METRIC_KERNEL_BYTES, s.label[0], s.label[1]);

		json_array_append_new(
		    kernels,
		    json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "kernel",
		              s.label[0], "device", s.label[1], "count", (json_int_t)s.count,
		              "total_seconds", s.total, "min_seconds", s.min, "p50_seconds", s.p50,
		              "p90_seconds", s.p90, "p99_seconds", s.p99, "max_seconds", s.max,
		              "bytes", (json_int_t)bytes, "bytes_per_second",
		              s.total > 0 ? bytes / s.total : 0.0));
	}
	for (unsigned i = 0; (d = device_get(i)); i++)
		for (unsigned j = 0; j < d->choice_count; j++)
			json_array_append_new(choices, describe_choice(d, &d->choices[j]));
	for (enum kernel k = 0; k < KERNELS; k++) {
		const struct kernel_row *row = kernel_row(k);

		if (row->operations)
			json_array_append_new(
			    variants, json_pack("{s:s, s:s, s:s}", "name", row->name, "origin",
			                        origins[row->origin], "text", row->text));
	}
	answer_json(&r->answer, 200,
	            json_pack("{s:o, s:o, s:o}", "kernels", kernels, "choices", choices, "variants",
	                      variants));
}

/* OpenAPI -------------------------------------------------------------------------------------- */

/* Statuses of refusals that any request may get before its route counts. */
static const char everywhere[] = "400 403 408 413 414 415 421 429 431 500 501 505";

static json_t *reference(const char *kind, const char *name)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

static json_t *member(const json_t *object, const char *name, const char *of_it)
{
	return json_object_get(json_object_get(object, name), of_it);
}

/* A filter's parameter as it is in a query. */
static json_t *schema_of_parameter(const struct parameter *p)
{
	const struct value_kind kind = parameter_kind(p);
	const char *pattern = p->type == PARAMETER_NUMBERS ? "^[-+.,; 0-9eE]+$"
	                      : parameter_takes_share(p)   ? "^[+.0-9eE]+%$"
	                                                   : NULL;
	json_t *schema;

	if (p->type == PARAMETER_MATRIX)
		return schema_of_text("{'type':'string','examples':['1,2,1;2,4,2;1,2,1']}");
	schema = schema_of_kind(&kind, p->default_);
	if (pattern) {
		json_object_set_new(schema, "type", json_pack("[s, s]", "number", "string"));
		json_object_set_new(schema, "pattern", json_string(pattern));
	}
	if (p->filter == FILTER_COLORMATRIX)
		json_object_set_new(schema, "examples",
		                    json_pack("[s]", "0,0,1,0;0,1,0,0;1,0,0,0"));
	return schema;
}

static bool is_required(const struct parameter *p)
{
	return p->type == PARAMETER_MATRIX || p->filter == FILTER_COLORMATRIX;
}

/* A filter as an element of a JSON chain, which may also have rows as arrays. */
static json_t *schema_of_link(enum filter filter)
{
	static const char rows[] =
	    "{'type':'array','items':{'type':'array','items':{'type':'number'}}}";
	static const char numbers[] = "{'type':'array','items':{'oneOf':[{'type':'number'},"
	                              "{'type':'array','items':{'type':'number'}}]}}";
	json_t *properties = json_pack("{s:{s:[s]}}", "filter", "enum", known_filters[filter].name);
	json_t *required = json_pack("[s]", "filter");
	const struct parameter *p;

	for (size_t i = 0; (p = filter_parameter(filter, i)); i++) {
		json_t *schema = schema_of_parameter(p);

		if (p->type == PARAMETER_MATRIX || p->type == PARAMETER_NUMBERS)
			schema =
			    json_pack("{s:[o, o]}", "oneOf", schema,
			              schema_of_text(p->type == PARAMETER_MATRIX ? rows : numbers));
		if (is_required(p))
			json_array_append_new(required, json_string(p->name));
		json_object_set_new(properties, p->name, schema);
	}
	return json_pack("{s:s, s:s, s:o, s:o, s:b}", "type", "object", "description",
	                 known_filters[filter].text, "required", required, "properties", properties,
	                 "additionalProperties", 0);
}

/* Adds an answer for each status of an error, whose text is the titles of its errors. */
static void add_errors(json_t *responses, const json_t *template)
{
	char name[32];

	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++) {
		json_t *response;
		const char *text;

		snprintf(name, sizeof name, "Problem%d", error_row(e)->status);
		if (!json_object_get(responses, name))
			json_object_set_new(responses, name, json_deep_copy(template));
		response = json_object_get(responses, name);
		text = json_string_value(json_object_get(response, "description"));
		json_object_set_new(
		    response, "description",
		    json_sprintf("%s%s%s", text, *text ? "; " : "", error_row(e)->title));
	}
}

/* Adds answers, STATUS:NAME, or STATUS alone for its problems. */
static void add_answers(json_t *list, const char *answers)
{
	char **words = g_strsplit(answers, " ", -1), problem[32];

	for (char **status = words; *status; status++) {
		char *name = strchr(*status, ':');

		if (name)
			*name++ = '\0';
		snprintf(problem, sizeof problem, "Problem%s", *status);
		json_object_set_new(list, *status, reference("responses", name ? name : problem));
	}
	g_strfreev(words);
}

static json_t *make_parameter(const char *name, const char *in, const char *text, json_t *schema,
                              bool required)
{
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "in", in, "description", text,
	                 "required", required, "schema", schema);
}

static json_t *route_parameters(const struct route *route, enum filter filter,
                                const json_t *skeleton)
{
	json_t *list = json_array();
	char **names = g_strsplit(route->query, " ", -1);
	const bool preset = strstr(route->path, "{preset}");
	const enum scope scope = preset             ? SCOPE_PRESET
	                         : filter < FILTERS ? SCOPE_FILTER
	                                            : SCOPE_CHAIN;
	const struct common_parameter *common;
	const struct parameter *p;
	size_t at;

	if (preset || strstr(route->path, "{id}"))
		json_array_append(list, json_object_get(skeleton, preset ? "preset" : "id"));
	if (!route->act) {
		for (size_t i = 0; filter < FILTERS && (p = filter_parameter(filter, i)); i++)
			json_array_append_new(list, make_parameter(p->name, "query", p->text,
			                                           schema_of_parameter(p),
			                                           is_required(p)));
		for (size_t i = 0; (common = request_common_parameter(i)); i++)
			if (common->scope >= scope &&
			    (filter == FILTERS ||
			     !filter_find_parameter(filter, common->name, &at)))
				json_array_append_new(list, reference("parameters", common->name));
	}
	for (char **name = names; *name; name++)
		json_array_append_new(list, reference("parameters", *name));
	g_strfreev(names);
	json_array_append_new(list, reference("parameters", "traceparent"));
	return list;
}

/* filter: replaces {name} in the route's path; FILTERS if there is none. */
static void add_operation(json_t *paths, const struct route *route, enum filter filter,
                          const json_t *skeleton)
{
	const bool chain = filter == FILTERS && !strstr(route->path, "{preset}");
	const char *body = route->act ? NULL : chain ? "chain" : "image";
	char **parts = g_strsplit(route->path, "{name}", 2);
	char *path = g_strjoinv(filter < FILTERS ? known_filters[filter].name : "", parts);
	const char *tag = strncmp(path, "/v1/", 4) ? "service" : path + 4;
	char *method = g_ascii_strdown(route->method, -1), *id = g_strconcat(method, path, NULL);
	json_t *item = json_object_get(paths, path), *answers = json_object();

	if (!item) {
		item = json_object();
		json_object_set_new(paths, path, item);
	}
	add_answers(answers, route->answers);
	add_answers(answers, everywhere);
	json_object_set_new(
	    item, method,
	    json_pack("{s:s, s:s, s:[o], s:o, s:o, s:O*}", "operationId",
	              g_strcanon(id, G_CSET_a_2_z G_CSET_DIGITS, '-'), "summary",
	              body && filter < FILTERS ? known_filters[filter].text : route->summary,
	              "tags", json_stringn(tag, strcspn(tag, "/")), "parameters",
	              route_parameters(route, filter, skeleton), "responses", answers,
	              "requestBody", body ? json_object_get(skeleton, body) : NULL));
	g_strfreev(parts);
	g_free(path);
	g_free(method);
	g_free(id);
}

/* X-Lost: a list with a space after each comma, unlike a serialised array. */
static json_t *lost_schema(void)
{
	GString *tokens = g_string_new(NULL), *meanings = g_string_new(NULL);
	json_t *schema;

	for (enum loss l = 0; l < LOSSES; l++) {
		g_string_append_printf(tokens, "%s%s", l ? "|" : "", loss_rows[l].token);
		g_string_append_printf(meanings, "%s%s: %s", l ? "; " : "", loss_rows[l].token,
		                       loss_rows[l].text);
	}
	schema = json_pack("{s:s, s:o, s:s}", "type", "string", "pattern",
	                   json_sprintf("^(%s)(, (%s))*$", tokens->str, tokens->str), "description",
	                   meanings->str);
	g_string_free(tokens, TRUE);
	g_string_free(meanings, TRUE);
	return schema;
}

void catalogue_get_api(struct request *r, const struct route *routes, size_t count)
{
	json_t *skeleton = json_loads(openapi_embedded->text, 0, NULL);
	json_t *document = json_object_get(skeleton, "document");
	json_t *info = json_object_get(document, "info");
	json_t *paths = json_object_get(document, "paths");
	json_t *components = json_object_get(document, "components");
	json_t *schemas = json_object_get(components, "schemas");
	json_t *responses = json_object_get(components, "responses");
	json_t *parameters = json_object_get(components, "parameters");
	json_t *media = member(responses, "Image", "content");
	json_t *links = json_array(), *types = json_array();
	const struct common_parameter *p;

	json_object_set_new(info, "version", json_string(PACKAGE_VERSION));
	for (const struct route *route = routes; route < routes + count; route++)
		if (!route->summary)
			continue;
		else if (strstr(route->path, "{name}"))
			for (enum filter f = 0; f < FILTERS; f++)
				add_operation(paths, route, f, skeleton);
		else
			add_operation(paths, route, FILTERS, skeleton);
	for (enum filter filter = 0; filter < FILTERS; filter++)
		json_array_append_new(links, schema_of_link(filter));
	json_object_set_new(schemas, "Chain",
	                    json_pack("{s:s, s:i, s:i, s:{s:o}}", "type", "array", "minItems", 1,
	                              "maxItems", CHAIN_FILTERS_MAX, "items", "oneOf", links));
	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++)
		json_array_append_new(types, json_sprintf("/problems/%s", error_row(e)->slug));
	json_object_set_new(member(schemas, "Problem", "properties"), "type",
	                    json_pack("{s:o}", "enum", types));
	for (size_t i = 0; (p = request_common_parameter(i)); i++)
		json_object_set_new(
		    parameters, p->name,
		    make_parameter(p->name, "query", p->text, schema_of_common(p), false));
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(repertoire().written, f))
			json_object_set_new(media, format_naming(f)->media_type,
			                    json_pack("{s:{s:s, s:s}}", "schema", "type", "string",
			                              "format", "binary"));
	add_errors(responses, json_object_get(skeleton, "problem"));
	json_object_set_new(member(components, "headers", "X-Lost"), "schema", lost_schema());
	answer_json(&r->answer, 200, json_incref(document));
	json_decref(skeleton);
}
