/* The representation of an answer (RFC 9110, 8.8.3 and 13): caching, version, compression, the
 * request headers on which it depends, and restrictions for browsers. */
#pragma once

#include "front/api/request.h"

/* Answers a request whose route has `act` with a shared text while that is valid, or else by `act`.
 * The catalogue and the pages are valid until the codec workers' formats change, and have a
 * version; metrics for a second; all other texts for fifty times the time to make them, at most a
 * second. Only answers with 200 are shared. */
void representation_answer(struct request *request);
void representations_fini(void);

/* Adds the headers of every answer: browsers must not guess its type, or run anything in it unless
 * it has a Content-Security-Policy of its own; only an answer with a version may be cached, and
 * must be revalidated; Vary names the request headers on which it depends (by_accept: Accept). */
void representation_finish(struct answer *answer, bool by_accept);

/* Turns an answer with a version into 304 if If-None-Match (NULL: missing) names that version. It
 * keeps its headers; the library sends no body with that status. */
void representation_revalidate(struct answer *answer, const char *if_none_match);
