/* The grammar of requests, as a machine of states that reads bodies by their sizes and all else by
 * lines. A line is kept until it is complete, so a rule sees a whole line; only control characters,
 * a CR without LF and an LF without CR are found at once, so that what is no HTTP at all need not
 * end to be refused.
 *
 * The parsers that Debian has take what must be refused here, and give no reason. Two things that
 * RFC 9112 allows are refused, too: LF alone at the end of a line, and white space after a length
 * or a coding, which libmicrohttpd would not understand. */
#include "http/grammar.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SIZE_DIGITS_MAX = 16 };

static const char blanks[] = " \t";

/* A slice of a longer text. */
struct span {
	const char *at;
	size_t size;
};

static bool span_is(struct span s, const char *text)
{
	return s.size == strlen(text) && !strncasecmp(s.at, text, s.size);
}

static enum error bad(struct problem *problem, const char *why)
{
	return problem_set(problem, ERR_BAD_REQUEST, "%s", why);
}

static size_t token_length(const char *text)
{
	size_t length = 0;

	while (text[length] &&
	       (isalnum((unsigned char)text[length]) || strchr("!#$%&'*+-.^_`|~", text[length])))
		length++;
	return length;
}

/* libmicrohttpd keeps white space after a value, and then knows neither a length nor a coding. */
static bool ends_with_blank(struct span value)
{
	return value.at[value.size];
}

/* The value of a hexadecimal digit, or -1. */
static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool grammar_is_idle(const struct grammar *g)
{
	return g->state == GRAMMAR_START && !g->used && !g->blank;
}

void grammar_fini(struct grammar *g)
{
	free(g->line);
	g->line = NULL;
	g->used = g->room = 0;
}

/* Lines --------------------------------------------------------------------------------------- */

_Static_assert(GRAMMAR_ITEM == 64, "as the messages say");

/* The most bytes in each state that reads lines: of its section, which the line ends with CRLF. */
static const struct {
	size_t most;
	enum error error;
	const char *what, *hint;
} sections[GRAMMAR_OVER] = {
    [GRAMMAR_START] = {GRAMMAR_HEAD_MAX, ERR_TARGET_TOO_LONG, "the request line has",
                       " (each parameter counts for 64 more); long parameters may be parts of a "
                       "form"},
    [GRAMMAR_HEADERS] = {GRAMMAR_HEAD_MAX, ERR_HEAD_TOO_LARGE,
                         "the request line and the headers have",
                         " (each parameter, header and cookie counts for 64 more)"},
    [GRAMMAR_CHUNK_SIZE] = {GRAMMAR_CHUNK_LINE_MAX, ERR_BAD_REQUEST, "the line before a chunk has",
                            "; send its size in hexadecimal digits, without extensions"},
    [GRAMMAR_CHUNK_END] = {2, ERR_BAD_REQUEST, NULL, NULL},
    [GRAMMAR_TRAILERS] = {GRAMMAR_TRAILERS_MAX, ERR_HEAD_TOO_LARGE, "the trailers have",
                          "; send none"},
};

static enum error line_too_long(const struct grammar *g, struct problem *problem)
{
	if (g->state == GRAMMAR_CHUNK_END)
		return bad(problem, "a chunk is longer than its size says; expected CRLF after it");
	return problem_set(problem, sections[g->state].error, "%s more than %zu bytes%s",
	                   sections[g->state].what, sections[g->state].most,
	                   sections[g->state].hint);
}

/* Keeps more of the current line. */
static enum error extend_line(struct grammar *g, const char *data, size_t size,
                              struct problem *problem)
{
	size_t room = g->room ? g->room : 256;
	char *longer;

	if (g->section + g->used + size > sections[g->state].most)
		return line_too_long(g, problem);
	while (room < g->used + size + 1)
		room *= 2;
	if (room > g->room) {
		longer = realloc(g->line, room);
		if (!longer)
			return problem_set(problem, ERR_MEMORY, "no memory for the headers");
		g->line = longer;
		g->room = room;
	}
	memcpy(g->line + g->used, data, size);
	g->used += size;
	g->line[g->used] = '\0';
	return ERR_OK;
}

