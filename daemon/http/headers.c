/* Headers and query of a request, whose syntax grammar.c has checked. */
#include "http/headers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "http/form.h"
#include "http/intake.h"
#include "http/proxy.h"

/* The destination of the headers of a name, or of the query's parameters. */
struct collection {
	struct head_writer *writer;
	enum head_text text;
	const char *name;
	bool many, found;
};

struct parameters {
	struct head_writer *writer;
	unsigned count;
};

static enum MHD_Result add_header(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
	struct collection *c = context;

	(void)kind;
	if (strcasecmp(name, c->name) || !value)
		return MHD_YES;
	if (c->found) {
		head_extend(c->writer, ", ", 2);
		head_extend(c->writer, value, strlen(value));
	} else {
		head_add(c->writer, c->text, value);
	}
	c->found = true;
	return c->many ? MHD_YES : MHD_NO;
}

/* One more than allowed is enough to be refused. */
static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
	struct parameters *p = context;

	(void)kind;
	head_add(p->writer, HEAD_NAME, name);
	head_add(p->writer, HEAD_VALUE, value ? value : "");
	return p->count++ < HEAD_PARAMETERS_MAX ? MHD_YES : MHD_NO;
}

/* Returns the address of the connection, or the one that a proxy has named by the PROXY
 * protocol. */
static const struct sockaddr *address_of(struct MHD_Connection *connection,
                                         const struct sockaddr_storage *source)
{
	if (source->ss_family != AF_UNSPEC)
		return (const struct sockaddr *)source;
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static void name_address(const struct sockaddr *address, char name[HEAD_CLIENT_SIZE])
{
	struct in6_addr ip;

	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, name,
		          HEAD_CLIENT_SIZE);
	if (address->sa_family != AF_INET6)
		return;
	ip = ((const struct sockaddr_in6 *)address)->sin6_addr;
	if (!IN6_IS_ADDR_V4MAPPED(&ip))
		memset(&ip.s6_addr[8], 0, 8);
	inet_ntop(AF_INET6, &ip, name, HEAD_CLIENT_SIZE);
}

void headers_name_client(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                         char name[HEAD_CLIENT_SIZE])
{
	int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct ucred user = {.uid = (uid_t)-1};
	socklen_t size = sizeof user;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
	snprintf(name, HEAD_CLIENT_SIZE, "user %u", user.uid);
	name_address(address_of(connection, source), name);
}

bool headers_from_proxy(struct MHD_Connection *connection)
{
	static const struct sockaddr_storage none;

	return networks_have(&limits.trusted_proxies, address_of(connection, &none));
}

/* Joins headers of the same name into one list. */
static enum MHD_Result add_forwarded(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
	const bool standard = !strcasecmp(name, "Forwarded");
	struct head_writer *list = (struct head_writer *)context + standard;

	(void)kind;
	if (!value || (!standard && strcasecmp(name, "X-Forwarded-For")))
		return MHD_YES;
	head_append(list, ",", 1);
	head_append(list, value, strlen(value));
	return MHD_YES;
}

/* Names the client. Each proxy adds the address that it heard, so the last one that is no trusted
 * proxy's is the client's. If both headers are there neither counts, because a client can send the
 * one that its proxy does not know. */
static void name_forwarded(struct MHD_Connection *connection, const struct sockaddr *nearest,
                           char name[HEAD_CLIENT_SIZE])
{
	struct head_writer lists[2] = {{0}}, *list; /* X-Forwarded-For, Forwarded */
	struct sockaddr_storage source;
	bool counts;

	if (!networks_have(&limits.trusted_proxies, nearest))
		return;
	MHD_get_connection_values(connection, MHD_HEADER_KIND, add_forwarded, lists);
	counts = !lists[0].size || !lists[1].size;
	list = lists[1].size ? &lists[1] : &lists[0];
	head_append(list, "", 1);
	while (counts && !list->failed && networks_have(&limits.trusted_proxies, nearest) &&
	       proxy_last(list->data, list == &lists[1], &source)) {
		nearest = (const struct sockaddr *)&source;
		name_address(nearest, name);
	}
	free(lists[0].data);
	free(lists[1].data);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

enum error headers_read(struct MHD_Connection *connection, const char *name,
                        const struct sockaddr_storage *source, const char *method, const char *url,
                        struct head *head, bool *expects)
{
	const char *type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct head_writer writer = {0};
	struct parameters parameters = {.writer = &writer};
	const char *scheme_end = *url == '/' ? NULL : strstr(url, "://");
	char client[HEAD_CLIENT_SIZE];
	enum error e;

	strcpy(client, name);
	name_forwarded(connection, address_of(connection, source), client);
	head_add(&writer, HEAD_METHOD, method);
	if (scheme_end) {
		url = strchrnul(scheme_end + strlen("://"), '/');
		url = *url ? url : "/";
	}
	head_add(&writer, HEAD_PATH, url);
	head_add(&writer, HEAD_CLIENT, client);
#define HEADER(symbol, name, many)                                                                 \
	MHD_get_connection_values(                                                                 \
	    connection, MHD_HEADER_KIND, add_header,                                               \
	    &(struct collection){&writer, HEAD_##symbol, name, many, false});
#include "link/headers.def"
#undef HEADER
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, &parameters);
	e = head_read(head, writer.data, writer.size);
	if (length)
		head->announced = strtoull(length, NULL, 10);
	else if (header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		head->announced = UINT64_MAX;
	head->form = type && form_is_one(type);
	*expects = header(connection, MHD_HTTP_HEADER_EXPECT);
	return writer.failed ? ERR_MEMORY : e;
}
