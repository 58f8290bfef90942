/* Reads certificate and key. */
#include "front/certificate_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"
#include "front/config/textfile.h"
#include "front/http_workers.h"
#include "link/certificate.h"

/* One file of the pair, as read. */
struct part {
	const char *option;
	char *path, *text;
	size_t size;
};

static struct {
	int fd;
	size_t chain_size, key_size;
} next = {.fd = -1};

static void read_part(struct part *p, bool is_private)
{
	p->text = textfile_read(p->option, p->path, is_private, &p->size);
}

static void part_fini(struct part *p)
{
	textfile_free(p->text, p->size);
	free(p->path);
}

/* Keeps both for the workers, in a memfd. */
static bool keep(const struct part *certificate, const struct part *key)
{
	next.fd = memfd_create("certificate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	next.chain_size = certificate->size;
	next.key_size = key->size;
	if (next.fd >= 0 &&
	    write(next.fd, certificate->text, certificate->size) == (ssize_t)certificate->size &&
	    write(next.fd, key->text, key->size) == (ssize_t)key->size &&
	    !fcntl(next.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return true;
	log_error("cannot keep the certificate: %m");
	return false;
}

/* Checks that they fit together. */
static bool use(const struct part *certificate, const struct part *key)
{
	const char *wrong = certificate_import(&(struct pem){certificate->text, certificate->size},
	                                       &(struct pem){key->text, key->size});

	certificate_drop();
	if (!wrong)
		return keep(certificate, key);
	log_error("tls-certificate=%s and tls-key=%s: %s; expected a certificate and its private "
	          "key, as PEM",
	          certificate->path, key->path, wrong);
	return false;
}

static void drop_next(void)
{
	if (next.fd >= 0)
		close(next.fd);
	next.fd = -1;
}

bool certificate_files_read(const struct config *config)
{
	struct part certificate = {.option = "tls-certificate"}, key = {.option = "tls-key"};
	bool valid = true;

	drop_next();
	certificate.path = secret_path(config->tls_certificate, certificate.option);
	key.path = secret_path(config->tls_key, key.option);
	if (!certificate.path != !key.path) {
		log_error("%s is set but not %s: TLS needs both",
		          certificate.path ? certificate.option : key.option,
		          certificate.path ? key.option : certificate.option);
		valid = false;
	} else if (key.path) {
		read_part(&certificate, false);
		read_part(&key, true);
		valid = certificate.text && key.text && use(&certificate, &key);
	}
	part_fini(&certificate);
	part_fini(&key);
	return valid;
}

bool certificate_files_found(void)
{
	return next.fd >= 0;
}

void certificate_files_commit(void)
{
	if (next.fd >= 0)
		http_workers_certify(next.fd, next.chain_size, next.key_size);
	next.fd = -1;
}

void certificate_files_fini(void)
{
	drop_next();
}
