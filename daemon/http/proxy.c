/* Parsers of what proxies say. */
#include "http/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LINE_MAX_1 = 107, HEAD_2 = 16, IPV4_2 = 12, IPV6_2 = 36 };

static const char start_1[] = "PROXY ";
static const char start_2[12] = "\r\n\r\n\0\r\nQUIT\n";

static bool read_address(const char *text, struct sockaddr_storage *source)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)source;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)source;

	memset(source, 0, sizeof *source);
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		source->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
		source->ss_family = AF_INET6;
	return source->ss_family != AF_UNSPEC;
}

/* PROXY TCP4 SOURCE DESTINATION PORT PORT, or PROXY UNKNOWN and any text */
static int parse_line(const char *data, size_t size, struct sockaddr_storage *source)
{
	const char *end = memchr(data, '\n', size < LINE_MAX_1 ? size : LINE_MAX_1);
	char line[LINE_MAX_1 + 1], from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN], rest;
	size_t length = end ? (size_t)(end - data) + 1 : 0;
	struct sockaddr_storage other;
	unsigned version, ports[2];

	if (!end)
		return size < LINE_MAX_1 ? PROXY_INCOMPLETE : PROXY_MALFORMED;
	memcpy(line, data, length);
	line[length] = '\0';
	if (length < sizeof start_1 + 1 || strlen(line) != length || line[length - 2] != '\r')
		return PROXY_MALFORMED;
	line[length - 2] = '\0';
	if (!strncmp(line + sizeof start_1 - 1, "UNKNOWN", 7))
		return (int)length;
	if (sscanf(line, "PROXY TCP%1u %45s %45s %5u %5u%c", &version, from, to, &ports[0],
	           &ports[1], &rest) != 5 ||
	    ports[0] > UINT16_MAX || ports[1] > UINT16_MAX || !read_address(from, source) ||
	    !read_address(to, &other) || other.ss_family != source->ss_family ||
	    version != (source->ss_family == AF_INET ? 4 : 6))
		return PROXY_MALFORMED;
	return (int)length;
}

static int parse_binary(const char *data, size_t size, struct sockaddr_storage *source)
{
	const unsigned char *head = (const unsigned char *)data;
	size_t length;

	if (size < HEAD_2)
		return PROXY_INCOMPLETE;
	length = (size_t)head[14] << 8 | head[15];
	if (head[12] >> 4 != 2 || (head[12] & 15) > 1 || HEAD_2 + length > PROXY_HEADER_MAX)
		return PROXY_MALFORMED;
	if (size < HEAD_2 + length)
		return PROXY_INCOMPLETE;
	if ((head[12] & 15) == 1 && head[13] >> 4 == 1) {
		if (length < IPV4_2)
			return PROXY_MALFORMED;
		source->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)source)->sin_addr, head + HEAD_2, 4);
	} else if ((head[12] & 15) == 1 && head[13] >> 4 == 2) {
		if (length < IPV6_2)
			return PROXY_MALFORMED;
		source->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)source)->sin6_addr, head + HEAD_2, 16);
	}
	return (int)(HEAD_2 + length);
}

/* Returns true if the data begin with the text, as far as they go. */
static bool may_begin(const char *data, size_t size, const char *text, size_t length)
{
	return !memcmp(data, text, size < length ? size : length);
}

int proxy_parse(const char *data, size_t size, struct sockaddr_storage *source)
{
	int length;

	memset(source, 0, sizeof *source);
	if (may_begin(data, size, start_1, sizeof start_1 - 1))
		length = parse_line(data, size, source);
	else if (may_begin(data, size, start_2, sizeof start_2))
		length = parse_binary(data, size, source);
	else
		length = PROXY_NONE;
	if (length <= 0)
		source->ss_family = AF_UNSPEC;
	return length;
}

/* Returns the parameter `for` of an element of Forwarded, without quotes; NULL: none. */
static char *find_for(char *element)
{
	for (char *part; (part = strsep(&element, ";"));) {
		size_t length;

		part += strspn(part, " ");
		if (strncasecmp(part, "for=", 4) || !part[4])
			continue;
		part += 4;
		length = strlen(part);
		if (length < 2 || *part != '"' || part[length - 1] != '"')
			return part;
		part[length - 1] = '\0';
		return part + 1;
	}
	return NULL;
}

/* ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT */
static bool read_node(char *text, struct sockaddr_storage *source)
{
	char *colon = strchr(text, ':');

	if (strlen(text) >= INET6_ADDRSTRLEN + 8)
		return false;
	if (*text == '[') {
		text[strcspn(text, "]")] = '\0';
		return read_address(text + 1, source) && source->ss_family == AF_INET6;
	}
	if (colon && !strchr(colon + 1, ':'))
		*colon = '\0';
	return read_address(text, source);
}

bool proxy_last(char *list, bool forwarded, struct sockaddr_storage *source)
{
	char *comma = strrchr(list, ','), *at = comma ? comma + 1 : list, *end;
	bool found;

	at += strspn(at, " \t");
	end = at + strlen(at);
	while (end > at && strchr(" \t", end[-1]))
		end--;
	*end = '\0';
	if (forwarded)
		at = find_for(at);
	found = at && *at && read_node(at, source);
	*(comma ? comma : list) = '\0';
	return found;
}
