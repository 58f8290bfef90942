/* The data of an answer's message: texts that each end with NUL (status, media type, then name and
 * value of each header), an empty one, and the body if that is a text. */
#include "link/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/link.h"

void answer_init(struct answer *answer)
{
	*answer = (struct answer){.file = -1};
}

void answer_fini(struct answer *answer)
{
	free(answer->text);
	free(answer->detail);
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

static void write_text(FILE *out, const char *text)
{
	fwrite(text, 1, strlen(text) + 1, out);
}

/* Makes the texts before the body (malloc'ed), or NULL. */
static char *write_head(const struct answer *a, size_t *size)
{
	char *data = NULL, status[12];
	FILE *out = open_memstream(&data, size);

	if (!out)
		return NULL;
	snprintf(status, sizeof status, "%d", a->status);
	write_text(out, status);
	write_text(out, a->content_type ? a->content_type : "");
	for (unsigned i = 0; i < a->headers; i++) {
		write_text(out, a->header[i].name);
		write_text(out, a->header[i].value);
	}
	write_text(out, "");
	if (!fclose(out))
		return data;
	free(data);
	return NULL;
}

/* Sends an answer whose body is a file, or a text, which then goes as a memfd. */
static bool send_file(struct link *link, struct link_message *message, const char *head,
                      size_t size, const struct answer *a)
{
	const bool is_text = a->file < 0;
	int fd = is_text ? memfd_create("text", MFD_CLOEXEC) : a->file;
	bool sent;

	message->type = LINK_ANSWER_FILE;
	message->size = is_text ? a->text_size : a->file_size;
	sent = fd >= 0 && (!is_text || write(fd, a->text, a->text_size) == (ssize_t)a->text_size) &&
	       link_send(link, message, head, size, fd);
	if (is_text && fd >= 0)
		close(fd);
	return sent;
}

bool answer_send(struct link *link, uint64_t number, const struct answer *a, bool stream)
{
	struct link_message message = {.type = LINK_ANSWER,
	                               .flags = stream ? LINK_IS_STREAM : 0,
	                               .number = number,
	                               .size = a->file_size};
	size_t size = 0;
	char *data = write_head(a, &size), *all;
	bool sent = false;

	if (data && !stream && (a->file >= 0 || size + a->text_size > LINK_DATA_MAX)) {
		sent = send_file(link, &message, data, size, a);
	} else if (data) {
		all = realloc(data, size + a->text_size + 1);
		data = all ? all : data;
		if (all && a->text_size)
			memcpy(all + size, a->text, a->text_size);
		sent = all && link_send(link, &message, all, size + a->text_size, -1);
	}
	free(data);
	return sent;
}

/* Returns the text at *at, and moves *at behind it; NULL: there is no end to it. */
static const char *read_text(const char **at, const char *end)
{
	const char *text = *at, *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	*at = nul ? nul + 1 : end;
	return nul ? text : NULL;
}

enum error answer_read(struct answer *a, char **kept, const struct link_message *message,
                       const char *data, size_t size, int fd)
{
	const char *at, *end, *status, *name, *value;

	answer_init(a);
	*kept = malloc(size + 1);
	if (!*kept)
		return ERR_MEMORY;
	at = memcpy(*kept, data, size);
	end = at + size;
	status = read_text(&at, end);
	a->content_type = read_text(&at, end);
	if (!status || !a->content_type)
		return ERR_BAD_REQUEST;
	a->status = atoi(status);
	a->content_type = *a->content_type ? a->content_type : NULL;
	while ((name = read_text(&at, end)) && *name && (value = read_text(&at, end)))
		answer_header(a, name, "%s", value);
	if (!name || *name)
		return ERR_BAD_REQUEST;
	a->file = fd;
	a->file_size = message->size;
	if (fd >= 0 || at == end)
		return ERR_OK;
	answer_piece(a, malloc((size_t)(end - at)), (size_t)(end - at));
	if (!a->text)
		return ERR_MEMORY;
	memcpy(a->text, at, a->text_size);
	return ERR_OK;
}
