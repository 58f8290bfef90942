/* Forms, parsed by a state machine that can stop after any byte. (libmicrohttpd's parser misses
 * unquoted names and some boundaries.) The hard part is a delimiter, CRLF--BOUNDARY, which the end
 * of a piece cuts anywhere. Its first byte occurs in it only once, so the number of matched bytes
 * is the only state, and a failed match is data whose bytes are known. */
#include "http/form.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum state {
	CONTENT,  /* in a part, or before the first one */
	BOUNDARY, /* after one */
	DASH,     /* after one and a - */
	PADDING,  /* in the spaces after one */
	RETURN,   /* at the CR after those */
	HEADER,
	CLOSED, /* after the last boundary; the rest is ignored */
};

struct form {
	const struct form_calls *calls;
	void *context;
	enum state state;
	bool in_part;
	char delimiter[4 + FORM_BOUNDARY_MAX];
	size_t delimiter_size;
	size_t matched;               /* bytes of it */
	size_t outside;               /* those in the line end before the content */
	char header[FORM_HEADER_MAX]; /* the part's; its lines end with LF alone */
	size_t header_size;
};

/* A slice of a longer text. */
struct span {
	char *at;
	size_t size;
};

static const char type_name[] = "multipart/form-data", blanks[] = " \t";

#define bad(problem, ...) problem_set(problem, ERR_BAD_REQUEST, __VA_ARGS__)

static bool span_is(struct span span, const char *text)
{
	return span.size == strlen(text) && !strncasecmp(span.at, text, span.size);
}

/* Returns the text up to one of the characters, without spaces around it; advances `at` past it. */
static struct span next_word(char **at, const char *ends)
{
	struct span word = {.at = *at + strspn(*at, blanks)};

	word.size = strcspn(word.at, ends);
	*at = word.at + word.size;
	*at += strspn(*at, blanks);
	return word;
}

/* Removes quotes and backslashes, in place. Returns the text after them, or NULL if the quotes are
 * not closed. A backslash before any other character is kept, because Windows writes paths so. */
static char *unquote(char *at, struct span *text)
{
	char *out = ++at;

	text->at = out;
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		*out++ = *at;
	}
	text->size = (size_t)(out - text->at);
	return *at ? at + 1 : NULL;
}

/* Parses `; NAME=VALUE`, maybe quoted; the name is empty at the end. False if it is malformed. */
static bool next_parameter(char **at, struct span *name, struct span *value)
{
	bool separated = false;

	for (*at += strspn(*at, blanks); **at == ';'; *at += 1 + strspn(*at + 1, blanks))
		separated = true;
	*name = next_word(at, "=; \t\"");
	if (!**at && !name->size)
		return true;
	if (!separated || !name->size || **at != '=')
		return false;
	++*at;
	*at += strspn(*at, blanks);
	if (**at == '"') {
		*at = unquote(*at, value);
		return *at;
	}
	*value = next_word(at, "; \t\"");
	return value->size;
}

/* Ends the slice with a NUL, once the rest of the longer text is no longer needed. */
static char *end_text(struct span span)
{
	span.at[span.size] = '\0';
	return span.at;
}

bool form_is_one(const char *content_type)
{
	size_t length = sizeof type_name - 1;

	return !strncasecmp(content_type, type_name, length) &&
	       (!content_type[length] || strchr("; \t", content_type[length]));
}

static enum error malformed_type(struct problem *problem)
{
	return bad(problem, "the form's Content-Type is malformed; send %s; boundary=TEXT",
	           type_name);
}

