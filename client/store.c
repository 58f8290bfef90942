/* Requests to object stores and web servers, and the meaning of their answers. libcurl signs them
 * (CURLOPT_AWS_SIGV4). It signs the path as it is sent, so aws_url() encodes it as S3 does, and all
 * given headers. The body is not signed (UNSIGNED-PAYLOAD): it would have to be read twice, and TLS
 * protects it; a checksum of results (CRC-32) says whether the store has what was sent.
 * libcurl 7.88 sorts headers wrongly if one name begins another.
 *
 * A request that the store refuses for its region, its time or its keys is sent once more with what
 * the answer says, or with the keys that there are by then. */
#include "client/store.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/interrupt.h"
#include "client/report.h"
#include "client/smprint.h"
#include "client/xml.h"

enum { VERSION_MAX = 256, REDIRECTIONS_MAX = 5 };

/* Corrections of a request so far. */
enum { CORRECTED_REGION = 1, CORRECTED_CLOCK = 2, CORRECTED_KEYS = 4, CORRECTED_CONDITION = 8 };

struct curl_slist *store_head(struct curl_slist *heads, const char *format, ...)
{
	struct curl_slist *longer;
	va_list args;
	char *head;

	va_start(args, format);
	head = vsmprint(format, args);
	va_end(args);
	longer = curl_slist_append(heads, head);
	if (!longer)
		abort();
	free(head);
	return longer;
}

char *store_version(const struct exchange *e)
{
	const char *version = exchange_header(e, "ETag");

	if (!version)
		version = exchange_header(e, "Last-Modified");
	if (!version || strlen(version) > VERSION_MAX)
		return NULL;
	for (const char *c = version; *c; c++)
		if (*c < ' ' || *c > '~')
			return NULL;
	return strdup(version);
}

struct curl_slist *store_unless(struct curl_slist *heads, const char *version)
{
	/* An ETag is in quotes, and a date begins with a day. */
	return store_head(heads, "%s: %s",
	                  strchr(version, '"') ? "If-None-Match" : "If-Modified-Since", version);
}

/* Goes on with a CRC-32, as ISO 3309 has it. */
static uint32_t crc32_of(uint32_t crc, const unsigned char *bytes, size_t size)
{
	static uint32_t table[256];

	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
	for (crc = ~crc; size--; bytes++)
		crc = crc >> 8 ^ table[(crc ^ *bytes) & 0xff];
	return ~crc;
}

int store_checksum(struct curl_slist **heads, int file)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                             "0123456789+/";
	static unsigned char buffer[1 << 18];
	char text[] = "......==";
	uint32_t crc = 0;
	ssize_t got;

	for (off_t at = 0; (got = pread(file, buffer, sizeof buffer, at)) > 0; at += got) {
		crc = crc32_of(crc, buffer, (size_t)got);
		if (interrupt_number())
			return EINTR;
	}
	if (got < 0)
		return errno;
	for (int i = 0; i < 6; i++)
		text[i] = digits[((uint64_t)crc << 4) >> (30 - 6 * i) & 63];
	*heads = store_head(*heads, "x-amz-checksum-crc32: %s", text);
	return 0;
}

/* Tells whether a store's or server's error is a passing one. */
static bool is_passing(const struct exchange *e)
{
	/* BadDigest: it has got something else than was sent. */
	static const char *const codes[] = {"RequestTimeout", "BadDigest", "OperationAborted",
	                                    "ConditionalRequestConflict"};
	char code[64];

	if (e->status == 400 || e->status == 409) {
		xml_text(e->text, "Code", code, sizeof code);
		for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
			if (!strcmp(code, codes[i]))
				return true;
		return false;
	}
	return e->status == 429 || (e->status == 500 && e->peer == &store_objects) ||
	       e->status == 502 || e->status == 503 || e->status == 504;
}

static void judge_body(struct exchange *e)
{
	curl_off_t size = 0;

	curl_easy_getinfo(e->easy, CURLINFO_SIZE_DOWNLOAD_T, &size);
	e->outcome = OUTCOME_FAILED;
	if (!size)
		exchange_say(e, "it is empty");
	else if (!exchange_has_end(e))
		exchange_say(e, "it may be cut short: its end is not marked");
	else
		e->outcome = OUTCOME_DONE;
}

/* Objects
 * ----------------------------------------------------------------------------------------- */

/* A proxy is not for this host. */
static void set_proxy(CURL *easy, const char *address)
{
	CURLU *url = curl_url();
	char *host = NULL;

	if (!url)
		abort();
	if (!curl_url_set(url, CURLUPART_URL, address, 0) &&
	    !curl_url_get(url, CURLUPART_HOST, &host, 0) && server_is_loopback(host))
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_free(host);
	curl_url_cleanup(url);
}

