/* The data of an answer's message: NUL-terminated texts (status, then name and value of each
 * header), an empty text, and the body if that is a text. */
#include "link/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memfd.h"
#include "link/link.h"

void answer_init(struct answer *answer)
{
	*answer = (struct answer){.file = -1};
}

void answer_fini(struct answer *answer)
{
	free(answer->text);
	free(answer->detail);
	free(answer->block);
	for (unsigned i = 0; i < answer->headers; i++)
		free(answer->header[i].value);
	answer_init(answer);
}

void answer_header(struct answer *answer, const char *name, const char *format, ...)
{
	va_list args;
	char *value = NULL;

	if (answer->headers == ANSWER_HEADERS_MAX)
		return;
	va_start(args, format);
	if (vasprintf(&value, format, args) < 0)
		value = NULL;
	va_end(args);
	answer->failed |= !value;
	if (!value)
		return;
	answer->header[answer->headers].name = name;
	answer->header[answer->headers++].value = value;
}

bool answer_has(const struct answer *answer, const char *name)
{
	for (unsigned i = 0; i < answer->headers; i++)
		if (!strcmp(answer->header[i].name, name))
			return true;
	return false;
}

void answer_piece(struct answer *answer, char *text, size_t size)
{
	free(answer->text);
	answer->text = text;
	answer->text_size = text ? size : 0;
}

static void add_text(struct head_writer *w, const char *text)
{
	head_append(w, text, strlen(text) + 1);
}

void answer_pack(const struct answer *a, struct head_writer *w)
{
	char status[16];

	snprintf(status, sizeof status, "%d", a->status);
	add_text(w, status);
	if (a->content_type) {
		add_text(w, "Content-Type");
		add_text(w, a->content_type);
	}
	for (unsigned i = 0; i < a->headers; i++) {
		add_text(w, a->header[i].name);
		add_text(w, a->header[i].value);
	}
	add_text(w, "");
}

bool answer_send(struct link *link, uint64_t number, const struct answer *a, bool stream)
{
	struct link_message message = {.type = LINK_ANSWER,
	                               .flags = stream ? LINK_IS_STREAM : 0,
	                               .number = number,
	                               .file_size = a->file_size,
	                               .fd = -1};
	struct head_writer data = {0};
	bool sent;

	answer_pack(a, &data);
	if (!stream && (a->file >= 0 || data.size + a->text_size > LINK_DATA_MAX)) {
		message.flags |= LINK_HAS_FILE;
		message.fd = a->file;
		if (a->file < 0) {
			message.file_size = a->text_size;
			if (memfd_sealed("text", a->text, a->text_size, &message.fd)) {
				message.fd = -1;
				data.failed = true;
			}
		}
	} else {
		head_append(&data, a->text, a->text_size);
	}
	message.data = data.data;
	message.data_size = data.size;
	sent = !data.failed && link_send(link, &message);
	if (message.fd >= 0 && message.fd != a->file)
		close(message.fd);
	free(data.data);
	return sent;
}

/* Returns the text at *at, and advances *at behind it; NULL if the text does not end. */
static const char *read_text(const char **at, const char *end)
{
	const char *text = *at, *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	*at = nul ? nul + 1 : end;
	return nul ? text : NULL;
}

enum error answer_unpack(struct answer *a, const void *data, size_t size)
{
	const char *at, *end, *status, *name, *value;

	answer_init(a);
	a->block = malloc(size + 1);
	if (!a->block)
		return ERR_MEMORY;
	at = memcpy(a->block, data, size);
	end = at + size;
	status = read_text(&at, end);
	if (!status)
		return ERR_BAD_REQUEST;
	a->status = atoi(status);
	while ((name = read_text(&at, end)) && *name && (value = read_text(&at, end)))
		answer_header(a, name, "%s", value);
	if (!name || *name)
		return ERR_BAD_REQUEST;
	if (at == end)
		return ERR_OK;
	answer_piece(a, malloc((size_t)(end - at)), (size_t)(end - at));
	if (!a->text)
		return ERR_MEMORY;
	memcpy(a->text, at, a->text_size);
	return ERR_OK;
}

enum error answer_read(struct answer *a, const struct link_message *message)
{
	enum error e = answer_unpack(a, message->data, message->data_size);

	if (message->fd >= 0)
		answer_piece(a, NULL, 0);
	a->file = message->fd;
	a->file_size = message->file_size;
	return e;
}
