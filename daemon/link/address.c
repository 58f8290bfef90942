/* Parses addresses to listen on. */
#include "link/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

static const char unix_prefix[] = "unix:", tls_prefix[] = "tls:";

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

bool address_parse(const char *text, struct address *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	                         .ai_socktype = SOCK_STREAM},
	                *list;
	struct sockaddr_un *un = (struct sockaddr_un *)&address->socket;
	const char *colon;
	char host[256];
	size_t length;

	*address = (struct address){.text = text, .tls = has_prefix(text, tls_prefix)};
	if (has_prefix(text, unix_prefix)) {
		text += strlen(unix_prefix);
		if (!*text || strlen(text) >= sizeof un->sun_path)
			return false;
		un->sun_family = AF_UNIX;
		strcpy(un->sun_path, text);
		address->size = sizeof *un;
		return true;
	}
	if (address->tls)
		address->text += strlen(tls_prefix);
	text = address->text;
	colon = strrchr(text, ':');
	length = colon ? (size_t)(colon - text) : sizeof host;
	if (*text == '[' && length < sizeof host && length >= 2 && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	if (length >= sizeof host)
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &list))
		return false;
	memcpy(&address->socket, list->ai_addr, list->ai_addrlen);
	address->size = list->ai_addrlen;
	freeaddrinfo(list);
	return true;
}

bool address_valid(const char *text)
{
	struct address address;

	return address_parse(text, &address);
}

bool address_is_local(const struct sockaddr *socket)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)socket;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)socket;

	switch (socket->sa_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
		        v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	default:
		return false;
	}
}
