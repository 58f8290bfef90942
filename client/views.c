/* Tables of filters, devices, kernels and jobs. */
#include "client/views.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "client/parameters.h"
#include "client/report.h"
#include "client/request.h"
#include "client/table.h"
#include "client/transfer.h"

/* Returns a string (NULL: "-") in printable form for a terminal. */
static const char *shown(const json_t *string)
{
	char *text = (char *)(uintptr_t)json_string_value(string);

	if (text)
		utf8_flatten(text);
	return text ? text : "-";
}

const char *views_text(const json_t *object, const char *name)
{
	return shown(json_object_get(object, name));
}

json_t *views_element(const json_t *object, const char *name, size_t i)
{
	return json_array_get(json_object_get(object, name), i);
}

double views_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static enum exit_code request_object(const struct server *server, const struct exchange *request,
                                     const char *name, json_t **json)
{
	char *text;
	enum exit_code status = transfer_ask(server, request, name, &text);

	if (status)
		return status;
	*json = json_loads(text, 0, NULL);
	free(text);
	if (json_is_object(*json))
		return EXIT_DONE;
	json_decref(*json);
	*json = NULL;
	report_error("%s%s: the answer is not from a convolved", server->shown, request->target);
	return EXIT_SOME_FAILED;
}

enum exit_code views_get(const struct server *server, const char *target, json_t **json)
{
	const struct exchange request = {.target = target, .body = -1, .result = -1};

	return request_object(server, &request, NULL, json);
}

enum exit_code views_await_job(const struct server *server, const char *id, json_t **json)
{
	char *target = request_job_target(id, "");
	const struct exchange request = {.target = target, .waits = true, .body = -1, .result = -1};
	enum exit_code status = request_object(server, &request, id, json);

	free(target);
	return status;
}

void views_dump(const json_t *json)
{
	json_dumpf(json, stdout,
	           JSON_INDENT(2) | JSON_REAL_PRECISION(9) |
	               (isatty(STDOUT_FILENO) == 1 ? JSON_ENSURE_ASCII : 0));
	putchar('\n');
}

/* Prints the service's own JSON, or the document by `print`. */
static enum exit_code show(const struct options *options, const struct server *server,
                           const char *target, void (*print)(const json_t *json))
{
	json_t *json;
	enum exit_code status = views_get(server, target, &json);

	if (status)
		return status;
	if (options->json)
		views_dump(json);
	else
		print(json);
	json_decref(json);
	return EXIT_DONE;
}

/* Filters
 * ------------------------------------------------------------------------------------------ */

static void print_catalogue(const json_t *json)
{
	static const char *const headings[] = {"FILTER", "PARAMETERS", "", NULL};
	static const char *const common[] = {"PARAMETER", "OF ALL FILTERS", NULL};
	static const char *const presets[] = {"PRESET", "PARAMETERS", NULL};
	struct table *table = table_new(headings);
	json_t *filter, *parameter, *preset;
	const char *name;

	for (size_t i = 0; (filter = views_element(json, "filters", i)); i++) {
		char names[256] = "";
		size_t used = 0;

		for (size_t j = 0; (parameter = views_element(filter, "parameters", j)); j++)
			if (used < sizeof names)
				used +=
				    (size_t)snprintf(names + used, sizeof names - used, "%s%s",
				                     j ? ", " : "", views_text(parameter, "name"));
		table_add(table, "%s", views_text(filter, "name"));
		table_add(table, "%s", names);
		table_add(table, "%s", views_text(filter, "text"));
	}
	table_print(table, stdout);
	putchar('\n');
	table = table_new(common);
	for (size_t i = 0; (parameter = views_element(json, "common", i)); i++) {
		table_add(table, "%s", views_text(parameter, "name"));
		table_add(table, "%s%s", views_text(parameter, "text"),
		          json_is_true(json_object_get(parameter, "chain_only")) ? " (of a chain)"
		                                                                 : "");
	}
	table_print(table, stdout);
	if (!views_element(json, "presets", 0))
		return;
	putchar('\n');
	table = table_new(presets);
	for (size_t i = 0; (preset = views_element(json, "presets", i)); i++) {
		const char *first = views_text(preset, "name");

		json_object_foreach(json_object_get(preset, "parameters"), name, parameter) {
			table_add(table, *first ? "@%s" : "%s", first);
			table_add(table, "%s=%s", name, shown(parameter));
			first = "";
		}
	}
	table_print(table, stdout);
}

