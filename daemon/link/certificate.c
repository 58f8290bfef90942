/* Certificates. Only this file, http/intake.c and http/main.c use GnuTLS. */
#include "link/certificate.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/loop.h"

enum { CHAIN_MAX = 16 };

struct pair {
	struct pair *older;
	uint64_t followed; /* loop_now() when a newer pair replaced it */
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned count;
	gnutls_privkey_t key;
};

static struct pair *newest;

static void pair_free(struct pair *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key)
		gnutls_privkey_deinit(p->key);
	free(p);
}

static gnutls_datum_t datum(const struct pem *pem)
{
	return (gnutls_datum_t){(unsigned char *)pem->text, (unsigned)pem->size};
}

const char *certificate_import(const struct pem *chain, const struct pem *key, bool use)
{
	gnutls_certificate_credentials_t both;
	gnutls_datum_t c = datum(chain), k = datum(key);
	struct pair *next = calloc(1, sizeof *next);
	unsigned count = CHAIN_MAX;
	int failure = next ? gnutls_certificate_allocate_credentials(&both) : GNUTLS_E_MEMORY_ERROR;

	if (!failure) { /* do they belong together? */
		failure = gnutls_certificate_set_x509_key_mem(both, &c, &k, GNUTLS_X509_FMT_PEM);
		failure = MIN(failure, 0);
		gnutls_certificate_free_credentials(both);
	}
	if (!failure)
		failure = gnutls_privkey_init(&next->key);
	if (!failure)
		failure =
		    gnutls_privkey_import_x509_raw(next->key, &k, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (!failure)
		failure = gnutls_pcert_list_import_x509_raw(next->chain, &count, &c,
		                                            GNUTLS_X509_FMT_PEM, 0);
	if (!failure)
		next->count = count;
	if (failure || !use) {
		pair_free(next);
		return failure ? gnutls_strerror(failure) : NULL;
	}
	if (newest)
		newest->followed = loop_now();
	next->older = newest;
	newest = next;
	return NULL;
}

void certificate_forget(uint64_t time)
{
	struct pair **link = newest ? &newest->older : &newest;

	while (*link) {
		struct pair *p = *link;

		if (p->followed < time) {
			*link = p->older;
			pair_free(p);
		} else {
			link = &p->older;
		}
	}
}

static int find(gnutls_session_t, const gnutls_datum_t *, int, const gnutls_pk_algorithm_t *, int,
                gnutls_pcert_st **chain, unsigned *count, gnutls_privkey_t *key)
{
	if (!newest)
		return -1;
	*chain = newest->chain;
	*count = newest->count;
	*key = newest->key;
	return 0;
}

certificate_callback certificate_finder(void)
{
	return (certificate_callback)find;
}
