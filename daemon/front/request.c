/* Requests: parameters read into a chain and the options of a job, with an answer for every way in
 * which they can be wrong. */
#include "front/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "front/loop.h"

struct request *request_new(const char *method, const char *path)
{
	struct request *r = calloc(1, sizeof *r);
	uint64_t number = 0;

	if (!r)
		return NULL;
	r->method = strdup(method);
	r->path = strdup(path);
	if (!r->method || !r->path || getrandom(&number, sizeof number, 0) < 0) {
		request_free(r);
		return NULL;
	}
	snprintf(r->id, sizeof r->id, "%016llx", (unsigned long long)number);
	r->arrived = loop_now();
	r->announced = UINT64_MAX;
	r->body.fd = -1;
	answer_init(&r->answer);
	return r;
}

void request_free(struct request *r)
{
	answer_fini(&r->answer);
	if (r->job) {
		job_forget(r->job);
		job_release(r->job);
	}
	if (r->has_body)
		spool_close(&r->body);
	for (unsigned i = 0; i < r->parameters; i++) {
		free(r->parameter[i].name);
		free(r->parameter[i].value);
	}
	free(r->chain);
	free(r->accept);
	free(r->method);
	free(r->path);
	free(r);
}

bool request_add_parameter(struct request *r, const char *name, const char *value)
{
	unsigned i = r->parameters;

	if (i == REQUEST_PARAMETERS_MAX)
		return false;
	r->parameter[i].name = strdup(name);
	r->parameter[i].value = strdup(value ? value : "");
	r->parameters++;
	return r->parameter[i].name && r->parameter[i].value;
}

bool request_extend_parameter(struct request *r, const char *data, size_t size)
{
	char **value, *longer;
	size_t length;

	if (!r->parameters)
		return false;
	value = &r->parameter[r->parameters - 1].value;
	length = strlen(*value);
	if (length + size > REQUEST_VALUE_MAX)
		return false;
	longer = realloc(*value, length + size + 1);
	if (!longer)
		return false;
	memcpy(longer + length, data, size);
	longer[length + size] = '\0';
	*value = longer;
	return true;
}

enum error request_write(struct request *r, const void *data, size_t size, uint64_t max_body,
                         struct problem *problem)
{
	enum error e = ERR_OK;

	if (r->body.size + size > max_body)
		return problem_set(problem, ERR_BODY_TOO_LARGE, "a body has at most %llu bytes",
		                   (unsigned long long)max_body);
	if (!r->has_body) {
		/* A multipart body also holds the parts' headers: only an estimate. */
		e = spool_open(&r->body, r->announced != UINT64_MAX ? r->announced : size);
		r->has_body = !e;
	}
	if (!e)
		e = spool_write(&r->body, data, size);
	return e ? problem_set(problem, e, "there is no room for the body now") : ERR_OK;
}

static enum error parse_switch(const char *name, const char *text, uint32_t *value,
                               struct problem *problem)
{
	if (strcmp(text, "0") && strcmp(text, "1"))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text, "%s is 0 or 1",
		                             name);
	*value = *text == '1';
	return ERR_OK;
}

static enum error parse_quality(const char *text, uint32_t *quality, struct problem *problem)
{
	char rest;

	if (text[0] < '0' || text[0] > '9' || sscanf(text, "%3u%c", quality, &rest) != 1 ||
	    *quality < 1 || *quality > 100)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "quality", text,
		                             "quality is a whole number from 1 to 100");
	return ERR_OK;
}

/* The parameters that every filter takes. *known is false if this is none of them. */
static enum error parse_common(const char *name, const char *text, struct chain *chain,
                               struct message_job *options, bool *known, struct problem *problem)
{
	*known = true;
	if (!strcmp(name, "border"))
		return chain_set_border(chain, text, problem);
	if (!strcmp(name, "border_value"))
		return chain_set_border_value(chain, text, problem);
	if (!strcmp(name, "quality"))
		return parse_quality(text, &options->quality, problem);
	if (!strcmp(name, "strip"))
		return parse_switch(name, text, &options->strip, problem);
	if (!strcmp(name, "verify"))
		return parse_switch(name, text, &options->verify, problem);
	if (!strcmp(name, "alpha"))
		return parse_switch(name, text, &options->raw_image.alpha, problem);
	if (!strcmp(name, "format")) {
		options->format = format_parse(text);
		if (!options->format)
			return problem_set_parameter(
			    problem, ERR_BAD_PARAMETER, name, text,
			    "format is one of jpeg, png, webp, tiff, gif, ppm, pgm, pfm, raw");
		return ERR_OK;
	}
	if (!strcmp(name, "raw")) {
		options->raw = 1;
		if (!image_parse(text, &options->raw_image))
			return problem_set_parameter(
			    problem, ERR_BAD_PARAMETER, name, text,
			    "raw is WIDTHxHEIGHTxBANDS:TYPE, with 1 to %d bands "
			    "of u8, u16 or f32, as in 640x480x3:u8",
			    BANDS_MAX);
		return ERR_OK;
	}
	*known = false;
	return ERR_OK;
}

