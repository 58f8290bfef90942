/* A text is a byte that says what it is, the text and a NUL. */
#include "link/head.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(HEAD_TEXTS <= 127, "one byte says what a text is");

void head_append(struct head_writer *w, const void *data, size_t size)
{
	size_t room = 2 * (w->size + size) + 256;
	char *more;

	if (w->failed || !size)
		return;
	if (w->room - w->size < size) {
		more = realloc(w->data, room);
		w->failed = !more;
		if (!more)
			return;
		w->data = more;
		w->room = room;
	}
	memcpy(w->data + w->size, data, size);
	w->size += size;
}

void head_add(struct head_writer *w, enum head_text what, const char *text)
{
	char tag = (char)what;

	head_append(w, &tag, 1);
	head_append(w, text, strlen(text) + 1);
}

void head_extend(struct head_writer *w, const char *text, size_t size)
{
	w->size -= !w->failed; /* the NUL */
	head_append(w, text, size);
	head_append(w, "", 1);
}

static void take_name(struct head *head, const char *text)
{
	if (head->parameters < HEAD_PARAMETERS_MAX)
		head->parameter[head->parameters].name = text;
	head->parameters++;
}

static void take_value(struct head *head, const char *text)
{
	if (head->parameters <= HEAD_PARAMETERS_MAX)
		head->parameter[head->parameters - 1].value = text;
}

/* named: a parameter's name came before it. */
static bool take(struct head *head, int what, bool named, const char *text)
{
	if (named != (what == HEAD_VALUE))
		return false;
	if (what < HEAD_METHOD || what >= HEAD_TEXTS || head->text[what])
		return false;
	if (what == HEAD_NAME)
		take_name(head, text);
	else if (what == HEAD_VALUE)
		take_value(head, text);
	else
		head->text[what] = text;
	return true;
}

/* Reads the texts of a block; parameters: it may have no others. */
static bool read_texts(struct head *head, const char *data, size_t size, bool parameters)
{
	const char *at = data, *end = data + size;
	bool named = false;

	if (!size || data[size - 1])
		return false;
	while (at < end) {
		if ((parameters && *at != HEAD_NAME && *at != HEAD_VALUE) ||
		    !take(head, *at, named, at + 1))
			return false;
		named = *at == HEAD_NAME;
		at += strlen(at + 1) + 2;
	}
	return !named;
}

enum error head_read(struct head *head, char *data, size_t size)
{
	*head = (struct head){.data = data, .size = size};
	if (!read_texts(head, data, size, false) || !head->text[HEAD_METHOD] ||
	    !head->text[HEAD_PATH])
		return ERR_BAD_REQUEST;
	if (head->text[HEAD_CLIENT] && strlen(head->text[HEAD_CLIENT]) >= HEAD_CLIENT_SIZE)
		return ERR_BAD_REQUEST;
	return ERR_OK;
}

enum error head_read_form(struct head *head, struct head_writer *block)
{
	const size_t size = block->size;

	head->form_data = block->data;
	*block = (struct head_writer){0};
	return read_texts(head, head->form_data, size, true) &&
	               head->parameters <= HEAD_PARAMETERS_MAX
	           ? ERR_OK
	           : ERR_BAD_REQUEST;
}

void head_fini(struct head *head)
{
	free(head->data);
	free(head->form_data);
	*head = (struct head){0};
}
