/* Access control: checks tokens, certificate and addresses against each other. */
#include "front/access.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "front/api/tokens.h"
#include "front/config/textfile.h"
#include "front/http_workers.h"
#include "front/listeners.h"
#include "link/certificate.h"

/* A certificate or its key, as read. */
struct pem_file {
	const char *option;
	char *path, *text;
	size_t size;
};

/* What was read last and is not yet in force. */
static struct certificate_file next = {.fd = -1};

static void pem_file_fini(struct pem_file *p)
{
	textfile_free(p->text, p->size);
	free(p->path);
}

/* Checks that certificate and key fit together. */
static bool fit(const struct pem_file *certificate, const struct pem_file *key)
{
	const char *wrong = certificate_import(&(struct pem){certificate->text, certificate->size},
	                                       &(struct pem){key->text, key->size});

	certificate_drop();
	if (wrong)
		log_error(
		    "tls-certificate=%s and tls-key=%s: %s; expected a certificate and its private "
		    "key, as PEM",
		    certificate->path, key->path, wrong);
	return !wrong;
}

/* Keeps both for the workers, in a memfd. */
static bool keep(const struct pem_file *certificate, const struct pem_file *key)
{
	next.fd = memfd_create("certificate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	next.sizes.chain_size = certificate->size;
	next.sizes.key_size = key->size;
	if (next.fd >= 0 &&
	    write(next.fd, certificate->text, certificate->size) == (ssize_t)certificate->size &&
	    write(next.fd, key->text, key->size) == (ssize_t)key->size &&
	    !fcntl(next.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return true;
	log_error("cannot keep the certificate: %m");
	return false;
}

static void drop_next(void)
{
	if (next.fd >= 0)
		close(next.fd);
	next.fd = -1;
}

/* Reads certificate and key, from the files of the configuration or the credentials. */
static bool read_certificate(const struct config *config)
{
	struct pem_file certificate = {.option = "tls-certificate"}, key = {.option = "tls-key"};
	bool valid = true;

	drop_next();
	certificate.path = textfile_secret(config->tls_certificate, certificate.option);
	key.path = textfile_secret(config->tls_key, key.option);
	if (!certificate.path != !key.path) {
		log_error("%s is set but not %s: TLS needs both",
		          certificate.path ? certificate.option : key.option,
		          certificate.path ? key.option : certificate.option);
		valid = false;
	} else if (key.path) {
		certificate.text =
		    textfile_read(certificate.option, certificate.path, false, &certificate.size);
		key.text = textfile_read(key.option, key.path, true, &key.size);
		valid = certificate.text && key.text && fit(&certificate, &key) &&
		        keep(&certificate, &key);
	}
	pem_file_fini(&certificate);
	pem_file_fini(&key);
	return valid;
}

static bool may_serve(const struct listener *l, const struct config *config)
{
	if (l->use == LISTENER_AGENT && l->tls) {
		log_error("agent-listen=tls:%s: agent checks are not encrypted: leave out tls:",
		          l->address);
		return false;
	}
	if (l->tls && next.fd < 0) {
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

bool access_read(const struct config *config, const struct config *running)
{
	struct listener list[LISTENERS_MAX];
	unsigned count;
	bool valid = tokens_read(config);

	valid &= read_certificate(config);
	if (!valid)
		return false;
	/* A reload cannot change addresses, so those being served are checked. */
	count = listener_list(running ? running : config, list);
	for (unsigned i = 0; i < count; i++)
		valid &= may_serve(&list[i], config);
	return valid;
}

void access_commit(void)
{
	tokens_commit();
	if (next.fd >= 0)
		http_workers_certify(next);
	next.fd = -1;
}

void access_fini(void)
{
	tokens_fini();
	drop_next();
}