/* Returns the given headers and those that each request to a store has. */
static struct curl_slist *heads_of(const struct exchange *e)
{
	const struct aws *aws = e->aws;
	time_t now = time(NULL) + aws->skew;
	struct curl_slist *heads = NULL;
	struct tm parts;
	char text[20];

	for (const struct curl_slist *head = e->heads; head; head = head->next)
		heads = store_head(heads, "%s", head->data);
	heads = store_head(heads, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
	if (aws->token)
		heads = store_head(heads, "x-amz-security-token: %s", aws->token);
	if (aws->pays)
		heads = store_head(heads, "x-amz-request-payer: requester");
	if (e->condition && !aws->unconditional)
		heads = store_head(heads, "%s", e->condition);
	if (aws->skew && strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts)))
		heads = store_head(heads, "x-amz-date: %s", text);
	return heads;
}

static void prepare_object(struct exchange *e)
{
	struct aws *aws = e->aws;
	char *signature = NULL, *object, *url = NULL;

	aws_refresh(aws);
	e->keys = aws->version;
	e->region = aws_region(aws, e->target);
	e->own_heads = heads_of(e);
	object = aws_url(aws, e->target);
	if (asprintf(&url, "%s%s%s", object, e->query ? "?" : "", e->query ? e->query : "") < 0 ||
	    asprintf(&signature, "aws:amz:%s:s3", e->region) < 0)
		abort();
	free(object);
	curl_easy_setopt(e->easy, CURLOPT_URL, url);
	curl_easy_setopt(e->easy, CURLOPT_AWS_SIGV4, signature);
	curl_easy_setopt(e->easy, CURLOPT_USERNAME, aws->access_key);
	curl_easy_setopt(e->easy, CURLOPT_PASSWORD, aws->secret_key);
	/* The answer to a HEAD would not say why it is refused. */
	curl_easy_setopt(e->easy, CURLOPT_RANGE, e->look ? "0-0" : NULL);
	server_trust(e->easy, aws->ca_bundle);
	set_proxy(e->easy, url);
	free(signature);
	free(url);
}

/* Stores' refusals in words. REFUSED: they would refuse all other requests, too. */
static const struct trouble {
	const char *code;
	enum outcome outcome;
	const char *text;
} troubles[] = {
    {"NoSuchKey", OUTCOME_FAILED, "there is no such object"},
    {"NoSuchBucket", OUTCOME_FAILED, "there is no such bucket"},
    {"InvalidObjectState", OUTCOME_FAILED, "the object is archived: it must be restored first"},
    {"EntityTooLarge", OUTCOME_FAILED, "the store does not take objects of this size"},
    {"InvalidAccessKeyId", OUTCOME_REFUSED, "the store does not know the access key"},
    {"SignatureDoesNotMatch", OUTCOME_REFUSED,
     "the signature is not that of the access key: is the secret key right?"},
    {"InvalidToken", OUTCOME_REFUSED, "the session token is not valid"},
    {"ExpiredToken", OUTCOME_REFUSED,
     "the session token has expired; with a new one, the same command continues"},
    {"TokenRefreshRequired", OUTCOME_REFUSED, "the session token must be renewed"},
    {"RequestTimeTooSkewed", OUTCOME_REFUSED,
     "this machine's clock and the store's are too far apart"},
};

/* Returns the region that the bucket is in, if the store says that it is another; else an empty
 * text. */
static void find_region(const struct exchange *e, char *region, size_t size)
{
	const char *header = exchange_header(e, "x-amz-bucket-region");

	*region = '\0';
	if (e->status / 100 != 3 && e->status != 400)
		return;
	if (header)
		snprintf(region, size, "%s", header);
	else
		xml_text(e->text, "Region", region, size);
	if (!strcmp(region, e->region))
		*region = '\0';
}

/* Takes the clock of the store from its answer. */
static bool correct_clock(struct exchange *e)
{
	const char *date = exchange_header(e, "Date");
	time_t theirs = date ? curl_getdate(date, NULL) : -1;

	if (theirs < 0)
		return false;
	e->aws->skew = theirs - time(NULL);
	return true;
}

/* Gives up conditions at a store that has none, so that an object that appears meanwhile is
 * replaced, as it would be at any store without them. */
static bool drop_condition(struct exchange *e)
{
	if (!e->condition)
		return false;
	if (!e->aws->unconditional)
		report_remark("the object store knows no conditional writes: an object that "
		              "another program writes meanwhile is replaced");
	e->aws->unconditional = true;
	return true;
}

static bool correct_keys(struct exchange *e)
{
	return aws_renew(e->aws, e->keys);
}

static bool correct_region(struct exchange *e)
{
	char region[64];

	find_region(e, region, sizeof region);
	return *region && aws_set_region(e->aws, e->target, region);
}