static enum error read_type(struct form *form, char *type, struct problem *problem)
{
	static const char valid[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                            "'()+_,-./:=? ";
	struct span name, value = {0}, boundary = {0};
	char *at = type + sizeof type_name - 1;

	do {
		if (!next_parameter(&at, &name, &value))
			return malformed_type(problem);
		if (!span_is(name, "boundary"))
			continue;
		if (boundary.at)
			return bad(problem, "the form's Content-Type has two boundaries; send one");
		boundary = value;
	} while (name.size);
	if (!boundary.at)
		return bad(problem,
		           "the form's Content-Type has no boundary; send %s; boundary=TEXT, as "
		           "curl -F image=@FILE does",
		           type_name);
	if (!boundary.size || boundary.size > FORM_BOUNDARY_MAX)
		return bad(problem, "the form's boundary has %zu characters; expected 1 to %d",
		           boundary.size, FORM_BOUNDARY_MAX);
	if (strspn(boundary.at, valid) < boundary.size || boundary.at[boundary.size - 1] == ' ')
		return bad(problem, "the form's boundary has an invalid character; expected "
		                    "letters, digits, '()+_,-./:=? and spaces (not at its end)");
	memcpy(form->delimiter, "\r\n--", 4);
	memcpy(form->delimiter + 4, boundary.at, boundary.size);
	form->delimiter_size = 4 + boundary.size;
	return ERR_OK;
}

/* The line end before content may be the start of a delimiter. */
static void enter_content(struct form *form, bool in_part)
{
	form->state = CONTENT;
	form->in_part = in_part;
	form->matched = form->outside = 2;
}

enum error form_new(struct form **form, const char *content_type, const struct form_calls *calls,
                    void *context, struct problem *problem)
{
	char *type = strdup(content_type);
	enum error e;

	*form = calloc(1, sizeof **form);
	if (!*form || !type)
		e = no_memory(problem, "for the form");
	else if (!form_is_one(type))
		e = malformed_type(problem);
	else
		e = read_type(*form, type, problem);
	free(type);
	if (e) {
		form_free(*form);
		*form = NULL;
		return e;
	}
	(*form)->calls = calls;
	(*form)->context = context;
	enter_content(*form, false);
	return ERR_OK;
}

void form_free(struct form *form)
{
	free(form);
}

static enum error give(struct form *form, const char *data, size_t size, struct problem *problem)
{
	return size && form->in_part ? form->calls->data(form->context, data, size, problem)
	                             : ERR_OK;
}

/* Searches for the delimiter, and passes on the data before it. */
static enum error read_content(struct form *form, const char **data, const char *end,
                               struct problem *problem)
{
	const char *at = *data, *begin = at;
	size_t earlier = form->matched; /* matching bytes in earlier pieces */
	enum error e = ERR_OK;

	while (!e && at < end && form->matched < form->delimiter_size) {
		if (*at == form->delimiter[form->matched]) {
			form->matched++;
			at++;
		} else if (form->matched) {
			e = give(form, form->delimiter + form->outside,
			         earlier > form->outside ? earlier - form->outside : 0, problem);
			form->matched = form->outside = earlier = 0;
		} else {
			at = memchr(at, *form->delimiter, (size_t)(end - at));
			at = at ? at : end;
		}
	}
	*data = at;
	if (!e)
		e = give(form, begin, (size_t)(at - begin) - (form->matched - earlier), problem);
	if (form->matched == form->delimiter_size)
		form->state = BOUNDARY;
	return e;
}

static enum error bad_part(struct problem *problem, const char *what)
{
	return bad(problem,
	           "%s; a part of a form begins with Content-Disposition: form-data; "
	           "name=\"NAME\" and an empty line",
	           what);
}

static enum error read_boundary(struct form *form, char c, struct problem *problem)
{
	static const struct {
		enum state state;
		char c;
		enum state next;
	} steps[] = {
	    {BOUNDARY, '-', DASH},     {DASH, '-', CLOSED},     {BOUNDARY, ' ', PADDING},
	    {BOUNDARY, '\t', PADDING}, {PADDING, ' ', PADDING}, {PADDING, '\t', PADDING},
	    {BOUNDARY, '\r', RETURN},  {PADDING, '\r', RETURN}, {RETURN, '\n', HEADER},
	};

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i].state == form->state && steps[i].c == c) {
			form->state = steps[i].next;
			form->header_size = 0;
			return ERR_OK;
		}
	return bad(problem, "a boundary of the form is followed by neither a line end (CRLF) nor "
	                    "the -- that ends the form");
}

/* Parses `form-data; name="NAME"; filename="FILE"`; the file name is ignored. */
static enum error read_disposition(char *at, struct span *part, bool *file, struct problem *problem)
{
	struct span name, value = {0};

