/* The representation of an answer (RFC 9110, 8.8.3 and 13): caching, version, compression, the
 * headers that it depends on; and what a browser may do with it. */
#ifndef FRONT_API_REPRESENTATION_H
#define FRONT_API_REPRESENTATION_H

#include "front/api/request.h"

/* Answers a request whose route has `act` with a shared text while that holds, or else as `act`
 * does. The catalogue and the pages hold until the codec workers' formats change, and get a
 * version; metrics hold for a second; all else for fifty times what it took to make, at most a
 * second. Only answers with 200 are shared. */
void representation_answer(struct request *request);
void representations_fini(void);

/* Adds the headers of every answer: browsers must not guess its type, or run anything in it unless
 * it has a Content-Security-Policy of its own; only an answer with a version may be cached, and
 * must be revalidated; Vary names the request headers that it depends on (by_accept: Accept). */
void representation_finish(struct answer *answer, bool by_accept);

/* Turns an answer with a version into 304 if If-None-Match (NULL: missing) names that version. It
 * keeps its headers; the library sends no body with that status. */
void representation_revalidate(struct answer *answer, const char *if_none_match);

#endif
