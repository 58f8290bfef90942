/* The client's parsers for an object store: the files of the AWS tools, names of objects and
 * addresses, documents with errors. The first byte says which. */
#include <ctype.h>

#include <curl/curl.h>

#include "client/aws.h"
#include "client/ini.h"
#include "client/place.h"
#include "client/xml.h"
#include "fuzz.h"

/* Every part lies in the line that was read, without blanks around it. */
static void check_part(struct ini_part part, const char *text, const struct ini *ini)
{
	if (!part.at)
		return;
	must(part.at >= text && part.at + part.size <= ini->next &&
	     !memchr(part.at, '\n', part.size));
	must(!part.size || (!isspace((unsigned char)*part.at) &&
	                    !isspace((unsigned char)part.at[part.size - 1])));
}

static void read_ini(const char *text)
{
	struct ini ini = {.next = text};

	for (enum ini_item item; (item = ini_read(&ini)) != INI_END;) {
		const char *line = ini.next - 1;

		while (line > text && line[-1] != '\n')
			line--;
		check_part(ini.section, text, &ini);
		check_part(ini.parent, text, &ini);
		check_part(ini.key, text, &ini);
		check_part(ini.value, text, &ini);
		must((item != INI_VALUE && item != INI_NESTED) ||
		     (ini.key.at >= line && ini.section.at && ini.value.at >= ini.key.at));
		must((item == INI_NESTED) ==
		     (item != INI_SECTION && item != INI_MALFORMED && ini.parent.at != NULL));
	}
	must(!*ini.next);
}

/* The address has the key, and nothing in it that a signature would have otherwise. */
static void check_url(const char *name)
{
	struct aws aws = {.region = "eu-west-1", .endpoint = "http://h"};
	char *url = aws_url(&aws, name), *key;
	const struct object object = place_object(name);
	const char *path = url + strlen("http://h/") + object.bucket_size + 1;
	int size;

	for (const char *c = path; *c; c++)
		must(isalnum((unsigned char)*c) || strchr("-._~/%", *c));
	key = curl_easy_unescape(NULL, path, 0, &size);
	must(key && strlen(key) == (size_t)size && !strcmp(key, object.key));
	curl_free(key);
	free(url);
}

/* A path leads nowhere but below its directory. */
static void check_kept(const char *name, bool whole, bool to_object)
{
	char *kept = place_kept(name, whole, to_object);
	const char *part = kept;

	must(!kept || *kept);
	if (kept && whole && to_object && place_kind(name) == PLACE_OBJECT)
		part = NULL;
	while (part) {
		size_t size = strcspn(part, "/");

		must(size && !(size == 1 && *part == '.') &&
		     !(size == 2 && !strncmp(part, "..", 2)));
		must(whole || !part[size]);
		part = part[size] ? part + size + 1 : NULL;
	}
	free(kept);
}

static void read_name(const char *name)
{
	const char *wrong = place_check(name);
	char *shown = place_shown(name);
	bool address = place_kind(name) == PLACE_WEB || place_kind(name) == PLACE_UNKNOWN;
	const char *query = strchr(shown, '?'), *host = address ? strstr(shown, "://") + 3 : "";

	must(strlen(shown) <= strlen(name) && !memchr(host, '@', strcspn(host, "/?#")));
	must(!address || (!strchr(shown, '#') && !(query && strstr(query, "&X-Amz-Signature="))));
	free(shown);
	if (wrong)
		return;
	if (place_kind(name) == PLACE_OBJECT)
		check_url(name);
	for (int i = 0; i < 4; i++)
		check_kept(name, i & 1, i & 2);
}

static void read_xml(const char *text, size_t room)
{
	char *code = malloc(room);

	xml_text(text, "Code", code, room);
	must(strlen(code) < room);
	free(code);
	for (struct xml_part rest = {text, strlen(text)}, part;
	     (part = xml_find(rest, "Code")).at;) {
		char *copy = xml_copy(part);

		must(part.at > rest.at && part.at + part.size < rest.at + rest.size);
		must(strlen(copy) <= part.size);
		free(copy);
		rest.size -= (size_t)(part.at + part.size - rest.at);
		rest.at = part.at + part.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = strndup((const char *)input + 1, size - 1); /* to its first zero byte */
	if (input[0] % 4 == 0)
		read_xml(text, 1 + input[0] / 4);
	else if (input[0] % 4 == 1)
		read_ini(text);
	else
		read_name(text);
	free(text);
	return 0;
}
