#include "front/api/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "filters/filters.h"
#include "front/api/request.h"
#include "image/formats.h"

/* Returns the query of a preset, and copies its name. */
static const char *query_of(const char *preset, char name[CONFIG_NAME_MAX + 1])
{
	const char *end = strchr(preset, '=');

	snprintf(name, CONFIG_NAME_MAX + 1, "%.*s", (int)(end - preset), preset);
	return end + 1;
}

static const struct common_parameter *find_parameter(const char *name)
{
	const struct common_parameter *p;
	size_t i = 0;

	while ((p = request_common_parameter(i)) && strcmp(p->name, name))
		i++;
	return p;
}

static bool is_same(const char *name, const char *one, const char *other)
{
	return !strcmp(one, other) || (!strcmp(name, "format") && format_parse(one) &&
	                               format_parse(one) == format_parse(other));
}

enum error presets_append(struct head *head, char *query, struct problem *problem)
{
	const unsigned own = head->parameters;
	bool first = true;

	for (char *pair; (pair = strsep(&query, "&")); first = false) {
		const char *name = strsep(&pair, "="), *value = pair;
		const struct common_parameter *p = find_parameter(name);
		unsigned i = 0;

		/* A filter may have the name of a parameter. */
		if (first && !(value && p && filter_parse(name) == FILTERS)) {
			if (pair)
				pair[-1] = '=';
			value = name;
			name = "filters";
		}
		if (!value)
			return bad_parameter(problem, name, "",
			                     "expected NAME=VALUE after each &, as in "
			                     "resize=width=320,sharpen&format=webp&quality=80");
		while (i < own && strcmp(head->parameter[i].name, name))
			i++;
		if (i < own && p && p->scope == SCOPE_PRESET &&
		    !is_same(name, head->parameter[i].value, value))
			return bad_parameter(problem, name, head->parameter[i].value,
			                     "%s: expected %s, which the preset has, or none", name,
			                     value);
		if (i < own) /* others are refused as a request's */
			continue;
		if (head->parameters == HEAD_PARAMETERS_MAX)
			return problem_set(problem, ERR_BAD_REQUEST,
			                   "a request has at most %d parameters, with those of "
			                   "its preset",
			                   HEAD_PARAMETERS_MAX);
		head->parameter[head->parameters].name = name;
		head->parameter[head->parameters++].value = value;
	}
	return ERR_OK;
}

static enum error check(const char *query, struct problem *problem)
{
	struct head head = {0};
	char *copy = strdup(query);
	enum error e = copy ? presets_append(&head, copy, problem) : no_memory(problem, "for it");

	if (!e)
		e = request_check_preset(&head, problem);
	free(copy);
	return e;
}

bool presets_check(const struct config *c)
{
	char name[CONFIG_NAME_MAX + 1], other[CONFIG_NAME_MAX + 1];
	struct problem problem;
	bool valid = true;

	for (unsigned i = 0; i < c->presets.count; i++) {
		const char *query = query_of(c->presets.item[i], name);
		enum error e = check(query, &problem);

		for (unsigned before = 0; !e && before < i; before++) {
			query_of(c->presets.item[before], other);
			if (!strcmp(name, other))
				e = problem_set(&problem, ERR_BAD_REQUEST,
				                "this preset is given more than once");
		}
		if (e)
			log_error("[presets] %s: %s%s%s%s%s", name, problem.parameter,
			          *problem.value ? "=" : "", problem.value,
			          *problem.parameter ? ": " : "", problem.detail);
		valid &= !e;
	}
	if (c->presets_only && !c->presets.count) {
		log_error("presets-only=yes: nothing can be filtered without a preset; expected "
		          "NAME=CHAIN in section [presets]");
		valid = false;
	}
	return valid;
}

/* Lists the names, as many as fit. */
static void list_names(char *list, size_t size)
{
	char name[CONFIG_NAME_MAX + 1];

	for (unsigned i = 0; i < config->presets.count; i++) {
		query_of(config->presets.item[i], name);
		if (strlen(list) + strlen(name) + sizeof ", , …" > size) {
			list_add(list, size, "…");
			return;
		}
		list_add(list, size, name);
	}
}

enum error presets_find(const char *wanted, char **query, struct problem *problem)
{
	char name[CONFIG_NAME_MAX + 1], nearest[CONFIG_NAME_MAX + 1] = "", list[320] = "";
	size_t least = TEXT_NEAR_MAX;

	for (unsigned i = 0; i < config->presets.count; i++) {
		const char *found = query_of(config->presets.item[i], name);

		if (!strcmp(name, wanted)) {
			*query = strdup(found);
			return *query ? ERR_OK : no_memory(problem, "for the preset");
		}
		if (text_is_nearer(wanted, name, &least))
			strcpy(nearest, name);
	}
	if (*nearest)
		return problem_set_parameter(problem, ERR_UNKNOWN_PRESET, "preset", wanted,
		                             "did you mean %s? GET /v1/filters lists them all",
		                             nearest);
	list_names(list, sizeof list);
	return problem_set_parameter(problem, ERR_UNKNOWN_PRESET, "preset", wanted,
	                             *list ? "the presets are %s" : "this service has no presets%s",
	                             list);
}

enum error presets_insist(struct problem *problem)
{
	char list[320] = "";

	list_names(list, sizeof list);
	return problem_set(problem, ERR_PRESETS_ONLY, "expected POST /v1/presets/NAME%s%s",
	                   *list ? ", with one of " : ", but the service has none", list);
}

json_t *presets_describe(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < config->presets.count; i++) {
		char name[CONFIG_NAME_MAX + 1];
		char *query = strdup(query_of(config->presets.item[i], name));
		json_t *parameters = json_object();
		struct problem problem;
		struct head head = {0};

		if (query && !presets_append(&head, query, &problem))
			for (unsigned p = 0; p < head.parameters; p++)
				json_object_set_new(parameters, head.parameter[p].name,
				                    json_string(head.parameter[p].value));
		json_array_append_new(
		    list, json_pack("{s:s, s:o}", "name", name, "parameters", parameters));
		free(query);
	}
	return list;
}
