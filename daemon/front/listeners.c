/* Opens the listening sockets, hands them to HTTP and to the agent checks, and checks tokens,
 * certificate and addresses against each other. */
#include "front/listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"
#include "front/agent.h"
#include "front/api/tokens.h"
#include "front/config/textfile.h"
#include "front/http_workers.h"
#include "link/certificate.h"

enum { BACKLOG = 1024 };

_Static_assert(2 * (int)CONFIG_LIST_MAX <= (int)HTTP_SOCKETS_MAX, "every listener is served");

/* A socket manager keeps the sockets: clients that connect during a drain wait there. */
static bool passed;

/* The option that lists addresses of a use, the name of a passed socket, and what the log says. */
static const struct {
	const char *option, *name, *remark;
} uses[LISTENER_USES] = {
    [LISTENER_CLIENTS] = {"listen", "", ""},
    [LISTENER_METRICS] = {"metrics-listen", "metrics", " for metrics and health"},
    [LISTENER_AGENT] = {"agent-listen", "agent", " for agent checks"},
};

/* Removes a socket file that no process serves. */
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

/* Opens a socket that listens there; -1, and errno says why. */
static int open_address(const struct address *address)
{
	int family = address->socket.ss_family, one = 1, failure, fd;
	bool failed;
	mode_t mask;

	errno = EINVAL;
	if (!address->size)
		return -1;
	if (family == AF_UNIX)
		remove_stale((const struct sockaddr_un *)&address->socket);
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	mask = umask(~(mode_t)strtoul(config->socket_mode, NULL, 8) & 0777);
	failed = bind(fd, (const struct sockaddr *)&address->socket, address->size) ||
	         listen(fd, BACKLOG);
	umask(mask);
	if (!failed)
		return fd;
	failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

static struct listener passed_listener(int fd, const char *name)
{
	struct listener l = {.at.text = "a socket passed by systemd",
	                     .at.tls = !strcmp(name, "tls"),
	                     .passed = true,
	                     .fd = fd};
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	l.local = !getsockname(fd, (struct sockaddr *)&address, &size) &&
	          address_is_local((const struct sockaddr *)&address);
	for (enum listener_use use = LISTENER_CLIENTS + 1; use < LISTENER_USES; use++)
		if (!strcmp(name, uses[use].name))
			l.use = use;
	return l;
}

unsigned listener_list(struct listener list[LISTENERS_MAX])
{
	const struct config_list *const addresses[LISTENER_USES] = {
	    [LISTENER_CLIENTS] = &config->listen,
	    [LISTENER_METRICS] = &config->metrics_listen,
	    [LISTENER_AGENT] = &config->agent_listen,
	};
	char **names = NULL;
	/* The variables stay, because a reload reads them again. */
	int named = sd_listen_fds_with_names(0, &names);
	unsigned count = 0;

	for (int i = 0; i < named; i++) {
		if (count < CONFIG_LIST_MAX)
			list[count++] = passed_listener(SD_LISTEN_FDS_START + i, names[i]);
		free(names[i]);
	}
	free(names);
	for (enum listener_use use = count ? LISTENER_METRICS : LISTENER_CLIENTS;
	     use < LISTENER_USES; use++)
		for (unsigned i = 0; i < addresses[use]->count; i++) {
			struct listener *l = &list[count++];

			*l = (struct listener){.use = use, .fd = -1};
			address_parse(addresses[use]->item[i], &l->at);
			l->optional = use == LISTENER_CLIENTS && config->listen_is_default &&
			              l->at.socket.ss_family == AF_UNIX;
			l->local = address_is_local((const struct sockaddr *)&l->at.socket);
		}
	return count;
}

/* Writes an address as listen= has it. */
static void describe(int fd, char *text, size_t room)
{
	struct sockaddr_storage address = {0};
	const struct sockaddr_un *path = (const struct sockaddr_un *)&address;
	socklen_t size = sizeof address;
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE], port[8];

	snprintf(text, room, "an address of unknown type");
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
	log_info("listening on %s%s%s%s", address, l->at.tls ? " by TLS" : "", uses[l->use].remark,
	         remark);
}

/* A socket of another type would accept connections that nobody answers. */
static enum error check_passed(const struct listener *l)
{
	char address[160];

	if (sd_is_socket(l->fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
		log_error("cannot serve descriptor %d from systemd: expected a listening stream "
		          "socket (ListenStream= with Accept=no)",
		          l->fd);
		return ERR_IO;
	}
	describe(l->fd, address, sizeof address);
	/* HTTP workers may not change it. */
	if (fcntl(l->fd, F_SETFL, fcntl(l->fd, F_GETFL) | O_NONBLOCK)) {
		log_error("%s, passed by systemd, cannot be made non-blocking: %m", address);
		return ERR_IO;
	}
	log_listening(l, address, ", passed by systemd");
	return ERR_OK;
}

enum error listener_open(struct listener *l)
{
	if (l->passed)
		return check_passed(l);
	l->fd = open_address(&l->at);
	if (l->fd < 0 && l->optional && (errno == ENOENT || errno == EACCES || errno == EROFS)) {
		log_notice("not listening on the default address %s: %m", l->at.text);
		return ERR_OK;
	}
	if (l->fd < 0) {
		log_error("%s=%s: %m", uses[l->use].option, l->at.text);
		return ERR_IO;
	}
	log_listening(l, l->at.text, "");
	return ERR_OK;
}

enum error listeners_init(void)
{
	struct listener list[LISTENERS_MAX];
	unsigned count = listener_list(list);
	enum error e = ERR_OK;

