/* Names of images. */
#include "client/place.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SCHEME_SIZE = sizeof "s3://" - 1, KEY_MAX = 1024, BUCKET_MIN = 3, BUCKET_MAX = 63 };

enum place place_kind(const char *name)
{
	const char *end = name;

	if (!strncmp(name, "s3://", SCHEME_SIZE))
		return PLACE_OBJECT;
	if (!strncasecmp(name, "https://", 8) || !strncasecmp(name, "http://", 7))
		return PLACE_WEB;
	while (isalnum((unsigned char)*end) || (end > name && *end && strchr("+.-", *end)))
		end++;
	return end > name && !strncmp(end, "://", 3) ? PLACE_UNKNOWN : PLACE_FILE;
}

struct object place_object(const char *name)
{
	struct object object = {.bucket = name + SCHEME_SIZE};

	object.bucket_size = strcspn(object.bucket, "/");
	object.key = object.bucket + object.bucket_size;
	object.key += *object.key == '/';
	return object;
}

static bool is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* S3's rules for names of buckets, which go into names of hosts. */
static bool is_bucket(const char *name, size_t size)
{
	if (size < BUCKET_MIN || size > BUCKET_MAX || !is_lower_or_digit(name[0]) ||
	    !is_lower_or_digit(name[size - 1]))
		return false;
	for (size_t i = 0; i < size; i++)
		if (!is_lower_or_digit(name[i]) && name[i] != '-' &&
		    (name[i] != '.' || name[i - 1] == '.'))
			return false;
	return true;
}

/* Tells whether a part of the key is . or .. */
static bool has_dots(const char *key)
{
	for (const char *part = key; *part;) {
		size_t size = strcspn(part, "/");

		if ((size == 1 && *part == '.') || (size == 2 && !strncmp(part, "..", 2)))
			return true;
		part += size + (part[size] == '/');
	}
	return false;
}

static const char *check_object(const char *name, bool directory)
{
	struct object object = place_object(name);
	size_t size = strlen(object.key);

	if (!is_bucket(object.bucket, object.bucket_size))
		return "expected s3://BUCKET/KEY, with a bucket of 3 to 63 lower-case letters, "
		       "digits, dots and hyphens";
	if (size > KEY_MAX)
		return "the key is too long: a store takes up to 1024 bytes";
	/* libcurl takes such parts out of addresses, and does not sign an address that it must
	 * keep. */
	if (has_dots(object.key))
		return "a key with . or .. between slashes cannot be asked for";
	if (directory)
		return NULL;
	if (!size)
		return "the name has no key: expected s3://BUCKET/KEY";
	if (object.key[size - 1] == '/')
		return "the name ends with a slash, so it is no object: a prefix is given on the "
		       "command line";
	return NULL;
}

static const char *check_web(const char *name)
{
	CURLU *url = curl_url();
	char *user = NULL;
	CURLUcode code;

	if (!url)
		abort();
	code = curl_url_set(url, CURLUPART_URL, name, 0);
	if (!code)
		curl_url_get(url, CURLUPART_USER, &user, 0);
	curl_url_cleanup(url);
	if (code)
		return "the address is malformed: expected https://HOST/PATH, with spaces and the "
		       "like as %20";
	if (!user)
		return NULL;
	curl_free(user);
	return "an address with a user name or a password is not read, since messages would show "
	       "it";
}

static const char *check(const char *name, bool output, bool directory)
{
	switch (place_kind(name)) {
	case PLACE_FILE:
		return *name ? NULL : "the name is empty";
	case PLACE_OBJECT:
		return check_object(name, directory);
	case PLACE_WEB:
		return output ? "results cannot be sent to web servers: expected a path or "
		                "s3://BUCKET/KEY"
		              : check_web(name);
	case PLACE_UNKNOWN:
		return "the address is of an unknown kind: expected a path, s3://BUCKET/KEY or "
		       "https://HOST/PATH";
	}
	return NULL;
}

const char *place_check(const char *name)
{
	return check(name, false, false);
}

bool place_is_prefix(const char *name)
{
	size_t size = strlen(name);

	return place_kind(name) == PLACE_OBJECT && size && name[size - 1] == '/' &&
	       !check_object(name, true);
}

const char *place_check_output(const char *name, bool directory)
{
	return check(name, true, directory);
}

static bool contains(const char *text, size_t size, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i + length <= size; i++)
		if (!strncasecmp(text + i, word, length))
			return true;
	return false;
}

/* Tells whether a query may be a credential: a parameter's name says so, or a value is so long that
 * it could be one. */
