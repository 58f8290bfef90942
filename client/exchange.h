/* One request and its answer: sends an image to the service and receives the result, or sends a
 * GET; or reads, writes or looks for a file elsewhere (peer). The body is read from its file while
 * it is sent, and the result is written while it arrives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/mask.h"
#include "client/server.h"

enum outcome {
	OUTCOME_NONE,        /* not yet */
	OUTCOME_DONE,        /* an accepted status, with the wanted result; a peer's success */
	OUTCOME_FAILED,      /* this image was refused */
	OUTCOME_ENDED,       /* the awaited job ended without a result */
	OUTCOME_GONE,        /* it is not there, or ended so for a passing reason */
	OUTCOME_WRONG,       /* every image would be refused: unknown filter or invalid parameter */
	OUTCOME_REFUSED,     /* every image would be refused: no permission, or not a convolved */
	OUTCOME_UNREACHABLE, /* the service, or a store, cannot be reached or does not answer */
	OUTCOME_GIVEN_UP,    /* ended by a signal, or by the outcome of another exchange */
};

/* The largest file that is read from or sent to a peer, in bytes: stores' limit for a request. */
#define EXCHANGE_PEER_MAX ((curl_off_t)5 << 30)

struct exchange;

/* A peer: the other side of a request, if it is not the service. */
struct peer {
	const char *name; /* "the object store" */
	enum outcome unreachable;
	/* Sets the options that the service's requests have not, its address among them. May set
	 * `own_heads`, the headers that are sent. */
	void (*prepare)(struct exchange *e);
	/* Tells whether a refused request is to be sent again at once, since it can be better now;
	 * may be NULL. */
	bool (*correct)(struct exchange *e);
	/* Tells whether an answer may be better next time. */
	bool (*is_passing)(const struct exchange *e);
	/* Judges an answer: sets the outcome, and a message. */
	void (*judge)(struct exchange *e);
};

/* A file while it is sent. */
struct upload {
	struct exchange *e;
	int file;
	int64_t size, sent; /* bytes */
};

struct exchange {
	/* The request. The caller owns these and releases them. */
	const char *target;       /* path and query; a web server's address; an object's name */
	const char *query;        /* query of a store's request; or NULL */
	const char *condition;    /* header by which a store keeps what is there; or NULL */
	const struct peer *peer;  /* NULL: the service */
	struct aws *aws;          /* a store's settings */
	bool whole;               /* all of a peer's text matters */
	struct curl_slist *heads; /* further headers, such as a store's keys */
	bool look;                /* only the headers matter, at a store */
	const char *method;       /* NULL: POST with a body, else GET */
	long accepted;            /* status that is a success, besides 200 */
	bool waits;               /* for the end of a job: asked again until then */
	int body;                 /* open file of the image; -1: none */
	int64_t size;             /* bytes of the body */
	const struct mask *mask;  /* goes with the image to the service; or NULL */
	int result;               /* open file for the body of a 200; -1: the body becomes `text` */
	bool own_format;          /* the target asks for the format that the output's name has */
	void *owner;

	/* The answer. */
	enum outcome outcome;
	bool wrong;  /* every image would be refused so */
	long status; /* HTTP's */
	char *text;  /* the body if `result` is -1; on failure the message; or NULL */
	size_t text_size;

	/* Members that are valid between begin and end. */
	CURL *easy;
	/* form of a request with a mask, or with parameters too long for its address; or NULL */
	curl_mime *form;
	struct upload body_upload, mask_upload;
	struct curl_slist *own_heads; /* a peer's headers with those above; or NULL */
	unsigned corrections;         /* bits of the peer's corrections so far */
	unsigned keys;                /* version of the store's keys */
	const char *region;           /* the store's */
	unsigned attempts;
	double due;  /* time of the next attempt; 0: under way */
	int failure; /* errno of reading the body or writing the result; -1: a truncated body */
	char detail[CURL_ERROR_SIZE];
};

/* Prepares the easy handle; body and result start from their beginnings. */
void exchange_prepare(struct exchange *e, const struct server *server);

/* Evaluates what arrived: sets the outcome, or `due` if another attempt is worth it. */
void exchange_judge(struct exchange *e, const struct server *server, CURLcode code);

/* Forgets the answer, so that the exchange can take another request. */
void exchange_renew(struct exchange *e);

/* For peers: replaces the text by a message. */
void exchange_say(struct exchange *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Does the same with an address in its printable form for the format's only %s. */
void exchange_say_address(struct exchange *e, const char *format, const char *address);
/* Returns a header of the answer, or NULL. */
const char *exchange_header(const struct exchange *e, const char *name);
/* Tells whether the answer marks its own end, so that a broken connection cannot look like one. */
bool exchange_has_end(const struct exchange *e);

/* Releases the handle's resources and the text. */
void exchange_fini(struct exchange *e);