	for (unsigned i = 0; !e && i < count; i++) {
		struct listener *l = &list[i];

		passed |= l->passed;
		e = listener_open(l);
		if (!e && l->use == LISTENER_AGENT)
			e = agent_serve(l->fd);
		else if (!e && l->fd >= 0)
			http_workers_serve((struct http_socket){
			    .fd = l->fd, .tls = l->at.tls, .metrics = l->use == LISTENER_METRICS});
	}
	return e;
}

void listeners_drain(void)
{
	http_workers_drain(!passed);
}

/* Access --------------------------------------------------------------------------------------- */

/* The last certificate that was read, if it is not yet in force. */
static struct certificate_file next = {.fd = -1};

/* Keeps certificate and key for the workers, in a memfd. */
static bool keep(const struct pem pems[2])
{
	next.fd = memfd_create("certificate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	next.sizes.chain_size = pems[0].size;
	next.sizes.key_size = pems[1].size;
	if (next.fd >= 0 && file_write(next.fd, pems[0].text, pems[0].size, 0) &&
	    file_write(next.fd, pems[1].text, pems[1].size, pems[0].size) && memfd_seal(next.fd))
		return true;
	log_error("cannot keep the certificate: %m");
	return false;
}

/* Reads certificate and key, from the files of the configuration or the credentials, and checks
 * that they fit together. */
static bool read_certificate(const struct config *c)
{
	static const char *const options[] = {"tls-certificate", "tls-key"};
	char *const paths[] = {textfile_secret(c->tls_certificate, options[0]),
	                       textfile_secret(c->tls_key, options[1])};
	struct pem pems[2] = {{0}};
	const char *wrong = NULL;
	bool valid = !paths[0] == !paths[1];

	file_close(&next.fd);
	if (!valid) {
		log_error("%s is set but not %s: TLS needs both", options[!paths[0]],
		          options[!paths[1]]);
	} else if (paths[0]) {
		for (int i = 0; i < 2; i++)
			pems[i].text = textfile_read(options[i], paths[i], i == 1, &pems[i].size);
		valid = pems[0].text && pems[1].text;
		if (valid)
			wrong = certificate_import(&pems[0], &pems[1], false);
		if (wrong)
			log_error("tls-certificate=%s and tls-key=%s: %s; expected a certificate "
			          "and its private key, as PEM",
			          paths[0], paths[1], wrong);
		valid = valid && !wrong && keep(pems);
	}
	for (int i = 0; i < 2; i++) {
		textfile_free(pems[i].text, pems[i].size);
		free(paths[i]);
	}
	return valid;
}

static bool may_serve(const struct listener *l, const struct config *c)
{
	if (l->use == LISTENER_AGENT && l->at.tls) {
		log_error("agent-listen=tls:%s: agent checks are not encrypted: leave out tls:",
		          l->at.text);
		return false;
	}
	if (l->at.tls && next.fd < 0) {
		log_error("%s: TLS needs tls-certificate and tls-key", l->at.text);
		return false;
	}
	if (l->use != LISTENER_CLIENTS || l->local)
		return true;
	if (!tokens_wanted() && !c->allow_anonymous) {
		log_error("%s can be reached from other hosts: set tokens=FILE, or "
		          "allow-anonymous=yes to serve everyone, or listen on a loopback address "
		          "(127.0.0.1:PORT, [::1]:PORT, unix:PATH)",
		          l->at.text);
		return false;
	}
	if (tokens_wanted() && !l->at.tls)
		log_warning(
		    "%s is not encrypted, so tokens can be intercepted (the prefix tls: enables "
		    "encryption)",
		    l->at.text);
	return true;
}

bool listeners_read(const struct config *c)
{
	struct listener list[LISTENERS_MAX];
	unsigned count;
	bool valid = tokens_read(c);

	valid &= read_certificate(c);
	if (!valid)
		return false;
	/* A reload cannot change addresses, so those being served are checked. */
	count = listener_list(list);
	for (unsigned i = 0; i < count; i++)
		valid &= may_serve(&list[i], c);
	return valid;
}

void listeners_commit(void)
{
	tokens_commit();
	if (next.fd >= 0)
		http_workers_certify(next);
	next.fd = -1;
}

void listeners_fini(void)
{
	tokens_fini();
	file_close(&next.fd);
}
