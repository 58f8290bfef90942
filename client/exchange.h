/* One request and its answer: an image to the service and the result back, or something asked of
 * it. A body is read from its file as it is sent, a result written as it comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/server.h"

enum outcome {
	OUTCOME_NONE,        /* not yet */
	OUTCOME_DONE,        /* 200, and a result if one was to be */
	OUTCOME_FAILED,      /* not for this image */
	OUTCOME_WRONG,       /* not for any: there is no such filter, or a parameter is not valid */
	OUTCOME_REFUSED,     /* not for any: no right to it, no convolved */
	OUTCOME_UNREACHABLE, /* nobody is there, or nobody answers */
	OUTCOME_GIVEN_UP,    /* because of a signal, or of what came of another */
};

struct exchange {
	/* What is asked; whoever sets these releases them. */
	char *target;    /* path and query */
	int body;        /* open file of the image; -1: a GET */
	int64_t size;    /* bytes of it */
	int result;      /* open file for the body of a 200, empty; -1: it becomes `text` */
	bool own_format; /* its target asks for a format that its own output's name has */
	void *owner;

	/* What came of it. */
	enum outcome outcome;
	char *text; /* the body, if it is not in `result`; else what was wrong; or NULL */
	size_t text_size;

	/* Between begin and end. */
	CURL *easy;
	int64_t sent;
	unsigned attempts;
	double due;  /* when it is to begin again; 0: it is under way */
	int failure; /* errno of our own reading or writing, or -1: the input is shorter now */
	char detail[CURL_ERROR_SIZE];
};

/* Makes the easy handle ready; the body and the result from their starts. */
void exchange_prepare(struct exchange *e, const struct server *server);

/* Looks at what came: sets the outcome, or `due` if it is worth another attempt. */
void exchange_judge(struct exchange *e, const struct server *server, CURLcode code);

/* Releases handle and text. */
void exchange_fini(struct exchange *e);
