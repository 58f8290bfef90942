/* Access: what tokens, certificate and addresses mean together. */
#include "front/access.h"

#include "common/log.h"
#include "front/api/tokens.h"
#include "http/certificate.h"
#include "http/listener.h"

static bool may_serve(const struct listener *l, const struct config *config)
{
	if (l->tls && !certificate_wanted()) {
		log_error("%s is to be served by TLS: that needs tls-certificate and tls-key",
		          l->address);
		return false;
	}
	if (l->metrics || l->local)
		return true;
	if (!tokens_wanted() && !config->allow_anonymous) {
		log_error("%s can be reached from other hosts, and everyone there could use the "
		          "service: give out tokens (tokens=FILE), or allow that "
		          "(allow-anonymous=yes), or listen on a loopback address (127.0.0.1:PORT, "
		          "[::1]:PORT, unix:PATH)",
		          l->address);
		return false;
	}
	if (tokens_wanted() && !l->tls)
		log_warning(
		    "%s is not encrypted (an address with tls: before it is): tokens can be "
		    "read on their way",
		    l->address);
	return true;
}

static bool may_serve_all(const struct config *config, const struct config *addresses)
{
	struct listener list[LISTENERS_MAX];
	unsigned count = listener_list(addresses, list);
	bool valid = true;

	for (unsigned i = 0; i < count; i++)
		valid &= may_serve(&list[i], config);
	return valid;
}

bool access_read(const struct config *config, const struct config *running)
{
	bool valid = tokens_read(config);

	valid &= certificate_read(config);
	/* Addresses change by a restart only: what is served is what counts. */
	return valid && may_serve_all(config, running ? running : config);
}

void access_commit(void)
{
	tokens_commit();
	certificate_commit();
}

void access_fini(void)
{
	tokens_fini();
	certificate_fini();
}
