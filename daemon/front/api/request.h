/* A request: what a client asks for, from its first header to its answer. Knows nothing of sockets;
 * exchange.c feeds it and sends what comes out. */
#ifndef FRONT_API_REQUEST_H
#define FRONT_API_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/api/answer.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/store.h"

enum { REQUEST_PARAMETERS_MAX = 64, REQUEST_ID_SIZE = 17, REQUEST_VALUE_MAX = 64 << 10 };
enum { DEADLINE_MAX_MS = 86400000 };

struct request;

/* What the service answers to; the rows are in routes.c. */
struct route {
	const char *method;
	const char *path; /* also in metrics; {name} is a filter's */
	/* Answers a request without body, or leaves it without an answer and is called again when
	 * its waiter is woken. NULL: the request carries an image. */
	void (*act)(struct request *request);
	/* For the description of the API, see openapi.c; lists are separated by spaces. */
	const char *summary;
	const char *query;    /* parameters */
	const char *answers;  /* when all is well */
	const char *problems; /* statuses that are to be expected */
};

/* What a client was last told of a job by a stream of events. */
struct told {
	uint64_t at; /* loop_now(); 0: nothing yet */
	enum stored_state state;
	uint32_t tiles;
	bool end;
};

struct request {
	char id[REQUEST_ID_SIZE];
	char *method, *path;       /* owned */
	char *accept;              /* header, or NULL; owned */
	const char *authorization; /* header, or NULL; good during routes_begin() */
	bool monitoring;           /* came by an address for metrics and health alone */
	bool multipart;
	bool urlencoded; /* says its Content-Type, as curl does with -d and --data-binary */
	bool async;      /* the client prefers that (RFC 7240) */
	const struct route *route;
	char *argument;   /* the part of the path that the route leaves open, "" if none; owned */
	uint64_t arrived; /* loop_now() */
	struct {
		char *name, *value; /* owned */
	} parameter[REQUEST_PARAMETERS_MAX];
	unsigned parameters;
	struct chain *chain; /* once the parameters are read, until there is a job; owned */
	struct message_job options;
	struct job_terms terms;
	uint64_t announced; /* Content-Length; UINT64_MAX if there is none */
	bool expected;      /* its body is wanted: admission knows that a job may come of it */
	uint64_t body_max, memory_max; /* as configured when it was admitted */
	struct share place;            /* among the bodies, while it is expected */
	struct share memory;           /* of its body, until there is a job */
	bool has_body;                 /* spool is open */
	struct spool body;
	struct job *job;
	struct waiter waiter; /* for what its answer needs; wake and context are exchange.c's */
	struct answer answer;
	/* NULL, or: makes the next piece of the answer's body, or no text if there is none until
	 * the waiter is woken. False: the body has ended. */
	bool (*stream)(struct request *request);
	struct told told; /* by the stream */
};

struct request *request_new(const char *method, const char *path);
void request_free(struct request *request);

/* Gives back what the body holds: it will not be used. */
void request_drop_body(struct request *request);

/* Adds a parameter. Too many, or no memory: an error, with its problem, is to be answered. */
enum error request_add_parameter(struct request *request, const char *name, const char *value,
                                 struct problem *problem) MUST_CHECK;

/* Lengthens the value of the last parameter, of which there is one: it comes in pieces. At most
 * REQUEST_VALUE_MAX bytes, and no NUL. */
enum error request_extend_parameter(struct request *request, const char *data, size_t size,
                                    struct problem *problem) MUST_CHECK;

/* True if a Prefer header asks for an asynchronous answer. */
bool request_prefers_async(const char *prefer);

/* Appends to the body; an error, with its problem, is to be answered. */
enum error request_write(struct request *request, const void *data, size_t size,
                         struct problem *problem) MUST_CHECK;

/* Reads the parameters into a chain, and the options and terms of the request. filter: the one
 * filter that is asked for, or NULL for a chain. */
enum error request_parse(struct request *request, const char *filter, struct chain *chain,
                         struct problem *problem) MUST_CHECK;

struct reading;

/* A parameter that every filter takes, or (for_chain) that only a chain takes. */
struct common_parameter {
	const char *name;
	bool for_chain;
	enum error (*parse)(struct reading *reading, const char *text, struct problem *problem);
	const char *schema; /* of its value: JSON Schema with ' for " */
	const char *text;   /* what it means */
};

/* The i-th of them, or NULL after the last. */
const struct common_parameter *request_common_parameter(size_t i);

#endif
