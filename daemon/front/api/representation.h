/* What HTTP says of the form of an answer, beside its content: who may keep it and how it is known
 * again (RFC 9110, 8.8.3 and 13), in what it is compressed, what it depends on; and what a browser
 * may make of it. */
#ifndef FRONT_API_REPRESENTATION_H
#define FRONT_API_REPRESENTATION_H

#include "front/api/answer.h"

/* Adds the headers of every answer: no browser is to guess its type or to run anything in it, and
 * nothing is kept but what has a version; that is asked for anew. */
void representation_protect(struct answer *answer);

/* Says by Vary which headers of the request an answer depends on. by_accept: the format of an
 * image. */
void representation_vary(struct answer *answer, bool by_accept);

/* Makes an answer that has a version 304 if If-None-Match (NULL: there is none) names that version.
 * It keeps what the headers are about; the library sends no body with that status. */
void representation_revalidate(struct answer *answer, const char *if_none_match);

/* Compresses a text that is long enough to gain by it, if Accept-Encoding takes gzip. Without
 * memory it stays as it is. */
void representation_compress(struct answer *answer, const char *accept_encoding);

#endif
