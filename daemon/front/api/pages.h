/* The pages for browsers, from the files of page/, which are built into the program. */
#ifndef FRONT_API_PAGES_H
#define FRONT_API_PAGES_H

#include <stddef.h>

#include "front/api/request.h"

/* One file of page/, embedded by daemon/embed.sh. */
struct page_file {
	const char *name;
	const char *text;
};

extern const struct page_file page_embedded[];
extern const size_t page_embedded_count;

/* Answers with the page NAME.html. */
void pages_answer(struct request *request, const char *name);

/* A route: the file that the request names, which belongs to the pages. */
void pages_get_file(struct request *request);

/* A route: the JavaScript module for the API, which the pages themselves use. */
void pages_get_module(struct request *request);

#endif