/* Returns the values that a parameter takes: its choices, or its range. */
static void describe(const json_t *parameter, char *text, size_t size)
{
	json_t *choices = json_object_get(parameter, "choices"), *choice;
	double min = views_number(parameter, "minimum"), max = views_number(parameter, "maximum");
	const char *type = views_text(parameter, "type");
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; (choice = json_array_get(choices, i)); i++)
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "|" : "",
			                         json_string_value(choice));
	if (!choices)
		snprintf(text, size,
		         !strcmp(type, "matrix") ? "%s, sides from %g to %g" : "%s, %g to %g", type,
		         min, max);
}

static void print_filter(const json_t *filter)
{
	static const char *const headings[] = {"PARAMETER", "VALUE", "UNIT", "DEFAULT", "", NULL};
	struct table *table = table_new(headings);
	json_t *parameter;
	char text[160];

	for (size_t i = 0; (parameter = views_element(filter, "parameters", i)); i++) {
		double number = views_number(parameter, "default");
		const char *unit = views_text(parameter, "unit");

		table_add(table, "%s", views_text(parameter, "name"));
		describe(parameter, text, sizeof text);
		table_add(table, "%s", text);
		table_add(table, "%s", *unit ? unit : "-");
		if (isnan(number))
			table_add(table, "%s", views_text(parameter, "default"));
		else
			table_add(table, "%g", number);
		table_add(table, "%s", views_text(parameter, "text"));
	}
	printf("%s: %s\n\n", views_text(filter, "name"), views_text(filter, "text"));
	table_print(table, stdout);
}

static void print_parameter_names(const json_t *list)
{
	json_t *parameter, *choice;

	for (size_t i = 0; (parameter = json_array_get(list, i)); i++) {
		fputs(views_text(parameter, "name"), stdout);
		for (size_t j = 0; (choice = views_element(parameter, "choices", j)); j++)
			printf(" %s", shown(choice));
		putchar('\n');
	}
}

/* Prints, for scripts, the filters and presets; or the parameters of one, each followed by its
 * choices; or those that all filters and chains take. */
static enum exit_code print_names(const json_t *json, const char *name)
{
	json_t *filter;

	for (size_t i = 0; !name && (filter = views_element(json, "filters", i)); i++)
		puts(views_text(filter, "name"));
	for (size_t i = 0; !name && (filter = views_element(json, "presets", i)); i++)
		printf("@%s\n", views_text(filter, "name"));
	if (!name)
		return EXIT_DONE;
	if (!strcmp(name, "chain")) {
		print_parameter_names(json_object_get(json, "common"));
		return EXIT_DONE;
	}
	for (size_t i = 0; (filter = views_element(json, "filters", i)); i++)
		if (!strcmp(views_text(filter, "name"), name)) {
			print_parameter_names(json_object_get(filter, "parameters"));
			return EXIT_DONE;
		}
	report_error("unknown filter %s", name);
	return EXIT_SOME_FAILED;
}

enum exit_code views_filters(const struct options *options, const struct server *server)
{
	const char *name = options->operand_count ? options->operands[0] : NULL;
	char *escaped, target[256];
	enum exit_code status;
	json_t *json;

	if (!options->names) {
		escaped = name ? curl_easy_escape(NULL, name, 0) : NULL;
		snprintf(target, sizeof target, "/v1/filters%s%s", name ? "/" : "",
		         escaped ? escaped : "");
		curl_free(escaped);
		return show(options, server, target, name ? print_filter : print_catalogue);
	}
	status = views_get(server, "/v1/filters", &json);
	if (status)
		return status;
	status = print_names(json, name);
	json_decref(json);
	return status;
}

static bool has_parameter(const json_t *list, const char *name)
{
	json_t *parameter;

	for (size_t i = 0; (parameter = json_array_get(list, i)); i++)
		if (!strcmp(views_text(parameter, "name"), name))
			return true;
	return false;
}

/* Tells whether the parameters of all filters, or those of any, include this name. */
static bool has_name(const json_t *catalogue, const char *name)
{
	json_t *filter;
	bool found = has_parameter(json_object_get(catalogue, "common"), name);

	for (size_t i = 0; !found && (filter = views_element(catalogue, "filters", i)); i++)
		found = has_parameter(json_object_get(filter, "parameters"), name);
	return found;
}

