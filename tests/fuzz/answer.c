/* An answer as the data of a message: an answer that is read can be written, and is then read as
 * the same. */
#include "fuzz.h"
#include "link/answer.h"
#include "link/link.h"

static struct link_message sent; /* with a copy of its data */

bool link_send(struct link *link, const struct link_message *message)
{
	(void)link;
	sent = *message;
	sent.data = copy_of(message->data, message->data_size);
	return true;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check(const struct answer *a)
{
	struct answer again;

	must(answer_send(NULL, 7, a, false));
	must(sent.number == 7 && sent.data_size <= LINK_DATA_MAX);
	must(!answer_read(&again, &sent));
	must(again.status == a->status);
	must(again.headers == a->headers && again.file == a->file);
	for (unsigned i = 0; i < a->headers; i++)
		must(same(again.header[i].name, a->header[i].name) &&
		     same(again.header[i].value, a->header[i].value));
	must(again.text_size == a->text_size && again.file_size == a->file_size);
	must(!a->text_size || !memcmp(again.text, a->text, a->text_size));
	answer_fini(&again);
	free((void *)sent.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct answer a;
	char *data = copy_of(input, size);
	struct link_message message = {.type = LINK_ANSWER,
	                               .file_size = size,
	                               .data = data,
	                               .data_size = size,
	                               .fd = size % 7 ? -1 : 0};

	if (!answer_read(&a, &message))
		check(&a);
	answer_fini(&a);
	free(data);
	return 0;
}
