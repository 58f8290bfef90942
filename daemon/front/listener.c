/* Sockets to listen on. */
#include "front/listener.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/log.h"

enum { BACKLOG = 1024 };

/* Removes a socket file at which nobody answers. */
static void remove_stale(const struct sockaddr_un *address)
{
	struct stat status;
	int fd;

	if (stat(address->sun_path, &status) || !S_ISSOCK(status.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof *address) && errno == ECONNREFUSED)
		unlink(address->sun_path);
	close(fd);
}

static int bind_and_listen(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, failure;

	if (fd < 0)
		return -1;
	if (family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (!bind(fd, address, size) && !listen(fd, BACKLOG))
		return fd;
	failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

static int open_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	remove_stale(&address);
	return bind_and_listen(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

/* The addresses of "ADDRESS:PORT" or "[ADDRESS]:PORT", NULL if it is neither; for freeaddrinfo().
 */
static struct addrinfo *parse_tcp(const char *text)
{
	char host[256];
	const char *colon = strrchr(text, ':'), *start = text;
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
	                         .ai_socktype = SOCK_STREAM},
	                *list;
	size_t length = colon ? (size_t)(colon - text) : sizeof host;

	if (*text == '[' && length < sizeof host && length >= 2 && colon[-1] == ']') {
		start++;
		length -= 2;
	}
	if (length >= sizeof host)
		return NULL;
	memcpy(host, start, length);
	host[length] = '\0';
	return getaddrinfo(host, colon + 1, &hints, &list) ? NULL : list;
}

static int open_tcp(const char *text)
{
	struct addrinfo *list = parse_tcp(text);
	int fd;

	errno = EINVAL;
	if (!list)
		return -1;
	fd = bind_and_listen(list->ai_family, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return fd;
}

bool listener_valid(const char *address)
{
	struct addrinfo *list;

	if (!strncmp(address, "unix:", 5))
		return address[5] &&
		       strlen(address + 5) < sizeof((struct sockaddr_un *)0)->sun_path;
	list = parse_tcp(address);
	if (!list)
		return false;
	freeaddrinfo(list);
	return true;
}

enum error listener_open(const char *address, int *fd)
{
	*fd = !strncmp(address, "unix:", 5) ? open_unix(address + 5) : open_tcp(address);
	if (*fd < 0) {
		log_error("listen=%s: %m", address);
		return ERR_IO;
	}
	log_info("listening on %s", address);
	return ERR_OK;
}

/* An address in the words of listen=. */
static void describe(int fd, char *text, size_t room)
{
	struct sockaddr_storage address = {0};
	const struct sockaddr_un *path = (const struct sockaddr_un *)&address;
	socklen_t size = sizeof address;
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE], port[8];

	snprintf(text, room, "an address of an unknown kind");
	if (getsockname(fd, (struct sockaddr *)&address, &size))
		return;
	if (address.ss_family == AF_UNIX)
		snprintf(text, room, "unix:%s%.*s", *path->sun_path ? "" : "@",
		         (int)sizeof path->sun_path - 1, path->sun_path + !*path->sun_path);
	else if (!getnameinfo((const struct sockaddr *)&address, size, host, sizeof host, port,
	                      sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, room, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
		         port);
}

enum error listener_check(int fd)
{
	char address[160];

	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
		log_error("descriptor %d, which systemd has passed, cannot be served: it must be a "
		          "stream socket that listens (ListenStream= with Accept=no)",
		          fd);
		return ERR_IO;
	}
	describe(fd, address, sizeof address);
	log_info("listening on %s, passed by systemd", address);
	return ERR_OK;
}
