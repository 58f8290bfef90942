/* The block of a request's head: one that is read has its method and path, every text ends within
 * it, and written again it is read as the same. */
#include "fuzz.h"
#include "link/head.h"

static void check_text(const char *block, size_t size, const char *text)
{
	must(text >= block && text + strlen(text) < block + size);
}

static void expect_same(const char *a, const char *b)
{
	must(!a == !b && (!a || !strcmp(a, b)));
}

static void check(const struct head *head, size_t size)
{
	unsigned kept =
	    head->parameters < HEAD_PARAMETERS_MAX ? head->parameters : HEAD_PARAMETERS_MAX;
	struct head_writer writer = {0};
	struct head again;

	for (int i = 0; i < HEAD_TEXTS; i++) {
		if (!head->text[i])
			continue;
		check_text(head->data, size, head->text[i]);
		head_add(&writer, (enum head_text)i, "");
		head_extend(&writer, head->text[i], strlen(head->text[i]));
	}
	for (unsigned i = 0; i < kept; i++) {
		check_text(head->data, size, head->parameter[i].name);
		check_text(head->data, size, head->parameter[i].value);
		head_add(&writer, HEAD_NAME, head->parameter[i].name);
		head_add(&writer, HEAD_VALUE, head->parameter[i].value);
	}
	must(!writer.failed && !head_read(&again, writer.data, writer.size));
	for (int i = 0; i < HEAD_TEXTS; i++)
		expect_same(head->text[i], again.text[i]);
	for (unsigned i = 0; i < kept; i++) {
		expect_same(head->parameter[i].name, again.parameter[i].name);
		expect_same(head->parameter[i].value, again.parameter[i].value);
	}
	must((head->text[HEAD_MASK] || !head->mask) && head->mask == again.mask);
	must(head->text[HEAD_METHOD] && head->text[HEAD_PATH] && again.parameters == kept);
	head_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct head_writer form;
	struct head head;

	if (!head_read(&head, copy_of(input, size), size))
		check(&head, size);
	head_fini(&head);
	form = (struct head_writer){.data = copy_of(input, size), .size = size};
	if (!head_read_form(&head, &form))
		for (unsigned i = 0; i < head.parameters; i++) {
			check_text(head.form_data, size, head.parameter[i].name);
			check_text(head.form_data, size, head.parameter[i].value);
		}
	head_fini(&head);
	return 0;
}
