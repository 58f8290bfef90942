/* ETag, Vary, gzip. ETags are weak, because the same text may be sent compressed or not.
 *
 * A text that many ask for is made once for all of them: metrics at most once a second; other texts
 * that change all the time, and metrics with `Cache-Control: no-cache`, as soon as that costs no
 * more than a fiftieth of the thread's time. */
#include "front/api/representation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "front/api/accept.h"
#include "front/workers/repertoire.h"

enum {
	COMPRESS_MIN = 512, /* bytes; less fits into one packet anyway */
	GZIP_WINDOW = 15 + 16,
	GZIP_MEMORY = 8,
	ETAG_SIZE = 24,
	/* lifetime of a text that serves for a moment, in multiples of the time to make it */
	COST_FACTOR = 50,
	SECOND_NS = 1000000000, /* the longest moment */
};

/* A finished answer without the parts of a single request. */
struct representation {
	struct answer answer;
	char *gzip; /* NULL: nobody has asked for it, or it would not be smaller */
	size_t gzip_size;
	struct format_sets repertoire;
	uint64_t made, cost; /* loop_now(); nanoseconds of the thread */
};

static GHashTable *representations; /* by path, and the choice by Accept */

void representation_finish(struct answer *a, bool by_accept)
{
	bool is_text = a->text || (a->status == 304 && a->file < 0);

	answer_header(a, "Cache-Control", a->version ? "private, no-cache" : "no-store");
	answer_header(a, "X-Content-Type-Options", "nosniff");
	if (!answer_has(a, "Content-Security-Policy"))
		answer_header(a, "Content-Security-Policy", "default-src 'none'");
	if (by_accept || is_text)
		answer_header(a, "Vary", "%s%s%s", by_accept ? "Accept" : "",
		              by_accept && is_text ? ", " : "", is_text ? "Accept-Encoding" : "");
}

/* If-None-Match may name it as weak or strong, or be "*". */
static bool is_unchanged(uint64_t version, const char *if_none_match, char etag[ETAG_SIZE])
{
	snprintf(etag, ETAG_SIZE, "W/\"%016" PRIx64 "\"", version);
	return accept_weigh(if_none_match, etag, "*") ||
	       accept_weigh(if_none_match, etag + 2, NULL);
}

void representation_revalidate(struct answer *a, const char *if_none_match)
{
	char etag[ETAG_SIZE];

	if (!a->version)
		return;
	if (is_unchanged(a->version, if_none_match, etag))
		a->status = 304;
	answer_header(a, "ETag", "%s", etag);
}

/* Shared texts --------------------------------------------------------------------------------- */

static void representation_free(void *representation)
{
	struct representation *one = representation;

	answer_fini(&one->answer);
	free(one->gzip);
	free(one);
}

static bool is_current(const struct representation *one, const struct request *r)
{
	const char *wish = r->head.text[HEAD_CACHE_CONTROL];
	const unsigned traits = r->route->traits;
	const bool whole = traits & SHARED_A_SECOND && !(wish && !strcmp(wish, "no-cache"));
	const struct format_sets now = repertoire();
	uint64_t lasts = whole ? SECOND_NS : one->cost * COST_FACTOR;

	if (traits & SHARED_BY_REPERTOIRE)
		return one->repertoire.read == now.read && one->repertoire.written == now.written;
	return loop_now() - one->made < (lasts < SECOND_NS ? lasts : SECOND_NS);
}

/* Lets the route answer, and keeps that under the key (owned from now on). NULL if it cannot. */
static struct representation *make(struct request *r, char *key)
{
	uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct representation *one = NULL;

	r->route->act(r);
	if (r->answer.status == 200)
		one = calloc(1, sizeof *one);
	if (!one) {
		free(key);
		return NULL;
	}
	one->answer = r->answer;
	answer_init(&r->answer);
	if (r->route->traits & SHARED_BY_REPERTOIRE)
		one->answer.version =
		    crc32_z(0, (const Bytef *)one->answer.text, one->answer.text_size);
	one->repertoire = repertoire();
	one->made = loop_now();
	one->cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	g_hash_table_replace(representations, key, one);
	return one;
}

/* Compresses the text, unless that is done. Returns false if it is short or that fails. */
static bool has_gzip(struct representation *one)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const size_t size = one->answer.text_size;
	z_stream stream = {.next_in = (Bytef *)one->answer.text, .avail_in = (uInt)size};
	size_t room;

	if (one->gzip || size < COMPRESS_MIN || size > UINT32_MAX ||
	    deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		return one->gzip;
	room = deflateBound(&stream, size);
	one->gzip = malloc(room);
	stream.next_out = (Bytef *)one->gzip;
	stream.avail_out = (uInt)room;
	if (one->gzip && deflate(&stream, Z_FINISH) != Z_STREAM_END) {
		free(one->gzip);
		one->gzip = NULL;
	}
	one->gzip_size = stream.total_out;
	deflateEnd(&stream);
	one->cost += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	return one->gzip;
}

static void give(struct request *r, struct representation *one)
{
	struct answer *a = &r->answer;
	bool packed =
	    accept_weigh(r->head.text[HEAD_ACCEPT_ENCODING], "gzip", "*") && has_gzip(one);
	size_t size = packed ? one->gzip_size : one->answer.text_size;
	char etag[ETAG_SIZE], *copy;

	a->version = one->answer.version;
	for (unsigned i = 0; i < one->answer.headers; i++)
		answer_header(a, one->answer.header[i].name, "%s", one->answer.header[i].value);
	if (a->version && is_unchanged(a->version, r->head.text[HEAD_IF_NONE_MATCH], etag)) {
		a->status = 304;
		a->content_type = one->answer.content_type;
		a->file_size = size;
		return;
	}
	copy = malloc(size);
	if (copy)
		memcpy(copy, packed ? one->gzip : one->answer.text, size);
	answer_text(a, 200, one->answer.content_type, copy, size);
	if (packed)
		answer_header(a, "Content-Encoding", "gzip");
}

void representation_answer(struct request *r)
{
	const char *accept = r->route->traits & BY_ACCEPT ? r->head.text[HEAD_ACCEPT] : NULL;
	struct representation *one;
	char *key;

	if (!(r->route->traits & (SHARED_A_MOMENT | SHARED_A_SECOND | SHARED_BY_REPERTOIRE)) ||
	    asprintf(&key, "%s%s%s", r->path, accept_openmetrics(accept) ? " openmetrics" : "",
	             accept_html(accept) ? " html" : "") < 0) {
		r->route->act(r);
		return;
	}
	if (!representations)
		representations =
		    g_hash_table_new_full(g_str_hash, g_str_equal, free, representation_free);
	one = g_hash_table_lookup(representations, key);
	if (one && is_current(one, r))
		free(key);
	else
		one = make(r, key);
	if (one)
		give(r, one);
}

void representations_fini(void)
{
	if (representations)
		g_hash_table_destroy(representations);
	representations = NULL;
}
