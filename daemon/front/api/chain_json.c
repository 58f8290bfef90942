/* JSON into struct chain: every value is converted to the text that a query would hold, so that
 * there is one parser of parameters and one set of limits. */
#include "front/api/chain_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char example[] = "[{\"filter\":\"gaussian\",\"sigma\":1.4},{\"filter\":\"sobel\"}]";

/* Prints a number with the fewest digits that give the same value. */
static void print_number(FILE *out, const json_t *number)
{
	double value = json_number_value(number);
	char text[32];

	snprintf(text, sizeof text, "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof text, "%.17g", value);
	fputs(text, out);
}

static bool print_list(FILE *out, const json_t *list, const char *separator);

/* Prints a value as a query would hold it; false if a query could not. */
static bool print_value(FILE *out, const json_t *value)
{
	bool matrix = json_is_array(json_array_get(value, 0));

	if (json_is_number(value))
		print_number(out, value);
	else if (json_is_string(value))
		fputs(json_string_value(value), out);
	else
		return json_array_size(value) && print_list(out, value, matrix ? ";" : ",");
	return true;
}

/* Prints a row of numbers with ',' between them, or the rows of a matrix with ';'. */
static bool print_list(FILE *out, const json_t *list, const char *separator)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		bool row = *separator == ';' && !json_is_array(json_array_get(item, 0));

		fputs(i ? separator : "", out);
		if (row ? !json_array_size(item) : !json_is_number(item))
			return false;
		if (!print_value(out, item))
			return false;
	}
	return true;
}

static enum error set_parameter(struct chain *chain, const char *name, const json_t *value,
                                struct problem *problem)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	enum error e;
	bool printed;

	if (!out)
		return problem_set(problem, ERR_MEMORY, "no memory for the chain");
	printed = print_value(out, value);
	if (fclose(out))
		e = problem_set(problem, ERR_MEMORY, "no memory for the chain");
	else if (!printed)
		e = problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text,
		                          "%s: expected a number, a text, or the rows of a "
		                          "matrix, as in [[1,2,1],[2,4,2],[1,2,1]]",
		                          name);
	else
		e = chain_set_parameter(chain, name, text, problem);
	free(text);
	return e;
}

static enum error add_filter(struct chain *chain, json_t *link, struct problem *problem)
{
	const char *filter = json_string_value(json_object_get(link, "filter"));
	const char *name;
	json_t *value;
	enum error e;

	if (!filter)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "chain", "",
		                             "each filter of chain is an object whose member "
		                             "filter is its name, as in %s",
		                             example);
	e = chain_add_filter(chain, filter, problem);
	json_object_foreach(link, name, value)
	{
		if (!e && strcmp(name, "filter"))
			e = set_parameter(chain, name, value, problem);
	}
	return e;
}

enum error chain_parse_json(struct chain *chain, const char *text, struct problem *problem)
{
	json_error_t error;
	json_t *list = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	json_t *link;
	enum error e = ERR_OK;
	size_t i;

	if (!list)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "chain", text,
		                             "chain: not JSON: %s in line %d, column %d; expected "
		                             "a list as in %s",
		                             error.text, error.line, error.column, example);
	if (!json_array_size(list))
		e = problem_set_parameter(problem, ERR_BAD_PARAMETER, "chain", text,
		                          "chain: expected a list of at least one filter, as in %s",
		                          example);
	json_array_foreach(list, i, link)
	{
		if (!e)
			e = add_filter(chain, link, problem);
	}
	json_decref(list);
	return e;
}
