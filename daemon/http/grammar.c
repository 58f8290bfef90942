/* The grammar of requests as a state machine, which reads bodies by their sizes and everything else
 * by lines. A rule sees a whole line; only control characters, a CR without LF and an LF without CR
 * are noticed at once, so that input that is no HTTP at all can be refused before its end.
 *
 * Debian's parsers accept requests that must be refused here. Two things that RFC 9112 allows are
 * refused, too: LF alone at the end of a line, and white space after a length or a coding, which
 * libmicrohttpd would not understand. */
#include "http/grammar.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>

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

#define bad(problem, ...) problem_set(problem, ERR_BAD_REQUEST, __VA_ARGS__)

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

bool grammar_is_idle(const struct grammar *g)
{
	return g->state == GRAMMAR_START && !g->line.size && !g->blank;
}

void grammar_fini(struct grammar *g)
{
	free(g->line.data);
	g->line = (struct head_writer){0};
}

/* Lines --------------------------------------------------------------------------------------- */

_Static_assert(GRAMMAR_ITEM == 64, "as the messages say");

/* The maximum number of bytes in a state that reads lines, for the whole section that it reads. */
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

/* Reads up to the end of the line. *ended: the line is complete, and its CRLF replaced by NUL. */
static enum error read_line(struct grammar *g, const char **at, const char *end, bool *ended,
                            struct problem *problem)
{
	struct head_writer *line = &g->line;
	const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
	size_t size = (size_t)((line_end ? line_end : end) - *at), from = line->size;

	if (g->section + from + size > sections[g->state].most)
		return line_too_long(g, problem);
	head_append(line, *at, size);
	if (line->failed)
		return no_memory(problem, "for the headers");
	*ended = line_end;
	*at += size + (line_end ? 1 : 0);
	for (size_t i = from; i < line->size; i++) {
		unsigned char c = (unsigned char)line->data[i];

		if (i && line->data[i - 1] == '\r')
			return bad(problem,
			           "a CR without LF; a line ends with CRLF, and has no CR within");
		if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
			return bad(
			    problem,
			    "the control character 0x%02x; expected HTTP/1.1 in text lines%s", c,
			    c == 0x16 ? " (TLS is for addresses with tls:)" : "");
	}
	if (!line_end)
		return ERR_OK;
	if (!line->size || line->data[line->size - 1] != '\r')
		return bad(problem, "an LF without CR; each line ends with CRLF");
	g->section += line->size + 1;
	line->data[--line->size] = '\0';
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

/* The four forms of RFC 9112, 3.2; that of CONNECT is for proxies. */
static enum error check_target(const struct grammar *g, struct span target, struct problem *problem)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < target.size; i++) {
		const char *digits =
		    target.at + i + 1; /* if this is a %; a space ends the target */
		unsigned char c = (unsigned char)target.at[i];

		if (c <= ' ' || c > '~' || c == '#')
			return bad(problem, "the target holds the byte 0x%02x; write it as %%%02X",
			           c, c);
		if (c != '%')
			continue;
		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
			return bad(problem, "a %% of the target is not followed by two hexadecimal "
			                    "digits; %%25 stands for %%");
		if (strchr("01", digits[0]) || !strncasecmp(digits, "7f", 2))
			return bad(problem,
			           "the target holds the control character %%%.2s; long texts may "
			           "be parts of a form",
			           digits);
	}
	if (*target.at == '/' || (g->options && span_is(target, "*")))
		return ERR_OK;
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

/* Counts the items between separators. libmicrohttpd keeps a record of each; without room for one
 * it ends the connection or answers twice. */
static void count_items(struct grammar *g, struct span text, char separator)
{
	g->section += GRAMMAR_ITEM;
	for (size_t i = 0; i < text.size; i++)
		g->section += text.at[i] == separator ? GRAMMAR_ITEM : 0;
}

static enum error parse_request_line(struct grammar *g, struct problem *problem)
{
	const char *line = g->line.data, *version;
	size_t method = token_length(line);
	struct span target = {line + method + 1, 0};

	/* A client may send one empty line first (RFC 9112, 2.2). */
	if (!g->line.size && !g->blank) {
		g->blank = true;
		return ERR_OK;
	}
	if (method && line[method] == ' ')
		target.size = strcspn(target.at, " ");
	if (!target.size || target.at[target.size] != ' ')
		return bad(problem, "the request line is not METHOD TARGET HTTP/1.1, with a space "
		                    "between each two");
	count_items(g, target, '&');
	if (g->section > GRAMMAR_HEAD_MAX)
		return line_too_long(g, problem);
	g->options = method == 7 && !strncmp(line, "OPTIONS", 7);
	g->state = GRAMMAR_HEADERS;
	version = target.at + target.size + 1;
	g->http10 = !strcmp(version, "HTTP/1.0");
	if (g->http10 || !strcmp(version, "HTTP/1.1"))
		return check_target(g, target, problem);
	if (strlen(version) == 8 && !strncmp(version, "HTTP/", 5) && version[6] == '.' &&
	    version[5] >= '0' && version[5] <= '9' && version[7] >= '0' && version[7] <= '9')
		return problem_set(problem, ERR_VERSION, "%s; expected HTTP/1.1 or HTTP/1.0",
		                   version);
	return bad(problem, "the request line does not end with HTTP/1.1 or HTTP/1.0");
}

/* Headers ------------------------------------------------------------------------------------- */

static enum error parse_host(struct grammar *g, struct span value, struct problem *problem)
{
	if (g->has_host)
		return bad(problem, "two Host headers; expected one");
	g->has_host = true;
	if (is_host(value))
		return ERR_OK;
	return bad(problem, "Host: %.60s; expected a name or an address, and perhaps :PORT",
	           value.at);
}

