/* The targets of requests, and the ids and keys of jobs. */
#include "client/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/interrupt.h"

enum { ID_MAX = 80 };

static const char id_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

static void add_parameter(FILE *target, char *separator, const char *name, const char *value)
{
	char *n = curl_easy_escape(NULL, name, 0), *v = curl_easy_escape(NULL, value, 0);

	if (!n || !v)
		abort();
	fprintf(target, "%c%s=%s", *separator, n, v);
	*separator = '&';
	curl_free(n);
	curl_free(v);
}

/* One filter, or a preset, has a route of its own and takes parameters by name; a chain carries
 * them in its own text. */
char *request_target(const struct options *options, const struct mask *mask, const char *output)
{
	const char *command = options->command, *dot = strrchr(output, '.');
	bool empty = !strcmp(command, "chain"), preset = *command == '@';
	bool chain =
	    !preset && (empty || strpbrk(command, "=,") || options_parameter(options, "luma") ||
	                options_parameter(options, "chroma"));
	char *text = NULL, *name = curl_easy_escape(NULL, command + preset, 0), separator = '?';
	size_t size;
	FILE *target = open_memstream(&text, &size);

	if (!target || !name)
		abort();
	fprintf(target, "/v1/%s%s",
	        preset  ? "presets/"
	        : chain ? "chain"
	                : "filters/",
	        chain ? "" : name);
	curl_free(name);
	if (chain && !empty)
		add_parameter(target, &separator, "filters", command);
	for (size_t i = 0; i < options->parameter_count; i++)
		add_parameter(target, &separator, options->parameters[i].name,
		              options->parameters[i].value);
	if (!options_parameter(options, "format") && dot && dot[1] && !strchr(dot, '/'))
		add_parameter(target, &separator, "format", dot + 1);
	if (mask->name)
		fprintf(target, "#mask=%s", mask->digits);
	if (fclose(target))
		abort();
	return text;
}

char *request_job_target(const char *id, const char *rest)
{
	char *target = NULL;

	if (asprintf(&target, "/v1/jobs/%s%s", id, rest) < 0)
		abort();
	return target;
}

bool request_is_job(const char *text)
{
	size_t length = strlen(text);

	return length && length <= ID_MAX && strspn(text, id_letters) == length &&
	       isalnum((unsigned char)*text);
}

char *request_job(const struct exchange *e)
{
	const char *location = exchange_header(e, "Location");
	const char *slash = location ? strrchr(location, '/') : NULL;

	return slash && request_is_job(slash + 1) ? strdup(slash + 1) : NULL;
}

int request_hash(int file, hash *made)
{
	static unsigned char buffer[1 << 18];
	ssize_t got;

	for (off_t at = 0; (got = pread(file, buffer, sizeof buffer, at)) > 0; at += got) {
		*made = hash_bytes(*made, buffer, (size_t)got);
		if (interrupt_number())
			return EINTR;
	}
	return got < 0 ? errno : 0;
}

int request_key(int image, const char *target, const char *output, char key[HASH_DIGITS])
{
	hash made = hash_text(hash_text(HASH_START, target), output);
	int error = request_hash(image, &made);

	hash_print(made, key);
	return error;
}
