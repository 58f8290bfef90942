/* Host, Origin, and browsers' description of the fetch. A browser sends a request for any page,
 * also to this host, whose service may ask for no credentials. */
#include "front/api/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "front/config/config.h"

/* True if the list has the text, or a *. */
static bool lists(const struct config_list *list, const char *text)
{
	for (unsigned i = 0; i < list->count; i++)
		if (!strcmp(list->item[i], "*") || !strcasecmp(list->item[i], text))
			return true;
	return false;
}

static bool is_loopback(const char *name)
{
	static const char localhost[] = "localhost";
	size_t length = strlen(name), own = sizeof localhost - 1;
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, name, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, name, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return length >= own && !strcasecmp(name + length - own, localhost) &&
	       (length == own || name[length - own - 1] == '.');
}

/* A page's owner may point its name at a loopback address, which makes it the same site. */
static enum error check_host(const struct request *r, struct problem *problem)
{
	const char *host = r->head.text[HEAD_HOST];
	size_t bracket, length;
	char name[256];

	if (!r->head.loopback || !host || lists(&config->hosts, "*"))
		return ERR_OK;
	bracket = *host == '[';
	length = strcspn(host + bracket, bracket ? "]" : ":");
	/* Compares it without port and brackets; all known names are shorter than this. */
	if (length < sizeof name) {
		memcpy(name, host + bracket, length);
		name[length] = '\0';
		if (is_loopback(name) || lists(&config->hosts, name))
			return ERR_OK;
	}
	return problem_set(problem, ERR_MISDIRECTED,
	                   "Host: %.60s; expected localhost, a loopback address or a name of the "
	                   "option `hosts`",
	                   host);
}

enum error origin_check(struct request *r, struct problem *problem)
{
	const char *origin = r->head.text[HEAD_ORIGIN], *host = r->head.text[HEAD_HOST];
	const char *origin_host = origin ? strstr(origin, "://") : NULL;
	const char *site = r->head.text[HEAD_SITE];
	const char *destination = r->head.text[HEAD_DESTINATION];
	/* A followed link: the answer is shown alone, and the link's page cannot read it. */
	bool followed =
	    !strcmp(r->method, "GET") && destination && !strcmp(destination, "document");
	/* A browser has sent this for a page of another origin. */
	bool crosses = site ? strcmp(site, "same-origin") && strcmp(site, "none")
	                    : origin && (!origin_host || !host ||
	                                 strcasecmp(origin_host + strlen("://"), host));
	enum error e = check_host(r, problem);

	if (e || followed || !crosses)
		return e;
	r->cors = origin && lists(&config->cors_origins, origin);
	if (r->cors)
		return ERR_OK;
	return problem_set(problem, ERR_CROSS_SITE,
	                   "the request is for a page of %.80s; only those of the option "
	                   "`cors-origins` may use this service",
	                   origin ? origin : "another site");
}

bool origin_asks(const struct request *r)
{
	return r->cors && r->head.text[HEAD_PREFLIGHT] && !strcmp(r->method, "OPTIONS");
}

void origin_mark(struct request *r)
{
	if (config->cors_origins.count)
		answer_header(&r->answer, "Vary", "Origin");
	if (!r->cors)
		return;
	answer_header(&r->answer, "Access-Control-Allow-Origin", "%s", r->head.text[HEAD_ORIGIN]);
	answer_header(
	    &r->answer, "Access-Control-Expose-Headers",
	    "ETag, Location, Retry-After, Server-Timing, X-Codec, X-Device, X-Image, "
	    "X-Lost, X-Pages, X-Request-Id, X-Verify-Max-Difference, X-Verify-Mismatches, "
	    "X-Verify-Samples");
}

void origin_permit(struct request *r, const char *methods)
{
	if (!origin_asks(r))
		return;
	answer_header(&r->answer, "Access-Control-Allow-Methods", "%s", methods);
	answer_header(&r->answer, "Access-Control-Allow-Headers",
	              "Authorization, Content-Type, Idempotency-Key, Prefer, traceparent");
	answer_header(&r->answer, "Access-Control-Max-Age", "3600");
}
