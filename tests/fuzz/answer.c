/* An answer as the data of a message: an answer that is read can be written, and is then read as
 * the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "link/answer.h"
#include "link/link.h"

static struct link_message sent; /* with a copy of its data */

bool link_send(struct link *link, const struct link_message *message)
{
	char *data = malloc(message->data_size + 1);

	(void)link;
	memcpy(data, message->data, message->data_size);
	sent = *message;
	sent.data = data;
	return true;
}

static void expect(bool what)
{
	if (!what)
		abort();
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check(const struct answer *a)
{
	struct answer again;

	expect(answer_send(NULL, 7, a, false));
	expect(sent.number == 7 && sent.data_size <= LINK_DATA_MAX);
	expect(!answer_read(&again, &sent));
	expect(again.status == a->status);
	expect(again.headers == a->headers && again.file == a->file);
	for (unsigned i = 0; i < a->headers; i++)
		expect(same(again.header[i].name, a->header[i].name) &&
		       same(again.header[i].value, a->header[i].value));
	expect(again.text_size == a->text_size && again.file_size == a->file_size);
	expect(!a->text_size || !memcmp(again.text, a->text, a->text_size));
	answer_fini(&again);
	free((void *)sent.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct answer a;
	char *data = malloc(size + 1);
	struct link_message message = {.type = LINK_ANSWER,
	                               .file_size = size,
	                               .data = data,
	                               .data_size = size,
	                               .fd = size % 7 ? -1 : 0};

	if (size)
		memcpy(data, input, size);
	if (!answer_read(&a, &message))
		check(&a);
	answer_fini(&a);
	free(data);
	return 0;
}