static bool is_secret(const char *query, size_t size)
{
	static const char *const words[] = {"sig",    "token", "key",  "pass", "pwd",
	                                    "secret", "auth",  "cred", "sess", "code",
	                                    "jwt",    "hmac",  "hash", "user"};
	enum { VALUE_MAX = 20 };

	for (const char *part = query, *end = query + size; part < end;) {
		const char *next = memchr(part, '&', (size_t)(end - part));
		size_t length = next ? (size_t)(next - part) : (size_t)(end - part);
		const char *equals = memchr(part, '=', length);
		size_t name = equals ? (size_t)(equals - part) : 0; /* else it is all value */

		if (length - name > VALUE_MAX)
			return true;
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (contains(part, equals ? name : length, words[i]))
				return true;
		part += length + 1;
	}
	return false;
}

/* Returns the host of an address, after user and password. These may contain characters that should
 * have been encoded and seem to end the host; then a port is none. *path becomes its end. */
static const char *find_host(const char *authority, const char **path)
{
	const char *end = authority + strcspn(authority, "/?#"), *at = NULL;
	const char *colon = memchr(authority, ':', (size_t)(end - authority));

	for (const char *c = authority; c < end; c++)
		at = *c == '@' ? c : at;
	if (!at && colon && *authority != '[' && colon + 1 + strspn(colon + 1, "0123456789") < end)
		at = strrchr(end, '@');
	if (at > end)
		end = at + 1 + strcspn(at + 1, "/?#");
	*path = end;
	return at ? at + 1 : authority;
}

char *place_shown(const char *name)
{
	const char *scheme_end = strstr(name, "://"), *host, *path, *query;
	enum place kind = place_kind(name);
	size_t length;
	char *shown = NULL;

	if (!scheme_end || kind == PLACE_FILE || kind == PLACE_OBJECT) {
		shown = strdup(name);
	} else {
		scheme_end += 3;
		host = find_host(scheme_end, &path);
		length = strcspn(path, "#");
		query = memchr(path, '?', length);
		if (query && is_secret(query + 1, (size_t)(path + length - query - 1)))
			length = (size_t)(query - path);
		if (asprintf(&shown, "%.*s%.*s%.*s", (int)(scheme_end - name), name,
		             (int)(path - host), host, (int)length, path) < 0)
			abort();
	}
	if (!shown)
		abort();
	return shown;
}

/* Returns the path of an address, unescaped; NULL if it has a zero byte. */
static char *path_of_address(const char *name)
{
	CURLU *url = curl_url();
	char *path = NULL, *plain = NULL, *copy = NULL;
	int size = 0;

	if (!url)
		abort();
	if (!curl_url_set(url, CURLUPART_URL, name, CURLU_PATH_AS_IS) &&
	    !curl_url_get(url, CURLUPART_PATH, &path, 0))
		plain = curl_easy_unescape(NULL, path, 0, &size);
	if (plain && strlen(plain) == (size_t)size && !(copy = strdup(plain)))
		abort();
	curl_free(plain);
	curl_free(path);
	curl_url_cleanup(url);
	return copy;
}

/* Removes empty parts and "." from a path; returns false if nothing is left or it leads upwards. */
static bool normalize(char *path)
{
	char *to = path;

	for (const char *part = path; *part;) {
		size_t size = strcspn(part, "/");
		const char *next = part + size + (part[size] == '/');

		if (size == 2 && !strncmp(part, "..", 2))
			return false;
		if (size && !(size == 1 && *part == '.')) {
			if (to > path)
				*to++ = '/';
			memmove(to, part, size);
			to += size;
		}
		part = next;
	}
	*to = '\0';
	return to > path;
}

char *place_kept(const char *name, bool whole, bool to_object)
{
	enum place kind = place_kind(name);
	const char *path = kind == PLACE_OBJECT ? place_object(name).key : name, *slash;
	char *kept = kind == PLACE_WEB ? path_of_address(name) : strdup(path);
	size_t size;

	if (!kept && kind != PLACE_WEB)
		abort();
	if (!kept || (kind == PLACE_OBJECT && to_object && whole))
		return kept;
	/* A path that ends with a slash has no name of its own. */
	size = strlen(kept);
	if (size && kept[size - 1] != '/' && !whole && (slash = strrchr(kept, '/')))
		memmove(kept, slash + 1, strlen(slash + 1) + 1);
	if (size && kept[size - 1] != '/' && normalize(kept))
		return kept;
	free(kept);
	return NULL;
}
