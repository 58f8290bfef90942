/* Host, Origin and Sec-Fetch-Site. A browser sends a request for any page, also to this host; what
 * protects others' services is that they ask for credentials, and this one may have none. */
#include "front/api/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct config *config;

void origin_init(const struct config *c)
{
	config = c;
}

/* True if the list has the text, or a *. */
static bool lists(const struct config_list *list, const char *text)
{
	for (unsigned i = 0; i < list->count; i++)
		if (!strcmp(list->item[i], "*") || !strcasecmp(list->item[i], text))
			return true;
	return false;
}

/* Copies a Host without its port and brackets. False if it is too long for any that is known. */
static bool name_of(const char *host, char *name, size_t room)
{
	bool bracket = *host == '[';
	size_t length = strcspn(host + bracket, bracket ? "]" : ":");

	if (length >= room)
		return false;
	memcpy(name, host + bracket, length);
	name[length] = '\0';
	return true;
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

/* A page's own name may be made to mean a loopback address, and then it is the same site. */
static enum error check_host(const struct request *r, struct problem *problem)
{
	char name[256] = "";

	if (!r->loopback || !r->host || lists(&config->hosts, "*"))
		return ERR_OK;
	if (name_of(r->host, name, sizeof name) &&
	    (is_loopback(name) || lists(&config->hosts, name)))
		return ERR_OK;
	return problem_set(problem, ERR_MISDIRECTED,
	                   "Host: %.60s; expected localhost, a loopback address or a name of the "
	                   "option `hosts`",
	                   r->host);
}

/* True if a browser has sent it for a page of another origin. */
static bool is_cross_site(const struct request *r)
{
	const char *origin_host = r->origin ? strstr(r->origin, "://") : NULL;

	if (r->site)
		return strcmp(r->site, "same-origin") && strcmp(r->site, "none");
	if (!r->origin)
		return false;
	return !origin_host || !r->host || strcasecmp(origin_host + strlen("://"), r->host);
}

enum error origin_check(struct request *r, struct problem *problem)
{
	enum error e = check_host(r, problem);

	if (e || !is_cross_site(r))
		return e;
	r->cors = r->origin && lists(&config->cors_origins, r->origin);
	if (r->cors)
		return ERR_OK;
	return problem_set(problem, ERR_CROSS_SITE,
	                   "the request is for a page of %.80s; only those of the option "
	                   "`cors-origins` may use this service",
	                   r->origin ? r->origin : "another site");
}

void origin_mark(struct request *r)
{
	if (config->cors_origins.count)
		answer_header(&r->answer, "Vary", "Origin");
	if (!r->cors)
		return;
	answer_header(&r->answer, "Access-Control-Allow-Origin", "%s", r->origin);
	answer_header(&r->answer, "Access-Control-Expose-Headers",
	              "ETag, Location, Retry-After, Server-Timing, X-Codec, X-Device, X-Image, "
	              "X-Lost, X-Request-Id, X-Verify-Max-Difference, X-Verify-Mismatches, "
	              "X-Verify-Samples");
}

void origin_permit(struct request *r, const char *methods)
{
	if (!r->cors || !r->preflight)
		return;
	answer_header(&r->answer, "Access-Control-Allow-Methods", "%s", methods);
	answer_header(&r->answer, "Access-Control-Allow-Headers",
	              "Authorization, Content-Type, Prefer, traceparent");
	answer_header(&r->answer, "Access-Control-Max-Age", "3600");
}
