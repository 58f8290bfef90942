/* Keys, region and address of an object store. */
#include "client/aws.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ini.h"
#include "client/keys.h"
#include "client/place.h"
#include "client/report.h"
#include "client/smprint.h"

enum {
	FILE_MAX = 1 << 20,
	REGION_MAX = 64,
	SOON = 300,       /* seconds before keys expire in which others are looked for */
	RENEW_PAUSE = 60, /* seconds between two attempts */
};

/* A bucket with its region. */
struct bucket {
	struct bucket *next;
	char *name, *region;
};

/* The lines of a profile that matter. */
enum line {
	ACCESS_KEY,
	SECRET_KEY,
	TOKEN,
	REGION,
	ENDPOINT,
	SERVICES,
	CA_BUNDLE,
	IGNORE_ENDPOINTS,
	ROLE,
	WEB_IDENTITY,
	SSO_SESSION,
	SSO_URL,
	PROCESS,
	STYLE,       /* nested below s3 */
	S3_ENDPOINT, /* nested below s3, in the section that `services` names */
	LINE_COUNT
};

static const char *const line_names[] = {
    [ACCESS_KEY] = "aws_access_key_id",
    [SECRET_KEY] = "aws_secret_access_key",
    [TOKEN] = "aws_session_token",
    [REGION] = "region",
    [ENDPOINT] = "endpoint_url",
    [SERVICES] = "services",
    [CA_BUNDLE] = "ca_bundle",
    [IGNORE_ENDPOINTS] = "ignore_configured_endpoint_urls",
    [ROLE] = "role_arn",
    [WEB_IDENTITY] = "web_identity_token_file",
    [SSO_SESSION] = "sso_session",
    [SSO_URL] = "sso_start_url",
    [PROCESS] = "credential_process",
    [STYLE] = "addressing_style",
    [S3_ENDPOINT] = "endpoint_url",
};
_Static_assert(sizeof line_names / sizeof *line_names == LINE_COUNT, "a name for each line");

struct source {
	char *path, *text; /* text: NULL if there is no such file */
	bool config;       /* sections of profiles begin with "profile" */
	bool found;        /* it has the profile */
	char *lines[LINE_COUNT];
};

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Returns the first of two variables that is set. */
static const char *either(const char *one, const char *other)
{
	const char *value = environment(one);

	return value ? value : environment(other);
}

static char *copy_of(const char *text)
{
	return text ? smprint("%s", text) : NULL;
}

/* Files
 * ------------------------------------------------------------------------------------------ */

static char *path_of(const char *variable, const char *otherwise)
{
	const char *named = environment(variable), *home = environment("HOME");
	const char *path = named ? named : otherwise;

	return !strncmp(path, "~/", 2) ? smprint("%s%s", home ? home : "", path + 1)
	                               : smprint("%s", path);
}

/* Reads a whole file, if it exists. */
static enum exit_code read_file(struct source *s)
{
	FILE *file = fopen(s->path, "re");
	size_t size;

	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return EXIT_DONE;
	s->text = malloc(FILE_MAX + 1);
	if (!s->text)
		abort();
	size = file ? fread(s->text, 1, FILE_MAX, file) : 0;
	if (!file || ferror(file)) {
		report_error("%s: %s", s->path, strerror(errno));
		if (file)
			fclose(file);
		return EXIT_USAGE;
	}
	fclose(file);
	s->text[size] = '\0';
	if (size < FILE_MAX && strlen(s->text) == size)
		return EXIT_DONE;
	report_error("%s: expected a text of less than 1 MB", s->path);
	return EXIT_USAGE;
}

/* Tells whether the part is `word`, a blank and `name`, which may be in quotes. */
static bool is_section(struct ini_part part, const char *word, const char *name)
{
	size_t size = strlen(word);

	if (size) {
		if (part.size <= size || strncmp(part.at, word, size) ||
		    !isblank((unsigned char)part.at[size]))
			return false;
		part.at += size;
		part.size -= size;
		while (part.size && isblank((unsigned char)*part.at))
			part.at++, part.size--;
	}
	if (part.size > 1 && (*part.at == '"' || *part.at == '\'') &&
	    part.at[part.size - 1] == *part.at)
		part = (struct ini_part){part.at + 1, part.size - 2};
	return ini_is(part, name);
}