/* Checks the bytes of the line from an index on, which may end with CR. */
static enum error check_bytes(const struct grammar *g, size_t from, struct problem *problem)
{
	for (size_t i = from; i < g->used; i++) {
		unsigned char c = (unsigned char)g->line[i];

		if (i && g->line[i - 1] == '\r')
			return bad(problem,
			           "a CR without LF; a line ends with CRLF, and has no CR within");
		if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
			return problem_set(problem, ERR_BAD_REQUEST,
			                   "the control character 0x%02x; expected HTTP/1.1 in "
			                   "text lines%s",
			                   c, c == 0x16 ? " (TLS is for addresses with tls:)" : "");
	}
	return ERR_OK;
}

/* Reads up to the end of the line. True in *ended: it is complete, and its CRLF removed. */
static enum error read_line(struct grammar *g, const char **at, const char *end, bool *ended,
                            struct problem *problem)
{
	const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
	size_t size = (size_t)((line_end ? line_end : end) - *at), from = g->used;
	enum error e = extend_line(g, *at, size, problem);

	*ended = line_end;
	*at += size + (line_end ? 1 : 0);
	if (!e)
		e = check_bytes(g, from, problem);
	if (e || !line_end)
		return e;
	if (!g->used || g->line[g->used - 1] != '\r')
		return bad(problem, "an LF without CR; each line ends with CRLF");
	g->section += g->used + 1;
	g->line[--g->used] = '\0';
	return ERR_OK;
}

/* The request line ---------------------------------------------------------------------------- */

/* uri-host [":" port] of RFC 9110, 4.2; no character of it follows the slice. */
static bool is_host(struct span host)
{
	static const char digits[] = "0123456789", ip[] = "0123456789abcdefABCDEF:.",
	                  name[] = "0123456789-._~!$&'()*+,;=%abcdefghijklmnopqrstuvwxyz"
	                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t length;

	if (*host.at == '[') {
		length = 1 + strspn(host.at + 1, ip);
		if (length < 3 || host.at[length++] != ']')
			return false;
	} else {
		length = strspn(host.at, name);
	}
	if (!length || length == host.size)
		return length;
	return host.at[length++] == ':' && length + strspn(host.at + length, digits) == host.size &&
	       strtoul(host.at + length, NULL, 10) <= UINT16_MAX;
}

static enum error check_target_bytes(struct span target, struct problem *problem)
{
	for (size_t i = 0; i < target.size; i++) {
		unsigned char c = (unsigned char)target.at[i];
		int high = i + 2 < target.size ? digit(target.at[i + 1]) : -1;
		int low = high < 0 ? -1 : digit(target.at[i + 2]);

		if (c <= ' ' || c > '~' || c == '#')
			return problem_set(problem, ERR_BAD_REQUEST,
			                   "the target holds the byte 0x%02x; write it as %%%02X",
			                   c, c);
		if (c == '%' && low < 0)
			return bad(problem, "a % of the target is not followed by two hexadecimal "
			                    "digits; %25 stands for %");
		if (c == '%' && (high < 2 || (high == 7 && low == 15)))
			return problem_set(problem, ERR_BAD_REQUEST,
			                   "the target holds the control character %%%.2s; long "
			                   "texts may be parts of a form",
			                   target.at + i + 1);
	}
	return ERR_OK;
}

/* The four forms of RFC 9112, 3.2; that of CONNECT is for proxies. */
static enum error check_target(const struct grammar *g, struct span target, struct problem *problem)
{
	static const char *const schemes[] = {"http://", "https://"};
	enum error e = check_target_bytes(target, problem);

	if (e || *target.at == '/' || (g->options && span_is(target, "*")))
		return e;
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		size_t length = strlen(schemes[i]);
		struct span host = {target.at + length, 0};

