/* Sockets to listen on. */
#include "http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/log.h"

enum { BACKLOG = 1024 };

static const char unix_prefix[] = "unix:", tls_prefix[] = "tls:";

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

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

static int open_unix(const char *path, unsigned mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int fd;

	if (strlen(path) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	remove_stale(&address);
	mask = umask(~mode & 0777);
	fd = bind_and_listen(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
	umask(mask);
	return fd;
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

	if (has_prefix(address, unix_prefix))
		return address[5] &&
		       strlen(address + 5) < sizeof((struct sockaddr_un *)0)->sun_path;
	list = parse_tcp(address + (has_prefix(address, tls_prefix) ? strlen(tls_prefix) : 0));
	if (!list)
		return false;
	freeaddrinfo(list);
	return true;
}

static bool is_local(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	switch (address->sa_family) {
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

static struct listener of_address(const char *address, bool metrics, bool standard)
{
	struct listener l = {.address = address, .metrics = metrics, .fd = -1};
	bool is_unix = has_prefix(address, unix_prefix);
	struct addrinfo *list;

	l.tls = has_prefix(address, tls_prefix);
	l.address += l.tls ? strlen(tls_prefix) : 0;
	l.optional = standard && is_unix;
	list = is_unix ? NULL : parse_tcp(l.address);
	l.local = is_unix || (list && is_local(list->ai_addr));
	if (list)
		freeaddrinfo(list);
	return l;
}

static struct listener of_descriptor(int fd)
{
	struct listener l = {.address = "a socket passed by systemd", .passed = true, .fd = fd};
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	l.local = !getsockname(fd, (struct sockaddr *)&address, &size) &&
	          is_local((const struct sockaddr *)&address);
	return l;
}

/* The names are asked for each time: the variables stay, as a reload looks at them again. */
static unsigned list_passed(struct listener list[LISTENERS_MAX])
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(0, &names);
	unsigned listed = 0;

	for (int i = 0; i < count; i++) {
		if (listed < CONFIG_LIST_MAX) {
			list[listed] = of_descriptor(SD_LISTEN_FDS_START + i);
			list[listed].tls = !strcmp(names[i], "tls");
			list[listed++].metrics = !strcmp(names[i], "metrics");
		}
		free(names[i]);
	}
	free(names);
	return listed;
}

unsigned listener_list(const struct config *config, struct listener list[LISTENERS_MAX])
{
	unsigned count = list_passed(list);

	if (!count)
		for (; count < config->listen.count; count++)
			list[count] =
			    of_address(config->listen.item[count], false, config->listen_standard);
	for (unsigned i = 0; i < config->metrics_listen.count; i++)
		list[count++] = of_address(config->metrics_listen.item[i], true, false);
	return count;
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

static void log_listening(const struct listener *l, const char *address, const char *remark)
{
	log_info("listening on %s%s%s%s", address, l->tls ? " by TLS" : "",
	         l->metrics ? " for metrics and health" : "", remark);
}

/* A socket of another kind would be served without an answer. */
static enum error check_passed(const struct listener *l)
{
	char address[160];

	if (sd_is_socket(l->fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
		log_error("descriptor %d, which systemd has passed, cannot be served: it must be a "
		          "stream socket that listens (ListenStream= with Accept=no)",
		          l->fd);
		return ERR_IO;
	}
	describe(l->fd, address, sizeof address);
	log_listening(l, address, ", passed by systemd");
	return ERR_OK;
}

enum error listener_open(struct listener *l, unsigned mode)
{
	if (l->passed)
		return check_passed(l);
	l->fd = has_prefix(l->address, unix_prefix) ? open_unix(l->address + 5, mode)
	                                            : open_tcp(l->address);
	if (l->fd < 0 && l->optional && (errno == ENOENT || errno == EACCES || errno == EROFS)) {
		log_notice("not listening on %s, which is a default: %m", l->address);
		return ERR_OK;
	}
	if (l->fd < 0) {
		log_error("%s=%s: %m", l->metrics ? "metrics-listen" : "listen", l->address);
		return ERR_IO;
	}
	log_listening(l, l->address, "");
	return ERR_OK;
}
