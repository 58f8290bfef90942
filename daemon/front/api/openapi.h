/* The description of the API (OpenAPI 3.1), made from the tables of routes, filters, parameters,
 * formats and errors, so that it matches the service. */
#ifndef FRONT_API_OPENAPI_H
#define FRONT_API_OPENAPI_H

#include "front/api/request.h"

/* openapi.json, embedded by daemon/embed.sh. */
struct openapi_file {
	const char *name;
	const char *text;
};

extern const struct openapi_file openapi_embedded[];
extern const size_t openapi_embedded_count;

/* Answers with the description of these routes. */
void openapi_answer(struct request *request, const struct route *routes, size_t count);

#endif