		if (target.size <= length || strncasecmp(target.at, schemes[i], length))
			continue;
		while (length + host.size < target.size && !strchr("/?", host.at[host.size]))
			host.size++;
		if (is_host(host))
			return ERR_OK;
	}
	return bad(problem, "the target is neither a path that begins with / nor http://HOST/PATH");
}

static enum error check_version(struct grammar *g, const char *version, struct problem *problem)
{
	g->http10 = !strcmp(version, "HTTP/1.0");
	if (g->http10 || !strcmp(version, "HTTP/1.1"))
		return ERR_OK;
	if (strlen(version) == 8 && !strncmp(version, "HTTP/", 5) && version[6] == '.' &&
	    version[5] >= '0' && version[5] <= '9' && version[7] >= '0' && version[7] <= '9')
		return problem_set(problem, ERR_VERSION, "%s; expected HTTP/1.1 or HTTP/1.0",
		                   version);
	return bad(problem, "the request line does not end with HTTP/1.1 or HTTP/1.0");
}

/* Counts the items that single characters separate. libmicrohttpd keeps a record of each, and where
 * it has no room for one, it ends the connection or answers twice. */
static void count_items(struct grammar *g, struct span text, char separator)
{
	g->section += GRAMMAR_ITEM;
	for (size_t i = 0; i < text.size; i++)
		g->section += text.at[i] == separator ? GRAMMAR_ITEM : 0;
}

static enum error parse_request_line(struct grammar *g, struct problem *problem)
{
	size_t method = token_length(g->line);
	struct span target = {g->line + method + 1, 0};
	enum error e;

	/* A client may send one empty line first (RFC 9112, 2.2). */
	if (!g->used && !g->blank) {
		g->blank = true;
		return ERR_OK;
	}
	if (method && g->line[method] == ' ')
		target.size = strcspn(target.at, " ");
	if (!target.size || target.at[target.size] != ' ')
		return bad(problem, "the request line is not METHOD TARGET HTTP/1.1, with a space "
		                    "between each two");
	count_items(g, target, '&');
	if (g->section > GRAMMAR_HEAD_MAX)
		return line_too_long(g, problem);
	g->options = method == 7 && !strncmp(g->line, "OPTIONS", 7);
	e = check_version(g, target.at + target.size + 1, problem);
	if (!e)
		e = check_target(g, target, problem);
	g->state = GRAMMAR_HEADERS;
	return e;
}

/* Headers ------------------------------------------------------------------------------------- */

static enum error parse_host(struct grammar *g, struct span value, struct problem *problem)
{
	if (g->has_host)
		return bad(problem, "two Host headers; expected one");
	g->has_host = true;
	if (is_host(value))
		return ERR_OK;
	return problem_set(problem, ERR_BAD_REQUEST,
	                   "Host: %.60s; expected a name or an address, and perhaps :PORT",
	                   value.at);
}

static enum error parse_length(struct grammar *g, struct span value, struct problem *problem)
{
	if (g->has_length)
		return bad(problem, "two Content-Length headers; expected one");
	g->has_length = true;
	if (!value.size || strspn(value.at, "0123456789") < value.size || ends_with_blank(value))
		return problem_set(problem, ERR_BAD_REQUEST,
		                   "Content-Length: %.60s; expected decimal digits alone",
		                   value.at);
	for (size_t i = 0; i < value.size; i++) {
		if (g->left > (INT64_MAX - 9) / 10)
			return problem_set(problem, ERR_BODY_TOO_LARGE,
			                   "Content-Length: %.60s is too large", value.at);
		g->left = g->left * 10 + (uint64_t)(value.at[i] - '0');
	}
	return ERR_OK;
}

static enum error parse_coding(struct grammar *g, struct span value, struct problem *problem)
{
	if (span_is(value, "chunked") && !g->chunked && !ends_with_blank(value)) {
		g->chunked = true;
		return ERR_OK;
	}
	if (value.size && token_length(value.at) == value.size && !span_is(value, "chunked") &&
	    !g->chunked)
		return problem_set(problem, ERR_NOT_IMPLEMENTED,
		                   "Transfer-Encoding: %.60s; expected chunked, or a "
		                   "Content-Length",
		                   value.at);
	return problem_set(problem, ERR_BAD_REQUEST,
	                   "Transfer-Encoding: %.60s; expected chunked, once and alone", value.at);
}

