/* The catalogue, made from the tables of filters, devices and kernels. */
#include "front/api/catalogue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/base/metrics.h"
#include "front/workers/device_table.h"
#include "front/workers/discovery.h"
#include "front/workers/repertoire.h"

/* NAN (no default, no bound) is null in JSON. */
static json_t *json_number_or_null(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

json_t *catalogue_default(const struct parameter *p)
{
	const char *word = p->unit;

	if (p->type != PARAMETER_CHOICE)
		return json_number_or_null(p->default_);
	for (int i = (int)p->default_; i > 0; i--)
		word += strcspn(word, "|") + 1;
	return json_stringn(word, strcspn(word, "|"));
}

json_t *catalogue_choices(const struct parameter *p)
{
	json_t *choices = json_array();

	for (const char *word = p->unit; *word;) {
		size_t length = strcspn(word, "|");

		json_array_append_new(choices, json_stringn(word, length));
		word += length + (word[length] == '|');
	}
	return choices;
}

json_t *catalogue_schema(const char *text)
{
	char *copy = strdup(text);
	const struct format_offer *offer;
	json_t *schema, *choices;

	for (char *at = copy; at && (at = strchr(at, '\'')); at++)
		*at = '"';
	schema = copy ? json_loads(copy, 0, NULL) : NULL;
	free(copy);
	if (json_is_string(json_object_get(schema, "enum"))) {
		choices = json_array();
		for (size_t i = 0; (offer = format_offer(i)); i++)
			if (format_in(repertoire().written, offer->format))
				json_array_append_new(choices, json_string(offer->name));
		json_object_set_new(schema, "enum", choices);
	}
	return schema;
}

static json_t *describe_parameter(const struct parameter *p)
{
	static const char *const types[] = {"number", "integer", "odd",
	                                    "choice", "matrix",  "numbers"};
	json_t *json = json_pack("{s:s, s:s, s:s, s:o}", "name", p->name, "type", types[p->type],
	                         "text", p->text, "default", catalogue_default(p));

	if (p->type == PARAMETER_CHOICE) {
		json_object_set_new(json, "choices", catalogue_choices(p));
		return json;
	}
	json_object_set_new(json, "unit", json_string(p->unit));
	json_object_set_new(json, "minimum", json_number_or_null(p->min));
	json_object_set_new(json, "maximum", json_number_or_null(p->max));
	return json;
}

static json_t *describe_filter(enum filter filter)
{
	json_t *parameters = json_array();
	const struct parameter *p;

	for (size_t i = 0; (p = filter_parameter(filter, i)); i++)
		json_array_append_new(parameters, describe_parameter(p));
	return json_pack("{s:s, s:s, s:o}", "name", filter_name(filter), "text",
	                 filter_text(filter), "parameters", parameters);
}

/* The parameters besides those of single filters. */
static json_t *describe_common(void)
{
	json_t *list = json_array();
	const struct common_parameter *p;

	for (size_t i = 0; (p = request_common_parameter(i)); i++) {
		json_t *schema = catalogue_schema(p->schema),
		       *choices = json_object_get(schema, "enum");
		json_t *json = json_pack("{s:s, s:s, s:b}", "name", p->name, "text", p->text,
		                         "chain_only", p->for_chain);

		if (json_is_string(json_array_get(choices, 0))) /* has words, and is not 0 or 1 */
			json_object_set(json, "choices", choices);
		json_array_append_new(list, json);
		json_decref(schema);
	}
	return list;
}

void catalogue_get_filters(struct request *r)
{
	json_t *list = json_array();

	for (enum filter f = 0; f < FILTERS; f++)
		json_array_append_new(list, describe_filter(f));
	answer_json(&r->answer, 200,
	            json_pack("{s:o, s:o}", "filters", list, "common", describe_common()));
}

void catalogue_unknown_filter(struct request *r)
{
	struct problem problem;
	enum error e = filter_unknown(r->argument, &problem);

	answer_problem(&r->answer, e, &problem);
}

void catalogue_get_filter(struct request *r)
{
	enum filter f = filter_parse(r->argument);

	if (f == FILTERS) {
		catalogue_unknown_filter(r);
		return;
	}
	answer_json(&r->answer, 200, describe_filter(f));
}

static json_t *describe_device(const struct device *d)
{
	char index[32];

	snprintf(index, sizeof index, "%u:%u", d->found.platform, d->found.device);
	return json_pack(
	    "{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:f, s:i}", "id", d->label,
	    "index", index, "name", d->ready.name, "driver", d->ready.driver, "type",
	    discovery_type_name(d->found.type), "state", device_state_name(device_state(d)), "jpeg",
	    d->ready.jpeg_pixels && d->programs.jpeg, "memory_bytes", (json_int_t)d->ready.memory,
	    "tiles_done", (json_int_t)d->tiles, "tiles_in_flight", (json_int_t)d->held_count,
	    "restarts", (json_int_t)d->worker.restarts, "startup_seconds",
	    d->ready.startup_ms * 1e-3, "pid", (int)d->worker.pid);
}

void catalogue_get_devices(struct request *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < devices_count(); i++)
		if (device_state(device_get(i)) != DEVICE_REMOVED)
			json_array_append_new(list, describe_device(device_get(i)));
	answer_json(&r->answer, 200, json_pack("{s:o}", "devices", list));
}