static bool is_profile(const struct source *s, struct ini_part part, const char *profile)
{
	if (s->config && strcmp(profile, "default") != 0)
		return is_section(part, "profile", profile);
	return is_section(part, "", profile) || (s->config && is_section(part, "profile", profile));
}

/* Keeps a value. The last line of a name counts. */
static void keep(struct source *s, enum line line, struct ini_part value)
{
	free(s->lines[line]);
	s->lines[line] = value.size ? smprint("%.*s", (int)value.size, value.at) : NULL;
}

static void keep_line(struct source *s, const struct ini *ini, enum ini_item item)
{
	if (item == INI_NESTED && ini_is(ini->parent, "s3") && ini_is(ini->key, line_names[STYLE]))
		keep(s, STYLE, ini->value);
	for (enum line line = 0; item == INI_VALUE && line < STYLE; line++)
		if (ini->key.size == strlen(line_names[line]) &&
		    !strncasecmp(ini->key.at, line_names[line], ini->key.size))
			keep(s, line, ini->value);
}

/* Reads the lines of the profile. */
static enum exit_code read_profile(struct source *s, const char *profile)
{
	struct ini ini = {.next = s->text};
	bool inside = false;

	for (enum ini_item item; s->text && (item = ini_read(&ini)) != INI_END;) {
		if (item == INI_MALFORMED) {
			report_error("%s:%u: expected [SECTION], or KEY = VALUE below one", s->path,
			             ini.line);
			return EXIT_USAGE;
		}
		if (item == INI_SECTION) {
			inside = is_profile(s, ini.section, profile);
			s->found |= inside;
		} else if (inside) {
			keep_line(s, &ini, item);
		}
	}
	return EXIT_DONE;
}

/* Reads the endpoint of S3 in the section that the profile's line `services` names. */
static void read_services(struct source *s)
{
	struct ini ini = {.next = s->text};

	for (enum ini_item item; s->lines[SERVICES] && (item = ini_read(&ini)) != INI_END;)
		if (item == INI_NESTED && is_section(ini.section, "services", s->lines[SERVICES]) &&
		    ini_is(ini.parent, "s3") && ini_is(ini.key, line_names[S3_ENDPOINT]))
			keep(s, S3_ENDPOINT, ini.value);
}

/* Settings from all sources
 * ----------------------------------------------------------------------- */

/* The two files; that of credentials counts first. */
struct files {
	struct source credentials, config;
};

static const char *line_of(const struct files *files, enum line line)
{
	const char *value = files->credentials.lines[line];

	return value ? value : files->config.lines[line];
}

static enum exit_code read_files(struct files *files, const char *named)
{
	const char *profile = named ? named : "default";
	enum exit_code status = read_file(&files->credentials);

	if (!status)
		status = read_file(&files->config);
	if (!status)
		status = read_profile(&files->credentials, profile);
	if (!status)
		status = read_profile(&files->config, profile);
	if (!status && named && !files->credentials.found && !files->config.found) {
		report_error("AWS_PROFILE: no profile %s in %s or %s", named,
		             files->credentials.path, files->config.path);
		status = EXIT_USAGE;
	}
	if (!status)
		read_services(&files->config);
	return status;
}

static void free_source(struct source *s)
{
	for (enum line line = 0; line < LINE_COUNT; line++)
		free(s->lines[line]);
	free(s->path);
	free(s->text);
}

static enum exit_code refuse(const char *what, const char *profile)
{
	report_error("%s is set, and convolve does not fetch keys: put temporary ones into the "
	             "environment, as `aws configure export-credentials --format env%s%s` prints "
	             "them",
	             what, profile ? " --profile " : "", profile ? profile : "");
	return EXIT_USAGE;
}

/* Takes keys that were fetched, or prints why there are none: `wrong`, which it frees. */
static enum exit_code take_fetched(struct aws *aws, const char *whence, const struct keys *keys,
                                   char *wrong)
{
	if (wrong) {
		report_error("%s: %s", whence, wrong);
		free(wrong);
		return EXIT_USAGE;
	}
	aws->access_key = keys->access;
	aws->secret_key = keys->secret;
	aws->token = keys->token;
	aws->expires = keys->expires;
	aws->whence = copy_of(whence);
	return EXIT_DONE;
}

