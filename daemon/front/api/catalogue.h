/* The catalogue of filters, devices and kernels as JSON. */
#ifndef FRONT_API_CATALOGUE_H
#define FRONT_API_CATALOGUE_H

#include <jansson.h>

#include "front/api/request.h"

/* Routes. */
void catalogue_get_filters(struct request *request);
void catalogue_get_filter(struct request *request);
void catalogue_get_devices(struct request *request);
void catalogue_get_kernels(struct request *request);

/* Answers that the filter is unknown, and suggests a similar name. */
void catalogue_unknown_filter(struct request *request);

/* A parameter's default (for a choice, its word); null if there is none. */
json_t *catalogue_default(const struct parameter *parameter);
/* JSON that is written with ' for ", as the schemas of common parameters are; for the enum
 * 'formats' it has the formats that are offered. */
json_t *catalogue_schema(const char *text);

/* The words of a choice. */
json_t *catalogue_choices(const struct parameter *parameter);

#endif
