/* The service that is asked: where it is and how it is spoken to. */
#pragma once

#include <curl/curl.h>

#include "client/options.h"

struct server {
	char *base;               /* scheme, host and port, perhaps the start of a path */
	const char *socket;       /* path of a Unix socket, or NULL */
	bool local;               /* this host, by loopback or socket */
	const char *cacert;       /* or NULL */
	struct curl_slist *heads; /* headers of every request */
	unsigned retries;
	unsigned timeout; /* seconds of silence */
	CURLM *multi;     /* keeps the connections */
};

/* Returns EXIT_DONE, or EXIT_USAGE when it has said what is wrong. */
enum exit_code server_init(struct server *server, const struct options *options);
void server_fini(struct server *server);

/* Sets what all requests to the server have in common. */
void server_prepare(const struct server *server, CURL *easy, const char *target);