/* Reads the file anew each time: its owner may renew it. Returns NULL after printing the error. */
static char *read_authorization(const char *path)
{
	char text[1 << 14];
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof text, file) : 0;
	bool failed = !file || ferror(file) || size == sizeof text;

	if (failed)
		report_error("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %s: %s", path,
		             file && size == sizeof text ? "expected a token" : strerror(errno));
	if (file)
		fclose(file);
	while (size && isspace((unsigned char)text[size - 1]))
		size--;
	return failed ? NULL : smprint("%.*s", (int)size, text);
}

/* Gets the keys from the container's address. */
static enum exit_code take_keys_of_container(struct aws *aws)
{
	const char *relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *whence = relative ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
	                              : "AWS_CONTAINER_CREDENTIALS_FULL_URI";
	const char *file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	char *authorization = file ? read_authorization(file)
	                           : copy_of(environment("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
	char *address =
	    relative ? smprint("http://169.254.170.2%s", relative) : copy_of(environment(whence));
	enum exit_code status = EXIT_USAGE;
	struct keys keys;

	if (file && !authorization)
		status = EXIT_USAGE;
	else if (authorization && strpbrk(authorization, "\r\n"))
		report_error("%s: the authorization token has several lines", whence);
	else
		status = take_fetched(aws, whence, &keys,
		                      keys_from_endpoint(address, authorization, &keys));
	free(authorization);
	free(address);
	return status;
}

/* Prints why there are no keys. */
static enum exit_code explain_absence(const struct files *files)
{
	if (environment("AWS_WEB_IDENTITY_TOKEN_FILE"))
		return refuse("AWS_WEB_IDENTITY_TOKEN_FILE", NULL);
	report_error("no keys for s3://: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
	             "a profile in %s; public objects can be read by their https:// addresses",
	             files->credentials.path);
	return EXIT_USAGE;
}

/* Takes keys from a file; they belong together. */
static enum exit_code take_keys_of(struct aws *aws, const struct source *s)
{
	if (!s->lines[ACCESS_KEY] != !s->lines[SECRET_KEY]) {
		report_error("%s: %s without %s", s->path,
		             line_names[s->lines[ACCESS_KEY] ? ACCESS_KEY : SECRET_KEY],
		             line_names[s->lines[ACCESS_KEY] ? SECRET_KEY : ACCESS_KEY]);
		return EXIT_USAGE;
	}
	aws->access_key = copy_of(s->lines[ACCESS_KEY]);
	aws->secret_key = copy_of(s->lines[SECRET_KEY]);
	aws->token = copy_of(s->lines[TOKEN]);
	aws->whence = copy_of(s->path);
	return EXIT_DONE;
}

static enum exit_code take_keys(struct aws *aws, const struct files *files, const char *profile)
{
	static const enum line fetched[] = {ROLE, WEB_IDENTITY, SSO_SESSION, SSO_URL};
	struct keys keys;
	const char *access = environment("AWS_ACCESS_KEY_ID");
	const char *secret = environment("AWS_SECRET_ACCESS_KEY");

	if (!access != !secret) {
		report_error("%s is set, but %s is not",
		             access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
		             access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
		return EXIT_USAGE;
	}
	if (access) {
		aws->access_key = copy_of(access);
		aws->secret_key = copy_of(secret);
		aws->token = copy_of(environment("AWS_SESSION_TOKEN"));
		aws->whence = copy_of("the environment");
		return EXIT_DONE;
	}
	/* The AWS tools, too, prefer these to keys beside them, except for processes. */
	for (size_t i = 0; i < sizeof fetched / sizeof *fetched; i++)
		if (line_of(files, fetched[i]))
			return refuse(line_names[fetched[i]], profile);
	if (line_of(files, PROCESS) && !files->credentials.lines[ACCESS_KEY])
		return take_fetched(aws, line_names[PROCESS], &keys,
		                    keys_from_process(line_of(files, PROCESS), &keys));
	if (files->credentials.lines[ACCESS_KEY] || files->credentials.lines[SECRET_KEY])
		return take_keys_of(aws, &files->credentials);
	if (files->config.lines[ACCESS_KEY] || files->config.lines[SECRET_KEY])
		return take_keys_of(aws, &files->config);
	if (environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
	    environment("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
		return take_keys_of_container(aws);
	return explain_absence(files);
}

/* Returns the endpoint that counts: the more specific one first, and the environment before the
 * files. */
static const char *endpoint_of(const struct files *files)
{
	const char *ignored = environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
	const char *named = either("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");

	if (!ignored)
		ignored = line_of(files, IGNORE_ENDPOINTS);
	if (ignored && !strcasecmp(ignored, "true"))
		return NULL;
	if (!named)
		named = line_of(files, S3_ENDPOINT);
	return named ? named : line_of(files, ENDPOINT);
}

static enum exit_code take_endpoint(struct aws *aws, const char *endpoint)
{
	size_t size = endpoint ? strlen(endpoint) : 0;
	char *shown;

	if (!endpoint)
		return EXIT_DONE;
	if (place_kind(endpoint) != PLACE_WEB || place_check(endpoint) || strpbrk(endpoint, "?#")) {
		shown = place_shown(endpoint);
		report_error("the endpoint %s is none: expected http://HOST:PORT or https://HOST",
		             shown);
		free(shown);
		return EXIT_USAGE;
	}
	while (endpoint[size - 1] == '/')
		size--;
	aws->endpoint = smprint("%.*s", (int)size, endpoint);
	return EXIT_DONE;
}

static enum exit_code take_style(struct aws *aws, const char *style)
{
	aws->virtual_hosts = style && !strcmp(style, "virtual");
	if (!style || aws->virtual_hosts || !strcmp(style, "auto"))
		aws->virtual_hosts |= !aws->endpoint;
	else if (strcmp(style, "path") != 0) {
		report_error("addressing_style: expected path, virtual or auto, not %s", style);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static bool is_region(const char *region)
{
	size_t size = strlen(region);

	return size && size <= REGION_MAX &&
	       strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") == size;
}

/* Checks the parts of headers. */
static enum exit_code check_keys(const struct aws *aws)
{
	const char *const keys[] = {aws->access_key, aws->secret_key, aws->token};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		for (const char *c = keys[i]; c && *c; c++)
			if (!isgraph((unsigned char)*c)) {
				report_error("%s: expected keys of printable ASCII, without blanks",
				             aws->whence);
				return EXIT_USAGE;
			}
	return EXIT_DONE;
}

static void forget_keys(struct aws *aws)
{
	free(aws->access_key);
	free(aws->secret_key);
	free(aws->token);
	free(aws->whence);
}

/* Reads all settings, or the keys alone. */
static enum exit_code read_settings(struct aws *aws, bool keys_alone)
{
	const char *profile = either("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
	struct files files = {
	    .credentials.path = path_of("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
	    .config = {.path = path_of("AWS_CONFIG_FILE", "~/.aws/config"), .config = true}};
	enum exit_code status = read_files(&files, profile);
	const char *region, *bundle;

	if (!status)
		status = take_keys(aws, &files, profile);
	if (!status)
		status = check_keys(aws);
	if (!status && !keys_alone)
		status = take_endpoint(aws, endpoint_of(&files));
	if (!status && !keys_alone)
		status = take_style(aws, line_of(&files, STYLE));
	if (!status && !keys_alone) {
		region = either("AWS_REGION", "AWS_DEFAULT_REGION");
		if (!region)
			region = line_of(&files, REGION);
		aws->region = copy_of(region ? region : "us-east-1");
		bundle = environment("AWS_CA_BUNDLE");
		aws->ca_bundle = copy_of(bundle ? bundle : line_of(&files, CA_BUNDLE));
		if (!is_region(aws->region)) {
			report_error("the region %s is none: expected a name like eu-west-1",
			             aws->region);
			status = EXIT_USAGE;
		}
	}
	free_source(&files.credentials);
	free_source(&files.config);
	return status;
}

enum exit_code aws_load(struct aws *aws)
{
	if (!aws->loaded)
		aws->status = read_settings(aws, false);
	aws->loaded = true;
	return aws->status;
}

bool aws_renew(struct aws *aws, unsigned version)
{
	struct aws now = {0};

	if (aws->version != version)
		return true;
	aws->renewed = time(NULL);
	if (read_settings(&now, true) ||
	    (!strcmp(now.access_key, aws->access_key) &&
	     !strcmp(now.token ? now.token : "", aws->token ? aws->token : ""))) {
		forget_keys(&now);
		return false;
	}
	forget_keys(aws);
	aws->access_key = now.access_key;
	aws->secret_key = now.secret_key;
	aws->token = now.token;
	aws->whence = now.whence;
	aws->expires = now.expires;
	aws->version++;
	return true;
}

void aws_refresh(struct aws *aws)
{
	time_t now = time(NULL);

	if (aws->expires && now + aws->skew + SOON > aws->expires &&
	    now > aws->renewed + RENEW_PAUSE)
		aws_renew(aws, aws->version);
}

void aws_fini(struct aws *aws)
{
	for (struct bucket *b = aws->known, *next; b; b = next) {
		next = b->next;
		free(b->name);
		free(b->region);
		free(b);
	}
	forget_keys(aws);
	free(aws->region);
	free(aws->endpoint);
	free(aws->ca_bundle);
}

/* Regions
 * ----------------------------------------------------------------------------------------- */

const char *aws_region(const struct aws *aws, const char *name)
{
	struct object object = place_object(name);
	const struct bucket *b = aws->known;

	while (b && (strlen(b->name) != object.bucket_size ||
	             strncmp(b->name, object.bucket, object.bucket_size) != 0))
		b = b->next;
	return b ? b->region : aws->region;
}

/* It becomes a part of the host's name. Older ones stay, since requests under way point to them. */
bool aws_set_region(struct aws *aws, const char *name, const char *region)
{
	struct object object = place_object(name);
	struct bucket *b;

	if (!is_region(region))
		return false;
	if (!strcmp(aws_region(aws, name), region))
		return true;
	b = malloc(sizeof *b);
	if (!b)
		abort();
	*b = (struct bucket){aws->known, smprint("%.*s", (int)object.bucket_size, object.bucket),
	                     copy_of(region)};
	aws->known = b;
	return true;
}

/* Addresses
 * --------------------------------------------------------------------------------------- */

/* Returns scheme and host of the store's address, with the bucket in its place: in the host, if the
 * certificate of the endpoint then fits (it has one * for a name without dots). */
static char *base_of(const struct aws *aws, const struct object *object, const char *region)
{
	int size = (int)object->bucket_size;
	bool dotted = memchr(object->bucket, '.', object->bucket_size);
	char *regional = NULL, *base;
	const char *endpoint = aws->endpoint, *host;

	if (!endpoint) {
		regional = smprint("https://s3.%s.amazonaws.com%s", region,
		                   strncmp(region, "cn-", 3) ? "" : ".cn");
		endpoint = regional;
	}
	host = strstr(endpoint, "://") + 3;
	if (aws->virtual_hosts && !dotted)
		base = smprint("%.*s%.*s.%s", (int)(host - endpoint), endpoint, size,
		               object->bucket, host);
	else
		base = smprint("%s/%.*s", endpoint, size, object->bucket);
	free(regional);
	return base;
}

void aws_escape(FILE *to, const char *text, const char *kept)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		fprintf(to,
		        isascii(*c) && (isalnum(*c) || strchr("-._~", *c) || strchr(kept, *c))
		            ? "%c"
		            : "%%%02X",
		        *c);
}

/* libcurl sends and signs the path as it is. */
char *aws_url(const struct aws *aws, const char *name)
{
	struct object object = place_object(name);
	char *base = base_of(aws, &object, aws_region(aws, name)), *text = NULL;
	size_t size;
	FILE *url = open_memstream(&text, &size);

	if (!url)
		abort();
	fprintf(url, "%s/", base);
	aws_escape(url, object.key, "/");
	free(base);
	if (fclose(url))
		abort();
	return text;
}
