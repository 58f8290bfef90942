/* Answers, without what their texts say. */
#include "common/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
