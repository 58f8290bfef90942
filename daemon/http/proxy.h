/* Clients as named by proxies: the PROXY protocol (versions 1 and 2, by W. Tarreau, 2010 to 2020),
 * Forwarded (RFC 7239) and X-Forwarded-For. The caller decides whether to believe them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Largest header of version 2 with all additions of proxies; a longer one is malformed. */
enum { PROXY_HEADER_MAX = 1024 };

enum { PROXY_INCOMPLETE = 0, PROXY_NONE = -1, PROXY_MALFORMED = -2 };

/* Parses the first bytes of a connection. Returns the length of the header, with the client in
 * *source (AF_UNSPEC: the header names none); or one of the above. */
int proxy_parse(const char *data, size_t size, struct sockaddr_storage *source);

/* Removes the last element of a list, as in Forwarded or X-Forwarded-For. Returns false if there is
 * none, or it has no numeric address. */
bool proxy_last(char *list, bool forwarded, struct sockaddr_storage *source);