/* Which connection options make this the last request (RFC 9112, 9.3). */
static enum error parse_connection(struct grammar *g, struct span value, struct problem *problem)
{
	const char *end = value.at + value.size;

	(void)problem;
	while (value.at < end) {
		value.at += strspn(value.at, ", \t");
		value.size = token_length(value.at);
		g->close |= span_is(value, "close");
		g->keep_alive |= span_is(value, "keep-alive");
		value.at += value.size ? value.size : 1;
	}
	return ERR_OK;
}

/* The library copies them before it reads them, and takes either character for their end. */
static enum error parse_cookies(struct grammar *g, struct span value, struct problem *problem)
{
	(void)problem;
	g->section += value.size;
	count_items(g, value, ';');
	count_items(g, value, ',');
	return ERR_OK;
}

static const struct {
	const char *name;
	enum error (*parse)(struct grammar *g, struct span value, struct problem *problem);
	bool framing; /* not in trailers */
} known[] = {
    {"Host", parse_host, true},
    {"Content-Length", parse_length, true},
    {"Transfer-Encoding", parse_coding, true},
    {"Connection", parse_connection, false},
    {"Cookie", parse_cookies, false},
};

static enum error parse_field(struct grammar *g, struct problem *problem)
{
	struct span name = {g->line, token_length(g->line)}, value;

	if (g->state == GRAMMAR_HEADERS)
		g->section += GRAMMAR_ITEM;
	if (++g->fields > GRAMMAR_FIELDS_MAX)
		return problem_set(problem, ERR_HEAD_TOO_LARGE,
		                   "the request has more than %d headers", GRAMMAR_FIELDS_MAX);
	if (*g->line == ' ' || *g->line == '\t')
		return bad(problem,
		           "a header begins with white space; expected NAME: VALUE on one line");
	if (!name.size || g->line[name.size] != ':')
		return problem_set(problem, ERR_BAD_REQUEST,
		                   "%.60s: expected NAME: VALUE, the name of letters, digits and "
		                   "!#$%%&'*+-.^_`|~ with the colon right after it",
		                   g->line);
	value.at = g->line + name.size + 1;
	value.at += strspn(value.at, blanks);
	value.size = strlen(value.at);
	while (value.size && strchr(blanks, value.at[value.size - 1]))
		value.size--;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!span_is(name, known[i].name))
			continue;
		if (g->state == GRAMMAR_HEADERS)
			return known[i].parse(g, value, problem);
		if (known[i].framing)
			return problem_set(problem, ERR_BAD_REQUEST,
			                   "%s is a trailer; it belongs to the headers",
			                   known[i].name);
	}
	return ERR_OK;
}

static void end_request(struct grammar *g)
{
	bool over = g->close || (g->http10 && !g->keep_alive);

	grammar_fini(g); /* an idle connection needs no line */
	*g = (struct grammar){.state = over ? GRAMMAR_OVER : GRAMMAR_START,
	                      .requests = g->requests + 1};
}

/* Checks the headers together; the body follows. */
static enum error end_head(struct grammar *g, struct problem *problem)
{
	if (!g->has_host && !g->http10)
		return bad(problem, "no Host header; HTTP/1.1 requires one");
	if (g->chunked && g->has_length)
		return bad(problem,
		           "both Content-Length and Transfer-Encoding; expected one of them");
	if (g->chunked && g->http10)
		return bad(problem, "Transfer-Encoding in HTTP/1.0; expected Content-Length");
	g->section = 0;
	if (g->chunked)
		g->state = GRAMMAR_CHUNK_SIZE;
	else if (g->left)
		g->state = GRAMMAR_BODY;
	else
		end_request(g);
	return ERR_OK;
}

/* Chunks -------------------------------------------------------------------------------------- */

static enum error parse_chunk_size(struct grammar *g, struct problem *problem)
{
	size_t digits = 0;