static enum error parse_parameter(const char *name, const char *text, bool one_filter,
                                  struct chain *chain, struct message_job *options,
                                  struct problem *problem)
{
	bool known;
	enum error e;

	if (one_filter && chain_knows_parameter(chain, name))
		return chain_set_parameter(chain, name, text, problem);
	if (!one_filter && !strcmp(name, "filters"))
		return chain_parse(chain, text, problem);
	e = parse_common(name, text, chain, options, &known, problem);
	if (e || known)
		return e;
	if (one_filter) /* says which there are */
		return chain_set_parameter(chain, name, text, problem);
	return problem_set_parameter(
	    problem, ERR_BAD_PARAMETER, name, text,
	    "a chain takes filters, border, border_value, format, quality, "
	    "raw, alpha, strip and verify");
}

static bool given_before(const struct request *r, unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (!strcmp(r->parameter[j].name, r->parameter[i].name))
			return true;
	return false;
}

/* Checks what single parameters cannot tell. */
static enum error check_options(const struct message_job *options, struct problem *problem)
{
	const struct image *raw = &options->raw_image;

	if (raw->alpha && !options->raw)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "alpha", "1",
		    "alpha is for raw pixels: other formats say it themselves");
	if (raw->alpha && raw->bands % 2)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "alpha", "1",
		                             "alpha is the last of 2 or 4 bands; there are %u",
		                             raw->bands);
	return ERR_OK;
}

enum error request_parse(const struct request *r, const char *filter, struct chain *chain,
                         struct message_job *options, struct problem *problem)
{
	enum error e = ERR_OK;
	uint32_t alpha;

	chain_init(chain);
	*options = (struct message_job){0};
	if (filter)
		e = chain_add_filter(chain, filter, problem);
	for (unsigned i = 0; !e && i < r->parameters; i++) {
		const char *name = r->parameter[i].name, *value = r->parameter[i].value;

		if (given_before(r, i))
			return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, value,
			                             "%s is given more than once", name);
		/* raw= fills the whole image, so what alpha= said is kept aside. */
		alpha = options->raw_image.alpha;
		e = parse_parameter(name, value, filter != NULL, chain, options, problem);
		options->raw_image.alpha |= alpha;
	}
	if (!e)
		e = chain_check(chain, problem);
	if (!e)
		e = check_options(options, problem);
	if (!e)
		e = request_parse_accept(r->accept, &options->accept, &options->accept_best,
		                         problem);
	return e;
}

/* Writes the media type of one element of an Accept header, without parameters and spaces, and its
 * weight. Returns what follows the element. */
static const char *next_media_range(const char *at, char type[64], double *weight)
{
	size_t element = strcspn(at, ","), length = strcspn(at, ",; \t");
	const char *q = strstr(at, "q=");

	snprintf(type, 64, "%.*s", (int)(length < 63 ? length : 63), at);
	*weight = q && q < at + element ? strtod(q + 2, NULL) : 1;
	at += element;
	return at + strspn(at, ", \t");
}

enum error request_parse_accept(const char *accept, uint32_t *formats, uint32_t *best,
                                struct problem *problem)
{
	const uint32_t all = (1u << FORMATS) - 2;
	double best_weight = 0, weight;
	char type[64];

	*formats = 0;
	*best = FORMAT_NONE;
	if (!accept || !*accept) {
		*formats = all;
		return ERR_OK;
	}
	for (const char *at = accept + strspn(accept, ", \t"); *at;) {
		enum format format;

		at = next_media_range(at, type, &weight);
		if (weight <= 0)
			continue;
		if (!strcmp(type, "*/*") || !strcmp(type, "image/*"))
			*formats |= all;
		format = format_parse_media_type(type);
		*formats |= format ? 1u << format : 0;
		if (format && weight > best_weight) {
			best_weight = weight;
			*best = format;
		}
	}
	if (*formats)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_NOT_ACCEPTABLE, "Accept", accept,
	                             "answers are image/jpeg, image/png, image/webp, image/tiff, "
	                             "image/gif, image/x-portable-anymap or "
	                             "application/octet-stream (raw pixels)");
}
