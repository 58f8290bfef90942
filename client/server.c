/* The service's address, token and certificates. */
#include "client/server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/place.h"
#include "client/report.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

/* Adds the file's token. Messages name the file, never its contents. */
static enum exit_code add_token(struct server *server, const char *path)
{
	char token[4096];
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(token, 1, sizeof token, file) : 0;

	if (!file || ferror(file)) {
		report_error("%s: cannot read the token: %s", path, strerror(errno));
		if (file)
			fclose(file);
		return EXIT_USAGE;
	}
	fclose(file);
	while (size && isspace((unsigned char)token[size - 1]))
		size--;
	for (size_t i = 0; i < size; i++)
		if (!isgraph((unsigned char)token[i]))
			size = 0;
	if (!size || size == sizeof token) {
		report_error("%s: expected a token of one word of printable ASCII, up to %zu bytes",
		             path, sizeof token - 1);
		return EXIT_USAGE;
	}
	if (!(server->token = strndup(token, size)))
		abort();
	return EXIT_DONE;
}

bool server_is_loopback(const char *host)
{
	static const char suffix[] = ".localhost";
	size_t length = strlen(host);
	struct in_addr v4;

	return !strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
	       (length >= sizeof suffix &&
	        !strcasecmp(host + length + 1 - sizeof suffix, suffix)) ||
	       (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* Returns the service's URL, parsed by the library that will use it. */
static enum exit_code set_url(struct server *server, const char *url, bool *clear)
{
	CURLU *parts = curl_url();
	char *scheme = NULL, *host = NULL;
	int length = (int)strlen(url);
	CURLUcode code;

	while (length && url[length - 1] == '/')
		length--;
	if (!parts ||
	    asprintf(&server->base, "%s%.*s", strstr(url, "://") ? "" : "http://", length, url) < 0)
		abort();
	server->shown = place_shown(server->base);
	code = curl_url_set(parts, CURLUPART_URL, server->base, 0);
	if (!code)
		code = curl_url_get(parts, CURLUPART_HOST, &host, 0);
	if (!code)
		code = curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
	if (code)
		report_error("%s is not the address of a service: %s", server->shown,
		             curl_url_strerror(code));
	server->local = !code && server_is_loopback(host);
	*clear = !code && strcmp(scheme, "https") != 0;
	curl_free(host);
	curl_free(scheme);
	curl_url_cleanup(parts);
	return code ? EXIT_USAGE : EXIT_DONE;
}

enum exit_code server_init(struct server *server, const struct options *options)
{
	enum exit_code status = EXIT_DONE;
	bool clear = false;

	*server = (struct server){.cacert = options->cacert,
	                          .token_file = options->token_file,
	                          .retries = options->retries,
	                          .timeout = options->timeout,
	                          .multi = curl_multi_init()};
	if (!server->multi)
		abort();
	if (!strncmp(options->server, "unix:", 5)) {
		server->socket = options->server + 5;
		server->local = true;
		server->shown = strdup(options->server);
		if (!(server->base = strdup("http://localhost")) || !server->shown)
			abort();
	} else {
		status = set_url(server, options->server, &clear);
	}
	if (status || !options->token_file)
		return status;
	if (!clear || server->local || options->insecure_token)
		return add_token(server, options->token_file);
	report_error("%s: the token would travel unencrypted: use https://, or --insecure-token "
	             "to send it anyway",
	             server->shown);
	return EXIT_USAGE;
}

void server_fini(struct server *server)
{
	curl_multi_cleanup(server->multi);
	free(server->base);
	free(server->shown);
	free(server->token);
}

void server_prepare(const struct server *server, CURL *easy, const char *target)
{
	char *url = NULL;

	if (asprintf(&url, "%s%s", server->base, target) < 0)
		abort();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	free(url);
	curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, server->socket);
	if (server->local)
		curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* overrides the environment */
	server_trust(easy, server->cacert);
	if (server->token) {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, server->token);
	}
}

void server_trust(CURL *easy, const char *cacert)
{
	if (!cacert)
		return;
	curl_easy_setopt(easy, CURLOPT_CAINFO, cacert);
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* otherwise the system's */
}

void server_prepare_any(CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "convolve/" PACKAGE_VERSION);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, 10L);
	/* A host that has gone is noticed within two minutes. */
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
}