static json_t *describe_kernel(const struct metric_summary *s)
{
	double bytes = metric_value(METRIC_KERNEL_BYTES, s->label[0], s->label[1]);

	return json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "kernel",
	                 s->label[0], "device", s->label[1], "count", (json_int_t)s->count,
	                 "total_seconds", s->total, "min_seconds", s->min, "p50_seconds", s->p50,
	                 "p90_seconds", s->p90, "p99_seconds", s->p99, "max_seconds", s->max,
	                 "bytes", (json_int_t)bytes, "bytes_per_second",
	                 s->total > 0 ? bytes / s->total : 0.0);
}

static json_t *describe_candidate(const struct message_choice *c, unsigned i)
{
	double ns = (double)c->candidate[i].ns;
	char shape[48];

	snprintf(shape, sizeof shape, "%ux%u by %ux%u", c->candidate[i].x, c->candidate[i].y,
	         c->candidate[i].group_x, c->candidate[i].group_y);
	return json_pack("{s:s, s:s, s:o}", "variant", kernel_name(c->candidate[i].kernel), "shape",
	                 shape, "sample_seconds",
	                 ns > 0 && c->samples ? json_real(ns * 1e-9 / (double)c->samples)
	                                      : json_null());
}

/* The choice of a device's tuner for one kind of work, and the times that it measured. */
static json_t *describe_choice(const struct device *d, const struct message_choice *c)
{
	json_t *candidates = json_array();

	for (unsigned i = 0; i < c->count; i++)
		json_array_append_new(candidates, describe_candidate(c, i));
	return json_pack("{s:s, s:s, s:s, s:i, s:o}", "device", d->label, "work", c->work,
	                 "variant", kernel_name(c->candidate[c->chosen].kernel), "chosen",
	                 (int)c->chosen, "candidates", candidates);
}

void catalogue_get_kernels(struct request *r)
{
	static const char *const origins[] = {"general", "special", "classic"};
	struct metric_summary s;
	json_t *kernels = json_array(), *choices = json_array(), *variants = json_array();

	for (size_t i = 0; metric_summary(METRIC_KERNEL_DURATION, i, &s); i++)
		json_array_append_new(kernels, describe_kernel(&s));
	for (unsigned i = 0; i < devices_count(); i++)
		for (unsigned j = 0; j < device_get(i)->choice_count; j++)
			json_array_append_new(
			    choices, describe_choice(device_get(i), &device_get(i)->choices[j]));
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