enum exit_code views_check_parameters(const struct options *options, const struct server *server)
{
	enum exit_code status = EXIT_DONE;
	json_t *catalogue = NULL;

	for (size_t i = 0; i < options->parameter_count && !status; i++) {
		const char *name = options->parameters[i].name;

		if (parameters_know(name))
			continue;
		if (!catalogue)
			status = views_get(server, "/v1/filters", &catalogue);
		if (!status && !has_name(catalogue, name)) {
			report_error("unknown option --%s, which is no parameter either; see "
			             "convolve --help and convolve filters",
			             name);
			status = EXIT_USAGE;
		}
	}
	json_decref(catalogue);
	return status;
}

/* Devices, kernels and jobs
 * ------------------------------------------------------------------------ */

static void print_devices(const json_t *json)
{
	static const char *const headings[] = {"DEVICE",    "TYPE",   "STATE", ">MEMORY", ">TILES",
	                                       ">RESTARTS", ">START", "NAME",  NULL};
	struct table *table = table_new(headings);
	json_t *device;

	for (size_t i = 0; (device = views_element(json, "devices", i)); i++) {
		table_add(table, "%s", views_text(device, "id"));
		table_add(table, "%s", views_text(device, "type"));
		table_add(table, "%s", views_text(device, "state"));
		table_add(table, "%.1f GB", views_number(device, "memory_bytes") * 1e-9);
		table_add(table, "%.0f", views_number(device, "tiles_done"));
		table_add(table, "%.0f", views_number(device, "restarts"));
		table_add_seconds(table, views_number(device, "startup_seconds"));
		table_add(table, "%s, %s", views_text(device, "name"),
		          views_text(device, "driver"));
	}
	table_print(table, stdout);
}

static void print_kernels(const json_t *json)
{
	static const char *const headings[] = {"KERNEL", "DEVICE", ">RUNS", ">TOTAL",
	                                       ">MIN",   ">P50",   ">P90",  ">P99",
	                                       ">MAX",   ">GB/S",  NULL};
	static const char *const times[] = {"total_seconds", "min_seconds", "p50_seconds",
	                                    "p90_seconds",   "p99_seconds", "max_seconds"};
	struct table *table = table_new(headings);
	json_t *kernel;

	for (size_t i = 0; (kernel = views_element(json, "kernels", i)); i++) {
		table_add(table, "%s", views_text(kernel, "kernel"));
		table_add(table, "%s", views_text(kernel, "device"));
		table_add(table, "%.0f", views_number(kernel, "count"));
		for (size_t t = 0; t < sizeof times / sizeof *times; t++)
			table_add_seconds(table, views_number(kernel, times[t]));
		table_add(table, "%.2f", views_number(kernel, "bytes_per_second") * 1e-9);
	}
	table_print(table, stdout);
}

static void print_jobs(const json_t *json)
{
	static const char *const headings[] = {"JOB",   "STATE", ">TILES", ">LEFT",
	                                       ">KEPT", "",      NULL};
	struct table *table = table_new(headings);
	json_t *job;

	for (size_t i = 0; (job = views_element(json, "jobs", i)); i++) {
		const json_t *progress = json_object_get(job, "progress");
		const json_t *problem = json_object_get(job, "problem");
		double tiles = views_number(progress, "tiles");

		table_add(table, "%s", views_text(job, "id"));
		table_add(table, "%s", views_text(job, "state"));
		if (isnan(tiles))
			table_add(table, "-");
		else
			table_add(table, "%.0f/%.0f", views_number(progress, "tiles_done"), tiles);
		table_add_seconds(table, views_number(job, "left_seconds"));
		table_add_seconds(table, views_number(job, "kept_seconds"));
		table_add(table, "%s", problem ? views_text(problem, "title") : "");
	}
	table_print(table, stdout);
}

static void print_job_names(const json_t *json)
{
	json_t *job;

	for (size_t i = 0; (job = views_element(json, "jobs", i)); i++)
		puts(views_text(job, "id"));
}

enum exit_code views_jobs(const struct options *options, const struct server *server)
{
	return show(options, server, "/v1/jobs", options->names ? print_job_names : print_jobs);
}

enum exit_code views_devices(const struct options *options, const struct server *server)
{
	return show(options, server, "/v1/devices", print_devices);
}

enum exit_code views_kernels(const struct options *options, const struct server *server)
{
	return show(options, server, "/v1/kernels", print_kernels);
}
