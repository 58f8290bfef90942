/* The pages for browsers. They are the same for everybody, and ask for everything else by the API,
 * with the token that their reader gives them. */
#include "front/api/pages.h"

#include <stdio.h>
#include <string.h>

/* A page loads only what this service has, runs nothing that is in its text, is shown in no other
 * page, and sends nothing elsewhere. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct {
	const char *suffix, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static const struct page_file *find(const char *name)
{
	for (size_t i = 0; i < page_embedded_count; i++)
		if (!strcmp(page_embedded[i].name, name))
			return &page_embedded[i];
	return NULL;
}

static const char *type_of(const char *name)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(name + strcspn(name, "."), types[i].suffix))
			return types[i].type;
	return "text/plain; charset=utf-8";
}

static void answer(struct request *r, const char *name)
{
	const struct page_file *file = find(name);
	struct problem problem;

	if (!file) {
		problem_set(&problem, ERR_NOT_FOUND, "the pages have no file %.60s", name);
		answer_problem(&r->answer, ERR_NOT_FOUND, &problem);
		return;
	}
	answer_text(&r->answer, 200, type_of(name), strdup(file->text), strlen(file->text));
	answer_header(&r->answer, "Content-Security-Policy", "%s", policy);
}

void pages_answer(struct request *r, const char *name)
{
	char file[32];

	snprintf(file, sizeof file, "%s.html", name);
	answer(r, file);
}

void pages_get_file(struct request *r)
{
	answer(r, r->argument);
}

void pages_get_module(struct request *r)
{
	answer(r, "convolved.js");
}
