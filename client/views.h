/* Prints the service's descriptions of itself as tables. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "client/server.h"

/* Run the commands `filters`, `devices`, `kernels` and `jobs`: each prints to standard output. */
enum exit_code views_filters(const struct options *options, const struct server *server);
enum exit_code views_devices(const struct options *options, const struct server *server);
enum exit_code views_kernels(const struct options *options, const struct server *server);
enum exit_code views_jobs(const struct options *options, const struct server *server);

/* Asks the service about the parameters that this client does not know. If the service does not
 * know one either, prints that. */
enum exit_code views_check_parameters(const struct options *options, const struct server *server);

/* Requests a JSON document, which is an object; prints the error on failure. */
enum exit_code views_get(const struct server *server, const char *target, json_t **json);
/* Waits in the same way for the end of a job. */
enum exit_code views_await_job(const struct server *server, const char *id, json_t **json);
/* Prints a document as the service's JSON. */
void views_dump(const json_t *json);

/* Return a member's text or number; "-" and NAN if it is missing or null. */
const char *views_text(const json_t *object, const char *name);
double views_number(const json_t *object, const char *name);
/* Returns element i of a member that is a list; NULL after the last. */
json_t *views_element(const json_t *object, const char *name, size_t i);
