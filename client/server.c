/* The service's address, token and certificates. */
#include "client/server.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/report.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

/* Adds the token in the file; its name alone is told to others, never what is in it. */
static enum exit_code add_token(struct server *server, const char *path)
{
	char token[4096], header[sizeof token + 32];
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(token, 1, sizeof token, file) : 0;

	if (!file || ferror(file)) {
		report_error("%s: the token cannot be read: %s", path, strerror(errno));
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
		report_error("%s: a token is one word of printable ASCII, at most %zu bytes", path,
		             sizeof token - 1);
		return EXIT_USAGE;
	}
	snprintf(header, sizeof header, "Authorization: Bearer %.*s", (int)size, token);
	server->heads = curl_slist_append(server->heads, header);
	return EXIT_DONE;
}

enum exit_code server_init(struct server *server, const struct options *options)
{
	size_t length = strlen(options->server);

	*server = (struct server){
	    .cacert = options->cacert, .retries = options->retries, .multi = curl_multi_init()};
	if (!strncmp(options->server, "unix:", 5)) {
		server->socket = options->server + 5;
		server->base = strdup("http://localhost");
	} else {
		while (length && options->server[length - 1] == '/')
			length--;
		server->base = strndup(options->server, length);
	}
	if (!server->base || !server->multi)
		abort();
	return options->token_file ? add_token(server, options->token_file) : EXIT_DONE;
}

void server_fini(struct server *server)
{
	curl_multi_cleanup(server->multi);
	free(server->base);
	curl_slist_free_all(server->heads);
}

void server_prepare(const struct server *server, CURL *easy, const char *target)
{
	char *url = NULL;

	if (asprintf(&url, "%s%s", server->base, target) < 0)
		abort();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	free(url);
	curl_easy_setopt(easy, CURLOPT_DEFAULT_PROTOCOL, "http");
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, server->socket);
	if (server->cacert)
		curl_easy_setopt(easy, CURLOPT_CAINFO, server->cacert);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, server->heads);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "convolve/" PACKAGE_VERSION);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, 10L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
}
