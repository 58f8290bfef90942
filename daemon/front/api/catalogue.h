/* The catalogue of filters, devices and kernels, and the description of the API (OpenAPI 3.1), as
 * JSON; all made from tables, so that they match the service. */
#pragma once

#include "base/file.h"
#include "front/api/request.h"

extern const struct embedded openapi_embedded[]; /* openapi.json alone */
extern const size_t openapi_embedded_count;

/* Routes. */
void catalogue_get_filters(struct request *request);
void catalogue_get_filter(struct request *request);
void catalogue_get_devices(struct request *request);
void catalogue_get_kernels(struct request *request);

/* Answers with the description of these routes. */
void catalogue_get_api(struct request *request, const struct route *routes, size_t count);
