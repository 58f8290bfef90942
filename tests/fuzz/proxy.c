/* The first bytes of a connection through a proxy: a header is the same however much follows it,
 * and no part of it is one; and lists of addresses, which end. */
#include <netinet/in.h>

#include "fuzz.h"
#include "http/proxy.h"

static int parse(const char *data, size_t size, struct sockaddr_storage *source)
{
	char *copy = copy_of(data, size);
	int length = proxy_parse(copy, size, source);

	free(copy);
	return length;
}

static void check_header(const char *data, size_t size)
{
	struct sockaddr_storage source, other;
	int length = parse(data, size, &source);

	must(length <= (int)size && length <= PROXY_HEADER_MAX && length >= PROXY_MALFORMED);
	for (size_t part = 1; part < size; part++) {
		int shorter = parse(data, part, &other);

		must(length <= 0 || shorter == ((int)part < length ? PROXY_INCOMPLETE : length));
		must(shorter >= 0 || shorter == length);
		must(shorter <= 0 || length <= 0 || !memcmp(&source, &other, sizeof source));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct sockaddr_storage source;
	const char *data = (const char *)input;

	if (!size)
		return 0;
	check_header(data, size < 300 ? size : 300);
	for (int forwarded = 0; forwarded < 2; forwarded++) {
		char *copy = strndup(data, size);

		while (*copy) {
			size_t before = strlen(copy);

			must(!proxy_last(copy, forwarded, &source) || source.ss_family == AF_INET ||
			     source.ss_family == AF_INET6);
			must(strlen(copy) < before);
		}
		free(copy);
	}
	return 0;
}
