/* The description of the API (OpenAPI 3.1), made from the tables of routes, filters, parameters,
 * formats and errors, so that it matches the service. */
#ifndef FRONT_API_OPENAPI_H
#define FRONT_API_OPENAPI_H

#include "base/file.h"
#include "front/api/request.h"

extern const struct embedded openapi_embedded[]; /* openapi.json alone */
extern const size_t openapi_embedded_count;

/* Answers with the description of these routes. */
void openapi_answer(struct request *request, const struct route *routes, size_t count);

#endif
