/* What the service says of itself, as tables. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "client/server.h"

/* The commands `filters`, `devices` and `kernels`: each prints to standard output. */
enum exit_code views_filters(const struct options *options, const struct server *server);
enum exit_code views_devices(const struct options *options, const struct server *server);
enum exit_code views_kernels(const struct options *options, const struct server *server);

/* Asks the service about the parameters that this client does not know: what it does not know
 * either is no option, and is said. */
enum exit_code views_check_parameters(const struct options *options, const struct server *server);

/* Asks for a JSON document; says what is wrong if there is none. */
enum exit_code views_get(const struct server *server, const char *target, json_t **json);

/* A member's text or number; "-" and NAN if it is not there or null. */
const char *views_text(const json_t *object, const char *name);
double views_number(const json_t *object, const char *name);
/* Element i of a member that is a list; NULL after the last. */
json_t *views_element(const json_t *object, const char *name, size_t i);