	g->left = 0;
	for (; digits <= SIZE_DIGITS_MAX && digit(g->line[digits]) >= 0; digits++) {
		if (g->left >> 58)
			return problem_set(problem, ERR_BODY_TOO_LARGE,
			                   "a chunk of %.20s bytes is too large", g->line);
		g->left = g->left << 4 | (uint64_t)digit(g->line[digits]);
	}
	if (!digits || digits > SIZE_DIGITS_MAX || (g->line[digits] && g->line[digits] != ';'))
		return problem_set(problem, ERR_BAD_REQUEST,
		                   "the line %.40s before a chunk; expected its size in at most "
		                   "%d hexadecimal digits",
		                   g->line, SIZE_DIGITS_MAX);
	g->section = 0;
	g->state = g->left ? GRAMMAR_CHUNK : GRAMMAR_TRAILERS;
	return ERR_OK;
}

/* A complete line. */
static enum error parse_line(struct grammar *g, struct problem *problem)
{
	enum error e = ERR_OK;

	switch (g->state) {
	case GRAMMAR_START:
		e = parse_request_line(g, problem);
		break;
	case GRAMMAR_HEADERS:
		e = g->used ? parse_field(g, problem) : end_head(g, problem);
		break;
	case GRAMMAR_CHUNK_SIZE:
		e = parse_chunk_size(g, problem);
		break;
	case GRAMMAR_CHUNK_END:
		if (g->used)
			e = line_too_long(g, problem);
		g->section = 0;
		g->state = GRAMMAR_CHUNK_SIZE;
		break;
	case GRAMMAR_TRAILERS:
		if (g->used)
			e = parse_field(g, problem);
		else
			end_request(g);
		break;
	case GRAMMAR_BODY:
	case GRAMMAR_CHUNK:
	case GRAMMAR_OVER:
		break;
	}
	g->used = 0;
	return e;
}

/* Bytes of a body or chunk. */
static void skip(struct grammar *g, const char **at, const char *end)
{
	uint64_t size = (uint64_t)(end - *at);

	size = size < g->left ? size : g->left;
	*at += size;
	g->left -= size;
	if (g->left)
		return;
	if (g->state == GRAMMAR_CHUNK)
		g->state = GRAMMAR_CHUNK_END;
	else
		end_request(g);
}

/* Takes extensions out of a part of the line before a chunk. within: the line's first part ended in
 * them. Returns the number of bytes that stay, at the part's start. */
static size_t drop_extensions(bool within, char *part, size_t size)
{
	size_t kept = 0;

	for (size_t i = 0; i < size; i++) {
		within |= part[i] == ';';
		if (!within || part[i] == '\r' || part[i] == '\n')
			part[kept++] = part[i];
	}
	return kept;
}

enum error grammar_read(struct grammar *g, char *data, size_t size, size_t *sound,
                        struct problem *problem)
{
	const char *at = data, *end = data + size;
	char *to = data; /* for what the reader gets: behind `at` by dropped extensions */
	const char *begin = grammar_is_idle(g) ? data : NULL;
	enum error e = ERR_OK;

	while (!e && at < end && g->state != GRAMMAR_OVER) {
		char *part = data + (at - data);
		bool before_chunk = g->state == GRAMMAR_CHUNK_SIZE, ended = false;
		bool within = before_chunk && g->used && memchr(g->line, ';', g->used);
		uint64_t requests = g->requests;
		size_t kept;

		if (g->state == GRAMMAR_BODY || g->state == GRAMMAR_CHUNK)
			skip(g, &at, end);
		else
			e = read_line(g, &at, end, &ended, problem);
		if (!e && ended)
			e = parse_line(g, problem);
		kept = (size_t)(at - part);
		if (before_chunk)
			kept = drop_extensions(within, part, kept);
		if (to != part)
			memmove(to, part, kept);
		to += kept;
		if (g->requests > requests)
			begin = to;
	}
	*sound = (size_t)((e ? begin ? begin : data : to) - data);
	return e;
}