static bool correct_object(struct exchange *e)
{
	static const struct {
		unsigned bit;
		const char *code;
		bool (*correct)(struct exchange *e);
	} corrections[] = {
	    {CORRECTED_CLOCK, "RequestTimeTooSkewed", correct_clock},
	    {CORRECTED_KEYS, "ExpiredToken", correct_keys},
	    {CORRECTED_KEYS, "TokenRefreshRequired", correct_keys},
	    {CORRECTED_KEYS, "InvalidToken", correct_keys},
	    {CORRECTED_KEYS, "InvalidAccessKeyId", correct_keys},
	    {CORRECTED_CONDITION, "NotImplemented", drop_condition},
	};
	char code[64];

	if (e->status < 300 || e->status == 304)
		return false;
	xml_text(e->text, "Code", code, sizeof code);
	if (!(e->corrections & CORRECTED_REGION) && correct_region(e)) {
		e->corrections |= CORRECTED_REGION;
		return true;
	}
	for (size_t i = 0; i < sizeof corrections / sizeof *corrections; i++)
		if (!strcmp(code, corrections[i].code) && !(e->corrections & corrections[i].bit)) {
			e->corrections |= corrections[i].bit;
			return corrections[i].correct(e);
		}
	return false;
}

static void judge_refusal(struct exchange *e)
{
	const struct trouble *end = troubles + sizeof troubles / sizeof *troubles, *t = troubles;
	char code[64], message[300], region[64];
	const char *elsewhere = NULL;

	xml_text(e->text, "Code", code, sizeof code);
	xml_text(e->text, "Message", message, sizeof message);
	find_region(e, region, sizeof region);
	curl_easy_getinfo(e->easy, CURLINFO_REDIRECT_URL, &elsewhere);
	while (t < end && strcmp(t->code, code) != 0)
		t++;
	/* A look is at results: a refusal of one is a refusal of all. The same holds for a
	 * write. */
	e->outcome = e->look || e->body >= 0 ? OUTCOME_REFUSED
	             : t < end               ? t->outcome
	                                     : OUTCOME_FAILED;
	if (*region)
		exchange_say(e, "the bucket is in the region %s, not %s: set AWS_REGION=%s", region,
		             e->region, region);
	else if (t < end && t->outcome == OUTCOME_REFUSED)
		exchange_say(e, "%s (keys from %s)", t->text, e->aws->whence);
	else if (t < end)
		exchange_say(e, "%s", t->text);
	else if (!strcmp(code, "AccessDenied"))
		exchange_say(e, "access denied: %s%s", message,
		             e->look ? "; a batch looks for results that exist, with s3:GetObject "
		                       "and s3:ListBucket (--force does not look)"
		                     : "");
	else if (*code)
		exchange_say(e, "%s: %s", code, message);
	else if (elsewhere)
		exchange_say_address(e, "the object store redirects to %s: is its address right?",
		                     elsewhere);
	else
		exchange_say(e, "status %ld of the object store", e->status);
}

/* Tells whether the answer to a look says whether the object exists. An empty one has no first
 * byte. */
static bool has_looked(const struct exchange *e)
{
	char code[64];

	xml_text(e->text, "Code", code, sizeof code);
	return e->status == 206 || e->status == 416 ||
	       (e->status == 404 && (!*code || !strcmp(code, "NoSuchKey")));
}

static void judge_object(struct exchange *e)
{
	e->outcome = OUTCOME_DONE;
	if (e->status == 200 && e->result >= 0)
		judge_body(e);
	else if (e->status != 200 && e->status != 304 && !(e->status == 412 && e->condition) &&
	         !(e->look && has_looked(e)))
		judge_refusal(e);
}

const struct peer store_objects = {"the object store", OUTCOME_UNREACHABLE, prepare_object,
                                   correct_object,     is_passing,          judge_object};

/* Web servers
 * ------------------------------------------------------------------------------------- */

static void prepare_file(struct exchange *e)
{
	bool secure = !strncasecmp(e->target, "https:", 6);

	curl_easy_setopt(e->easy, CURLOPT_URL, e->target);
	curl_easy_setopt(e->easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(e->easy, CURLOPT_MAXREDIRS, (long)REDIRECTIONS_MAX);
	curl_easy_setopt(e->easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
	set_proxy(e->easy, e->target);
}

static void judge_file(struct exchange *e)
{
	e->outcome = OUTCOME_DONE;
	if (e->status == 200) {
		judge_body(e);
	} else if (e->status != 304) {
		e->outcome = OUTCOME_FAILED;
		if (e->status == 404)
			exchange_say(e, "there is no such file");
		else
			exchange_say(e, "status %ld of the web server", e->status);
	}
}

const struct peer store_web = {"the web server", OUTCOME_FAILED, prepare_file, NULL,
                               is_passing,       judge_file};
