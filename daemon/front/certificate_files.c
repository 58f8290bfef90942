/* Reads certificate and key. */
#include "front/certificate_files.h"

#include <stdlib.h>

#include "common/log.h"
#include "front/config/textfile.h"
#include "http/certificate.h"

/* One file of the pair, as read. */
struct part {
	const char *option;
	char *path, *text;
	size_t size;
};

static bool found;

static void read_part(struct part *p, bool is_private)
{
	p->text = textfile_read(p->option, p->path, is_private, &p->size);
}

static void part_fini(struct part *p)
{
	textfile_free(p->text, p->size);
	free(p->path);
}

/* Hands over both, if they fit together. */
static bool use(const struct part *certificate, const struct part *key)
{
	const char *wrong = certificate_import(&(struct pem){certificate->text, certificate->size},
	                                       &(struct pem){key->text, key->size});

	if (wrong)
		log_error("tls-certificate=%s and tls-key=%s: %s; expected a certificate and its "
		          "private key, as PEM",
		          certificate->path, key->path, wrong);
	return !wrong;
}

bool certificate_files_read(const struct config *config)
{
	struct part certificate = {.option = "tls-certificate"}, key = {.option = "tls-key"};
	bool valid = true;

	certificate_drop();
	found = false;
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
		valid = found = certificate.text && key.text && use(&certificate, &key);
	}
	part_fini(&certificate);
	part_fini(&key);
	return valid;
}

bool certificate_files_found(void)
{
	return found;
}
