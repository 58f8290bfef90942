/* Settings of an object store: keys, region and address, from the AWS tools' places. These are the
 * environment, then the profile's lines in ~/.aws/credentials and ~/.aws/config, the program that
 * they name, and the address that a container has. Other ways to fetch keys (roles, SSO, a
 * machine's metadata) are not supported. Keys may be other ones later; a bucket's region and the
 * difference of clocks are learnt from the store's answers. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "client/options.h"

struct bucket;

struct aws {
	bool loaded;
	enum exit_code status; /* result of loading */
	char *access_key, *secret_key;
	char *token;          /* for temporary keys; or NULL */
	time_t expires;       /* 0: unknown */
	time_t renewed;       /* time of the last attempt to get others */
	unsigned version;     /* counts the keys */
	char *region;         /* us-east-1 if none is named */
	char *endpoint;       /* address without a slash at its end; NULL: AWS in the region */
	char *ca_bundle;      /* file with the certificates to trust; or NULL */
	bool virtual_hosts;   /* the bucket goes into the endpoint's host, not its path */
	char *whence;         /* source of the keys, for messages */
	bool pays;            /* for requests that the bucket's owner does not pay */
	bool unconditional;   /* the store knows no conditions of writes */
	time_t skew;          /* seconds by which the store's clock is ahead */
	struct bucket *known; /* buckets that are in other regions */
};

/* Loads the settings, once. Returns EXIT_DONE, or EXIT_USAGE after printing the error. */
enum exit_code aws_load(struct aws *aws);
void aws_fini(struct aws *aws);

/* Reads the keys again. Returns true if they are other ones now than those of this version. */
bool aws_renew(struct aws *aws, unsigned version);
/* Does so if they expire soon. */
void aws_refresh(struct aws *aws);

/* Returns the region of an object's bucket, as far as it is known; it lives as long as `aws`. */
const char *aws_region(const struct aws *aws, const char *name);
/* Takes note of it. Returns false if that is no name of a region. */
bool aws_set_region(struct aws *aws, const char *name, const char *region);

/* Returns the address of an object, percent-encoded so that it is the same in the signature; the
 * caller frees it. */
char *aws_url(const struct aws *aws, const char *name);

/* Writes a text as S3 encodes it: all but letters, digits, - . _ ~ and the characters in `kept`. */
void aws_escape(FILE *to, const char *text, const char *kept);
