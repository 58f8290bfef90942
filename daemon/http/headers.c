/* Headers and query of a request, whose syntax grammar.c has checked. */
#include "http/headers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/form.h"
#include "http/intake.h"
#include "http/proxy.h"

/* The destination of the headers of a name. */
struct collection {
	struct head_writer *writer;
	enum head_text text;
	const char *name;
	bool many, found;
};

static enum MHD_Result add_header(void *context, enum MHD_ValueKind, const char *name,
                                  const char *value)
{
	struct collection *c = context;

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

/* Adds the headers of a name as one text, if there are any: as a list (many), or the first. */
static void add_headers(struct MHD_Connection *connection, struct head_writer *writer,
                        enum head_text text, const char *name, bool many)
{
	struct collection c = {writer, text, name, many, false};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header, &c);
}

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind, const char *name,
                                     const char *value)
{
	head_add(context, HEAD_NAME, name);
	head_add(context, HEAD_VALUE, value ? value : "");
	return MHD_YES;
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

void headers_name_client(int fd, const struct sockaddr *address, char name[HEAD_CLIENT_SIZE])
{
	struct ucred user = {.uid = (uid_t)-1};
	socklen_t size = sizeof user;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size);
	snprintf(name, HEAD_CLIENT_SIZE, "user %u", user.uid);
	name_address(address, name);
}

/* Names the client. Each proxy adds the address that it heard, so the last one that is no trusted
 * proxy's is the client's. If both headers are there neither counts, because a client can send the
 * one that its proxy does not know. */
static void name_forwarded(struct MHD_Connection *connection, const struct sockaddr *nearest,
                           char name[HEAD_CLIENT_SIZE])
{
	struct head_writer common = {0}, standard = {0}, *list;
	struct sockaddr_storage source;

	if (!networks_have(&limits.trusted_proxies, nearest))
		return;
	add_headers(connection, &common, HEAD_CLIENT, "X-Forwarded-For", true);
	add_headers(connection, &standard, HEAD_CLIENT, "Forwarded", true);
	list = standard.size ? &standard : &common;
	while (!common.size != !standard.size && !list->failed &&
	       networks_have(&limits.trusted_proxies, nearest) &&
	       proxy_last(list->data + 1, list == &standard, &source)) {
		nearest = (const struct sockaddr *)&source;
		name_address(nearest, name);
	}
	free(common.data);
	free(standard.data);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

enum error headers_read(struct MHD_Connection *connection, const char *name,
                        const struct sockaddr *address, const char *method, const char *url,
                        struct head *head, bool *expects)
{
	const char *type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct head_writer writer = {0};
	const char *scheme_end = *url == '/' ? NULL : strstr(url, "://");
	char client[HEAD_CLIENT_SIZE];
	enum error e;

	strcpy(client, name);
	name_forwarded(connection, address, client);
	head_add(&writer, HEAD_METHOD, method);
	if (scheme_end) {
		url = strchrnul(scheme_end + strlen("://"), '/');
		url = *url ? url : "/";
	}
	head_add(&writer, HEAD_PATH, url);
	head_add(&writer, HEAD_CLIENT, client);
#define HEADER(symbol, name, many) add_headers(connection, &writer, HEAD_##symbol, name, many);
#include "link/headers.def"
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, &writer);
	e = head_read(head, writer.data, writer.size);
	if (length)
		head->announced = strtoull(length, NULL, 10);
	else if (header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		head->announced = UINT64_MAX;
	head->form = type && form_is_one(type);
	*expects = header(connection, MHD_HTTP_HEADER_EXPECT);
	return writer.failed ? ERR_MEMORY : e;
}
