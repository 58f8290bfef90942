/* ETag, Vary, gzip. ETags are weak: the same text may go out compressed or not. */
#include "front/api/representation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "front/api/accept.h"

enum {
	COMPRESS_MIN = 512, /* bytes; less fits into one packet anyway */
	GZIP_WINDOW = 15 + 16,
	GZIP_MEMORY = 8,
	ETAG_SIZE = 24,
};

void representation_protect(struct answer *a)
{
	answer_header(a, "Cache-Control", a->version ? "private, no-cache" : "no-store");
	answer_header(a, "X-Content-Type-Options", "nosniff");
	if (!answer_has(a, "Content-Security-Policy"))
		answer_header(a, "Content-Security-Policy", "default-src 'none'");
}

void representation_vary(struct answer *a, bool by_accept)
{
	if (by_accept || a->text)
		answer_header(a, "Vary", "%s%s%s", by_accept ? "Accept" : "",
		              by_accept && a->text ? ", " : "", a->text ? "Accept-Encoding" : "");
}

/* True if a list of ETags, weak or strong, has this one, or is "*". */
static bool names(const char *list, const char *etag)
{
	size_t length = strlen(etag);

	for (const char *at = list + strspn(list, ", \t"); *at; at += strspn(at, ", \t")) {
		size_t item = strcspn(at, ", \t");

		if ((item == 1 && *at == '*') || (item == length && !strncmp(at, etag, item)) ||
		    (item == length - 2 && !strncmp(at, etag + 2, item)))
			return true;
		at += item;
	}
	return false;
}

void representation_revalidate(struct answer *a, const char *if_none_match)
{
	char etag[ETAG_SIZE];

	if (!a->version)
		return;
	snprintf(etag, sizeof etag, "W/\"%016llx\"", (unsigned long long)a->version);
	answer_header(a, "ETag", "%s", etag);
	if (if_none_match && names(if_none_match, etag))
		a->status = 304;
}

/* The text as gzip (malloc'ed), or NULL. */
static char *compress_text(const char *text, size_t size, size_t *compressed)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)size};
	char *out;

	if (size > UINT32_MAX || deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW,
	                                      GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	*compressed = deflateBound(&stream, size);
	out = malloc(*compressed);
	stream.next_out = (Bytef *)out;
	stream.avail_out = (uInt)*compressed;
	if (out && deflate(&stream, Z_FINISH) != Z_STREAM_END) {
		free(out);
		out = NULL;
	}
	*compressed = stream.total_out;
	deflateEnd(&stream);
	return out;
}

void representation_compress(struct answer *a, const char *accept_encoding)
{
	size_t size = 0;
	char *out;

	if (!a->text || a->text_size < COMPRESS_MIN || !accept_gzip(accept_encoding))
		return;
	out = compress_text(a->text, a->text_size, &size);
	if (!out)
		return;
	answer_piece(a, out, size);
	answer_header(a, "Content-Encoding", "gzip");
}