static enum error parse_length(struct grammar *g, struct span value, struct problem *problem)
{
	if (g->has_length)
		return bad(problem, "two Content-Length headers; expected one");
	g->has_length = true;
	if (!value.size || strspn(value.at, "0123456789") < value.size || ends_with_blank(value))
		return bad(problem, "Content-Length: %.60s; expected decimal digits alone",
		           value.at);
	g->left = strtoull(value.at, NULL, 10); /* UINT64_MAX if it is larger */
	if (g->left > INT64_MAX)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "Content-Length: %.60s is too large", value.at);
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
	return bad(problem, "Transfer-Encoding: %.60s; expected chunked, once and alone", value.at);
}

/* The connection options that make this the last request (RFC 9112, 9.3). */
static enum error parse_connection(struct grammar *g, struct span value, struct problem *)
{
	const char *end = value.at + value.size;

	while (value.at < end) {
		value.at += strspn(value.at, ", \t");
		value.size = token_length(value.at);
		g->close |= span_is(value, "close");
		g->keep_alive |= span_is(value, "keep-alive");
		value.at += value.size ? value.size : 1;
	}
	return ERR_OK;
}

/* The library copies them before it reads them, and accepts either character as their end. */
static enum error parse_cookies(struct grammar *g, struct span value, struct problem *)
{
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
	const char *line = g->line.data;
	struct span name = {line, token_length(line)}, value;

	if (g->state == GRAMMAR_HEADERS)
		g->section += GRAMMAR_ITEM;
	if (++g->fields > GRAMMAR_FIELDS_MAX)
		return problem_set(problem, ERR_HEAD_TOO_LARGE,
		                   "the request has more than %d headers", GRAMMAR_FIELDS_MAX);
	if (*line == ' ' || *line == '\t')
		return bad(problem,
		           "a header begins with white space; expected NAME: VALUE on one line");
	if (!name.size || line[name.size] != ':')
		return bad(problem,
		           "%.60s: expected NAME: VALUE, the name of letters, digits and "
		           "!#$%%&'*+-.^_`|~ with the colon right after it",
		           line);
	value.at = line + name.size + 1;
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
			return bad(problem, "%s is a trailer; it belongs to the headers",
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
	const char *line = g->line.data;
	size_t digits = strspn(line, "0123456789abcdefABCDEF");

	g->left = digits ? strtoull(line, NULL, 16) : 0; /* UINT64_MAX if it is larger */
	if (g->left >> 62)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "a chunk of %.20s bytes is too large", line);
	if (!digits || digits > SIZE_DIGITS_MAX || (line[digits] && line[digits] != ';'))
		return bad(problem,
		           "the line %.40s before a chunk; expected its size in at most "
		           "%d hexadecimal digits",
		           line, SIZE_DIGITS_MAX);
	g->section = 0;
	g->state = g->left ? GRAMMAR_CHUNK : GRAMMAR_TRAILERS;
	return ERR_OK;
}

/* Enters the state after a complete line, body or chunk. */
static enum error advance(struct grammar *g, struct problem *problem)
{
	enum error e = ERR_OK;

	switch (g->state) {
	case GRAMMAR_START:
		e = parse_request_line(g, problem);
		break;
	case GRAMMAR_HEADERS:
		e = g->line.size ? parse_field(g, problem) : end_head(g, problem);
		break;
	case GRAMMAR_CHUNK_SIZE:
		e = parse_chunk_size(g, problem);
		break;
	case GRAMMAR_CHUNK_END:
		if (g->line.size)
			e = line_too_long(g, problem);
		g->section = 0;
		g->state = GRAMMAR_CHUNK_SIZE;
		break;
	case GRAMMAR_TRAILERS:
		if (g->line.size)
			e = parse_field(g, problem);
		else
			end_request(g);
		break;
	case GRAMMAR_BODY:
		end_request(g);
		break;
	case GRAMMAR_CHUNK:
		g->state = GRAMMAR_CHUNK_END;
		break;
	case GRAMMAR_OVER:
		break;
	}
	g->line.size = 0;
	return e;
}

enum error grammar_read(struct grammar *g, char *data, size_t size, size_t *sound,
                        struct problem *problem)
{
	const char *at = data, *end = data + size;
	char *to = data; /* end of the reader's bytes: behind `at` by dropped extensions */
	const char *begin = grammar_is_idle(g) ? data : NULL;
	enum error e = ERR_OK;

	while (!e && at < end && g->state != GRAMMAR_OVER) {
		const char *part = at;
		bool before_chunk = g->state == GRAMMAR_CHUNK_SIZE, ended = false;
		bool in_extensions =
		    before_chunk && g->line.size && memchr(g->line.data, ';', g->line.size);
		uint64_t requests = g->requests;

		if (g->state == GRAMMAR_BODY || g->state == GRAMMAR_CHUNK) {
			const uint64_t length = MIN((uint64_t)(end - at), g->left);

			at += length;
			g->left -= length;
			ended = !g->left;
		} else {
			e = read_line(g, &at, end, &ended, problem);
		}
		if (!e && ended)
			e = advance(g, problem);
		/* Drops extensions, which an earlier piece may have begun. */
		for (; before_chunk && part < at; part++) {
			in_extensions |= *part == ';';
			if (!in_extensions || *part == '\r' || *part == '\n')
				*to++ = *part;
		}
		if (to != part)
			memmove(to, part, (size_t)(at - part));
		to += at - part;
		if (g->requests > requests)
			begin = to;
	}
	*sound = (size_t)((e ? begin ? begin : data : to) - data);
	return e;
}
