/* Access control: checks tokens, certificate and addresses against each other. */
#include "front/access.h"

#include "common/log.h"
#include "front/api/tokens.h"
#include "front/certificate_files.h"
#include "front/listener.h"

static bool may_serve(const struct listener *l, const struct config *config)
{
	if (l->use == LISTENER_AGENT && l->tls) {
		log_error("agent-listen=tls:%s: agent checks are not encrypted: leave out tls:",
		          l->address);
		return false;
	}
	if (l->tls && !certificate_files_found()) {
		log_error("%s: TLS needs tls-certificate and tls-key", l->address);
		return false;
	}
	if (l->use != LISTENER_CLIENTS || l->local)
		return true;
	if (!tokens_wanted() && !config->allow_anonymous) {
		log_error("%s can be reached from other hosts: set tokens=FILE, or "
		          "allow-anonymous=yes to serve everyone, or listen on a loopback address "
		          "(127.0.0.1:PORT, [::1]:PORT, unix:PATH)",
		          l->address);
		return false;
	}
	if (tokens_wanted() && !l->tls)
		log_warning(
		    "%s is not encrypted, so tokens can be intercepted (the prefix tls: enables "
		    "encryption)",
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

	valid &= certificate_files_read(config);
	/* A reload cannot change addresses, so those being served are checked. */
	return valid && may_serve_all(config, running ? running : config);
}

void access_commit(void)
{
	tokens_commit();
	certificate_files_commit();
}

void access_fini(void)
{
	tokens_fini();
	certificate_files_fini();
}
