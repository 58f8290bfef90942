/* The service: its address, and the options of requests to it. */
#pragma once

#include <curl/curl.h>

#include "client/options.h"

struct server {
	char *base;             /* scheme, host and port, and possibly the start of a path */
	char *shown;            /* the address for messages, without a password */
	const char *token_file; /* or NULL */
	char *token;
	const char *socket; /* path of a Unix socket, or NULL */
	bool local;         /* this host: a loopback address or a Unix socket */
	const char *cacert; /* or NULL */
	unsigned retries;
	unsigned timeout; /* seconds of silence */
	CURLM *multi;     /* keeps connections alive */
};

/* Returns EXIT_DONE, or EXIT_USAGE after printing the error. */
enum exit_code server_init(struct server *server, const struct options *options);
void server_fini(struct server *server);

/* Sets the options that all requests to the server share. */
void server_prepare(const struct server *server, CURL *easy, const char *target);

/* Sets the options that requests to other servers share with these. */
void server_prepare_any(CURL *easy);
/* Trusts the certificates in a file alone; NULL: the system's. */
void server_trust(CURL *easy, const char *cacert);

/* Tells whether the host's name means this host, without a look-up; an IPv6 address is in
 * brackets. */
bool server_is_loopback(const char *host);