	if (part->at)
		return bad_part(problem, "a part of the form has two Content-Dispositions");
	if (!span_is(next_word(&at, "; \t"), "form-data"))
		return bad_part(problem, "a part's Content-Disposition is not form-data");
	do {
		if (!next_parameter(&at, &name, &value))
			return bad_part(problem, "a part's Content-Disposition is malformed");
		*file |= span_is(name, "filename") || span_is(name, "filename*");
		if (!span_is(name, "name"))
			continue;
		if (part->at)
			return bad_part(problem, "a part of the form has two names");
		*part = value;
	} while (name.size);
	return part->size ? ERR_OK : bad_part(problem, "a part of the form has no name");
}

static enum error read_line(char *line, struct span *part, bool *file, struct problem *problem)
{
	struct span name = {line, strcspn(line, ": \t")};
	char *value = line + name.size + 1;

	if (!name.size || line[name.size] != ':')
		return bad_part(problem, "a line of a part's header is not NAME: VALUE");
	if (span_is(name, "Content-Disposition"))
		return read_disposition(value, part, file, problem);
	if (!span_is(name, "Content-Transfer-Encoding"))
		return ERR_OK;
	name = next_word(&value, blanks);
	if (span_is(name, "binary") || span_is(name, "8bit") || span_is(name, "7bit"))
		return ERR_OK;
	return bad(problem,
	           "Content-Transfer-Encoding: %.40s; expected binary, which needs no such header",
	           end_text(name));
}

/* The header is complete, with the empty line. */
static enum error begin_part(struct form *form, struct problem *problem)
{
	struct span name = {0};
	bool file = false;
	enum error e = ERR_OK;
	char *end;

	form->header[form->header_size - 1] = '\0';
	for (char *line = form->header; !e && *line; line = end + 1) {
		end = strchr(line, '\n');
		while (end[1] == ' ' || end[1] == '\t') { /* continues the line */
			*end = ' ';
			end = strchr(end, '\n');
		}
		*end = '\0';
		e = read_line(line, &name, &file, problem);
	}
	if (!e && !name.at)
		e = bad_part(problem, "a part of the form has no Content-Disposition");
	if (!e)
		e = form->calls->begin(form->context, end_text(name), file, problem);
	enter_content(form, true);
	return e;
}

static enum error read_header(struct form *form, char c, struct problem *problem)
{
	char *end = form->header + form->header_size;

	if (form->header_size && end[-1] == '\r') {
		if (c != '\n')
			return bad_part(problem, "a line of a part's header ends with CR alone");
		end[-1] = '\n';
		return form->header_size == 1 || end[-2] == '\n' ? begin_part(form, problem)
		                                                 : ERR_OK;
	}
	if ((unsigned char)c < ' ' && c != '\t' && c != '\r')
		return bad(problem,
		           "the header of a part holds the control character 0x%02x; expected "
		           "text lines that end with CRLF",
		           c);
	if (form->header_size == FORM_HEADER_MAX)
		return bad(problem, "the header of a part has at most %d bytes", FORM_HEADER_MAX);
	*end = c;
	form->header_size++;
	return ERR_OK;
}

enum error form_read(struct form *form, const char *data, size_t size, struct problem *problem)
{
	const char *end = data + size;
	enum error e = ERR_OK;

	while (!e && data < end && form->state != CLOSED) {
		if (form->state == CONTENT)
			e = read_content(form, &data, end, problem);
		else if (form->state == HEADER)
			e = read_header(form, *data++, problem);
		else
			e = read_boundary(form, *data++, problem);
	}
	return e;
}

enum error form_finish(const struct form *form, struct problem *problem)
{
	const char *boundary = form->delimiter + 2;
	int length = (int)form->delimiter_size - 2;

	if (form->state == CLOSED)
		return ERR_OK;
	if (form->state == CONTENT && !form->in_part)
		return bad(problem,
		           "the boundary of Content-Type is not in the form; its parts begin with "
		           "the line %.*s, which ends with CRLF",
		           length, boundary);
	return bad(problem, "the form is cut short; expected %.*s-- at its end", length, boundary);
}
