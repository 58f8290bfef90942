/* Settings of an object store: keys, region and address, from the AWS tools' places. These are the
 * environment, then the profile's lines in ~/.aws/credentials and ~/.aws/config. Keys that must
 * first be fetched (roles, SSO, those of a machine's metadata) are not supported. */
#pragma once

#include "client/options.h"

struct aws {
	char *access_key, *secret_key;
	char *token;        /* for temporary keys; or NULL */
	char *region;       /* us-east-1 if none is named */
	char *endpoint;     /* address without a slash at its end; NULL: AWS in the region */
	char *ca_bundle;    /* file with the certificates to trust; or NULL */
	bool virtual_hosts; /* the bucket goes into the endpoint's host, not its path */
	char *whence;       /* source of the keys, for messages */
};

/* Returns EXIT_DONE, or EXIT_USAGE after printing the error. */
enum exit_code aws_load(struct aws *aws);
void aws_fini(struct aws *aws);

/* Returns the address of an object, percent-encoded so that it is the same in the signature; the
 * caller frees it. */
char *aws_url(const struct aws *aws, const char *name);
