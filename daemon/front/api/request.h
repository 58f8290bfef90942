/* A request from its first header to its answer, without its socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/value.h"
#include "front/api/answer.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/store.h"
#include "link/head.h"
#include "link/link.h"

enum {
	REQUEST_NUMBER_DIGITS = 16,
	REQUEST_ID_SIZE = REQUEST_NUMBER_DIGITS + 1 + CONFIG_NAME_MAX + 1
};
enum { DEADLINE_MAX_MS = 86400000 };

struct fingerprint;
struct request;

/* Traits of a route's answers. SHARED: one serves all equal requests, see representation.h. */
enum route_trait {
	BY_ACCEPT = 1 << 0, /* the header Accept decides what they are */
	SHARED_A_MOMENT = 1 << 1,
	SHARED_A_SECOND = 1 << 2,
	SHARED_BY_REPERTOIRE = 1 << 3,
	OPEN = 1 << 4,         /* for clients without a token, too */
	FOR_MONITORS = 1 << 5, /* also at addresses for metrics and health alone, without a token */
};

/* A method and path that the service answers; the rows are in routes.c. */
struct route {
	const char *method;
	const char *path; /* also a metric's label; {name} is a filter's, {preset} a preset's */
	/* Answers a request without body, or leaves it without an answer and is called again when
	 * its waiter is woken. NULL: the request carries an image. */
	void (*act)(struct request *request);
	/* For the description of the API, see catalogue.c; lists are separated by spaces. */
	const char *summary; /* NULL: it is no part of that */
	const char *query;   /* parameters, headers among them */
	const char *answers; /* STATUS:NAME of openapi.json; for a problem only STATUS */
	unsigned traits;     /* bits of enum route_trait */
};

/* The state of a job that an event stream has last told its client. */
struct told {
	uint64_t at; /* loop_now(); 0: nothing yet */
	enum stored_state state;
	uint32_t tiles;
	bool end;
};

struct request {
	char id[REQUEST_ID_SIZE]; /* a random number in hexadecimal, and -NODE if there is a name */
	struct head head;         /* owned */
	struct share head_memory;
	const char *method, *path; /* in its head */
	bool cors;                 /* for a page of another site that may use the service */
	bool urlencoded; /* its Content-Type is the one that curl sends with -d and --data-binary */
	bool async;      /* Prefer: respond-async (RFC 7240) */
	const char *key; /* its Idempotency-Key, if it is asynchronous; else NULL */
	const struct route *route;
	char *argument; /* the part of the path that is the route's argument, "" if none; owned */
	char *preset;   /* the query of the preset that it names, split once it is read; or NULL */
	unsigned fixed; /* the last ones of the parameters, which are the preset's */
	uint64_t arrived;    /* loop_now() */
	struct chain *chain; /* from the parsing of the parameters until there is a job; owned */
	struct message_job options;
	struct job_terms terms;
	bool expected;                 /* its body is wanted: admission counts on a job */
	uint64_t body_max, memory_max; /* limit as configured when it was admitted */
	struct share place;            /* its place among the expected bodies */
	struct share memory;           /* the memory of its body, until there is a job */
	bool has_body;                 /* spool is open */
	struct spool body;
	struct job *job;
	struct waiter waiter; /* for what its answer waits for */
	struct answer answer;
	struct unread unread;       /* the answer while it is sent */
	void (*cut)(void *context); /* ends its connection; context is the waiter's */
	/* NULL, or a function that supplies the next piece of the answer's body, or no text if
	 * there is none until the waiter is woken. It returns false at the end of the body. */
	bool (*stream)(struct request *request);
	struct told told;                /* by the stream */
	struct fingerprint *fingerprint; /* with a key; owned */
	/* the asynchronous job that it waits for, or ""; it has been deleted */
	char stored[REQUEST_ID_SIZE];
	bool deleted;
};

/* Takes over the head's contents, also on failure (NULL: no memory). node: its name, or "". */
struct request *request_new(struct head *head, const char *node);
void request_free(struct request *request);

/* True while its body is wanted; else it is to be dropped. */
static inline bool request_wants_body(const struct request *request)
{
	return !request->answer.status && request->expected;
}

/* Reads what the head says. On error answer with the problem. */
enum error request_read(struct request *request, struct problem *problem) MUST_CHECK;

/* Releases the body, which will not be used. */
void request_drop_body(struct request *request);

/* Makes room for a total of `size` bytes of the body, or for as many as it may have. *lent says
 * where; if it has no descriptor, the request's waiter is woken when to ask again. On error answer
 * with the problem. */
enum error request_lend(struct request *request, uint64_t size, struct lent *lent,
                        struct problem *problem) MUST_CHECK;

/* Records that the body is complete in this memfd, which becomes the request's, also on failure. On
 * error as above; request_settle() follows. */
enum error request_take(struct request *request, int fd, uint64_t size,
                        struct problem *problem) MUST_CHECK;

/* Records that the body is complete, with `size` bytes in the lent room. On error as above. */
enum error request_settle(struct request *request, uint64_t size,
                          struct problem *problem) MUST_CHECK;

/* Parses the parameters into a chain, and the options and terms of the request. filter: the filter
 * named in the path, or NULL for a chain. */
enum error request_parse(struct request *request, const char *filter, struct chain *chain,
                         struct problem *problem) MUST_CHECK;

struct reading;

/* Scopes of parameters; each is part of those before it. */
enum scope {
	SCOPE_CHAIN,
	SCOPE_FILTER, /* one filter */
	SCOPE_PRESET, /* beside what the preset has */
};

/* A parameter that every filter takes, or only a chain. */
struct common_parameter {
	const char *name;
	enum scope scope;
	const char *text;       /* its meaning */
	struct value_kind kind; /* unless it has a reader of its own */
	double default_;
	const char *schema; /* JSON Schema with ' for "; NULL: it follows from the kind */
	bool is_text;       /* kept as it is */
	bool (*read)(struct reading *reading, const char *text);
	const char *expected; /* the values that it reads */
	enum error (*parse)(struct reading *reading, const struct common_parameter *parameter,
	                    const char *text, struct problem *problem);
	size_t member; /* offset in struct reading */
};

/* The i-th of them, or NULL after the last. */
const struct common_parameter *request_common_parameter(size_t i);

/* Checks the parameters of a preset, before it is known which formats and devices there will be. */
enum error request_check_preset(const struct head *head, struct problem *problem) MUST_CHECK;
