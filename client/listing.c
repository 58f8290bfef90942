/* Pages of keys. A page that is cut short, or does not say how to go on, is an error: what it lacks
 * would be left out in silence. Keys are read as the XML has them, since stores differ in what
 * `encoding-type=url` makes of a blank. */
#include "client/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/interrupt.h"
#include "client/place.h"
#include "client/report.h"
#include "client/store.h"
#include "client/transfer.h"
#include "client/xml.h"

/* Makes the query: its parts in the order in which they are signed. */
static char *query_of(const char *prefix, const char *token)
{
	char *text = NULL;
	size_t size;
	FILE *query = open_memstream(&text, &size);

	if (!query)
		abort();
	if (token) {
		fputs("continuation-token=", query);
		aws_escape(query, token, "");
		fputc('&', query);
	}
	fputs("list-type=2&prefix=", query);
	aws_escape(query, prefix, "");
	if (fclose(query))
		abort();
	return text;
}

/* Reads one <Contents>. Returns false if it is malformed. */
static bool read_object(struct xml_part part, const char *prefix, listing_found *found,
                        void *context)
{
	struct xml_part name = xml_find(part, "Key"), bytes = xml_find(part, "Size");
	char *key = xml_copy(name), *size = xml_copy(bytes), *end;
	long long number = strtoll(size, &end, 10);
	bool right = *key && *size && !*end && number >= 0 && !strncmp(key, prefix, strlen(prefix));

	if (right)
		found(context, key, number);
	free(key);
	free(size);
	return right;
}

/* Reads a page. *token becomes that of the next one; NULL: this was the last. Returns false if it
 * is malformed. */
static bool read_page(const char *text, const char *prefix, listing_found *found, void *context,
                      char **token)
{
	struct xml_part page = {text, strlen(text)}, more = xml_find(page, "IsTruncated");
	struct xml_part next = xml_find(page, "NextContinuationToken"), object, rest = page;
	bool truncated = more.size == 4 && !strncmp(more.at, "true", 4);

	*token = NULL;
	if (!strstr(text, "</ListBucketResult>") || !more.at || (truncated && !next.size))
		return false;
	while ((object = xml_find(rest, "Contents")).at) {
		if (!read_object(object, prefix, found, context))
			return false;
		rest.size -= (size_t)(object.at + object.size - rest.at);
		rest.at = object.at + object.size;
	}
	if (truncated)
		*token = xml_copy(next);
	return true;
}

enum exit_code listing_read(const struct server *server, struct aws *aws, const char *prefix,
                            listing_found *found, void *context)
{
	struct object object = place_object(prefix);
	char *bucket = strndup(prefix, (size_t)(object.bucket + object.bucket_size - prefix) + 1);
	char *token = NULL;
	enum exit_code status = EXIT_DONE;

	if (!bucket)
		abort();
	do {
		char *query = query_of(object.key, token), *text = NULL, *next = NULL;
		const struct exchange request = {.target = bucket,
		                                 .query = query,
		                                 .peer = &store_objects,
		                                 .aws = aws,
		                                 .whole = true,
		                                 .body = -1,
		                                 .result = -1};

		status = transfer_ask(server, &request, prefix, &text);
		if (!status && !read_page(text, object.key, found, context, &next)) {
			report_error("%s: the store's list of objects is malformed", prefix);
			status = EXIT_SOME_FAILED;
		}
		free(text);
		free(query);
		free(token);
		token = next;
	} while (token && !status && !interrupt_number());
	free(token);
	free(bucket);
	return status;
}
