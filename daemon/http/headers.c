/* Headers and query of a request, whose syntax grammar.c has checked. */
#include "http/headers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "front/config/network.h"
#include "http/form.h"
#include "http/proxy.h"

static const char urlencoded[] = MHD_HTTP_POST_ENCODING_FORM_URLENCODED;

/* What was found while iterating over the headers. */
struct seen {
	unsigned traces;
	const char *trace;  /* the last one */
	const char *coding; /* of the content, other than `identity` */
	char *accept;       /* all of them, joined as one list; owned */
	char *forwarded[2]; /* X-Forwarded-For, Forwarded; likewise */
	bool chunked, expects, form, urlencoded, async;
};

/* Where the query's parameters go, and the first error. */
struct query {
	struct request *request;
	struct problem *problem;
	enum error error;
};

/* Joins headers of the same name into one list (RFC 9110, 5.3). Without memory the list stays as it
 * is. */
static void add_to_list(char **list, const char *value)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *list ? *list : "", *list ? ", " : "", value) < 0)
		return;
	free(*list);
	*list = longer;
}

static enum MHD_Result see_header(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
	struct seen *seen = context;

	(void)kind;
	seen->chunked |= !strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	if (!strcasecmp(name, "traceparent") && value) {
		seen->trace = value;
		seen->traces++;
	}
	if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_ENCODING) && value &&
	    strcasecmp(value, "identity"))
		seen->coding = value;
	if (!strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) && value)
		add_to_list(&seen->accept, value);
	if (!strcasecmp(name, "X-Forwarded-For") && value)
		add_to_list(&seen->forwarded[0], value);
	if (!strcasecmp(name, "Forwarded") && value)
		add_to_list(&seen->forwarded[1], value);
	seen->expects |= !strcasecmp(name, MHD_HTTP_HEADER_EXPECT);
	seen->async |= !strcasecmp(name, "Prefer") && value && request_prefers_async(value);
	if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_TYPE) && value) {
		seen->form |= form_is_one(value);
		seen->urlencoded |= !strncasecmp(value, urlencoded, sizeof urlencoded - 1);
	}
	return MHD_YES;
}

static enum MHD_Result see_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
	struct query *query = context;
	enum error e = request_add_parameter(query->request, name, value, query->problem);

	(void)kind;
	if (e)
		query->error = e;
	return MHD_YES;
}

/* The address of the connection, or the one that a proxy has named by the PROXY protocol. */
static const struct sockaddr *address_of(struct MHD_Connection *connection,
                                         const struct sockaddr_storage *source)
{
	if (source->ss_family != AF_UNSPEC)
		return (const struct sockaddr *)source;
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static void name_address(const struct sockaddr *address, char name[FAIR_CLIENT_SIZE])
{
	struct in6_addr ip;

	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, name,
		          FAIR_CLIENT_SIZE);
	if (address->sa_family != AF_INET6)
		return;
	ip = ((const struct sockaddr_in6 *)address)->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&ip))
		memset(&ip.s6_addr[8], 0, 8);
	inet_ntop(AF_INET6, &ip, name, FAIR_CLIENT_SIZE);
}

void headers_name_client(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                         char name[FAIR_CLIENT_SIZE])
{
	int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct ucred user = {.uid = (uid_t)-1};
	socklen_t size = sizeof user;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
	snprintf(name, FAIR_CLIENT_SIZE, "user %u", user.uid);
	name_address(address_of(connection, source), name);
}

bool headers_from_proxy(struct MHD_Connection *connection, const struct config *config)
{
	static const struct sockaddr_storage none;

	return networks_have(&config->trusted_proxies, address_of(connection, &none));
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Names the client by what proxies say: each adds whom it has heard, so the last address that is no
 * trusted proxy's is the client's. A client can send the header that its proxy does not know: where
 * there are both, neither counts. */
static void name_forwarded(const struct seen *seen, const struct config *config,
                           const struct sockaddr *nearest, char name[FAIR_CLIENT_SIZE])
{
	bool standard = seen->forwarded[1];
	const char *list = seen->forwarded[standard];
	size_t size = list ? strlen(list) : 0;
	struct sockaddr_storage source;

	if (seen->forwarded[0] && seen->forwarded[1])
		return;
	while (networks_have(&config->trusted_proxies, nearest) &&
	       proxy_last(list, &size, standard, &source)) {
		nearest = (const struct sockaddr *)&source;
		name_address(nearest, name);
	}
}

static void read_headers(struct MHD_Connection *connection, struct request *r, struct seen *seen)
{
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH), *origin;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, see_header, seen);
	if (length)
		r->announced = strtoull(length, NULL, 10);
	else if (!seen->chunked)
		r->announced = 0;
	r->accept = seen->accept;
	r->host = header(connection, MHD_HTTP_HEADER_HOST);
	r->site = header(connection, "Sec-Fetch-Site");
	origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
	r->origin = origin ? strdup(origin) : NULL;
	r->preflight = !strcmp(r->method, MHD_HTTP_METHOD_OPTIONS) &&
	               header(connection, "Access-Control-Request-Method");
	r->authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
	if (seen->traces == 1)
		trace_parse(seen->trace, &r->terms.trace);
	r->multipart = seen->form;
	r->urlencoded = seen->urlencoded;
	r->async = seen->async;
}

const char *headers_path(const char *target)
{
	const char *authority = strstr(target, "://");

	if (*target == '/' || !authority)
		return target;
	authority += strlen("://");
	authority += strcspn(authority, "/");
	return *authority ? authority : "/";
}

enum error headers_read(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                        const struct config *config, struct request *r, bool *expects,
                        struct problem *problem)
{
	struct seen seen = {0};
	struct query query = {.request = r, .problem = problem};

	read_headers(connection, r, &seen);
	headers_name_client(connection, source, r->terms.client);
	name_forwarded(&seen, config, address_of(connection, source), r->terms.client);
	free(seen.forwarded[0]);
	free(seen.forwarded[1]);
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, see_parameter, &query);
	*expects = seen.expects;
	if (seen.coding && r->announced)
		return problem_set(problem, ERR_CONTENT_CODED,
		                   "Content-Encoding: %.60s; expected the body as it is, without a "
		                   "coding",
		                   seen.coding);
	return query.error;
}
