/* A text is a byte with its kind, the text and a NUL. */
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

void head_pack(struct head_writer *w, const struct head *head)
{
	static const enum head_text kept[] = {HEAD_METHOD, HEAD_PATH, HEAD_ACCEPT, HEAD_MASK};

	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (head->text[kept[i]])
			head_add(w, kept[i], head->text[kept[i]]);
	for (unsigned i = 0; i < head->parameters; i++) {
		head_add(w, HEAD_NAME, head->parameter[i].name);
		head_add(w, HEAD_VALUE, head->parameter[i].value);
	}
}

/* Reads the texts of a block; that of a form has parameters and a mask alone. */
static bool read_texts(struct head *head, const char *data, size_t size, bool form)
{
	const char *end = data + size, *name = NULL;

	if (!size || data[size - 1])
		return false;
	for (const char *at = data; at < end; at += strlen(at + 1) + 2) {
		const char *text = at + 1;
		const int what = (unsigned char)*at;

		if (!name != (what != HEAD_VALUE))
			return false; /* a name and its value belong together */
		if (what == HEAD_NAME) {
			name = text;
		} else if (what == HEAD_VALUE) {
			if (head->parameters < HEAD_PARAMETERS_MAX) {
				head->parameter[head->parameters].name = name;
				head->parameter[head->parameters].value = text;
			}
			head->parameters++;
			name = NULL;
		} else if ((form && what != HEAD_MASK) || what < HEAD_METHOD ||
		           what >= HEAD_TEXTS || head->text[what]) {
			return false;
		} else {
			head->text[what] = text;
		}
	}
	if (head->text[HEAD_MASK])
		head->mask = strtoull(head->text[HEAD_MASK], NULL, 10);
	return !name;
}

enum error head_read(struct head *head, char *data, size_t size)
{
	*head = (struct head){.data = data, .size = size};
	if (!read_texts(head, data, size, false) || !head->text[HEAD_METHOD] ||
	    !head->text[HEAD_PATH] ||
	    (head->text[HEAD_CLIENT] && strlen(head->text[HEAD_CLIENT]) >= HEAD_CLIENT_SIZE))
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
