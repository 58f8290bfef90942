/* Any form, read in one piece and in many: the results are the same, and no byte beyond it is read.
 * The first two bytes say how it is cut. */
#include "fuzz.h"
#include "http/form.h"

/* The texts heard: names and data, with marks between them that no form can hold. */
struct heard {
	char *text;
	size_t size;
};

static void hear(struct heard *heard, const void *data, size_t size)
{
	if (!size)
		return;
	heard->text = realloc(heard->text, heard->size + size);
	memcpy(heard->text + heard->size, data, size);
	heard->size += size;
}

static enum error begin(void *context, const char *name, bool file, struct problem *problem)
{
	(void)problem;
	hear(context, file ? "\0\1" : "\0\2", 2);
	hear(context, name, strlen(name) + 1);
	return ERR_OK;
}

static enum error take(void *context, const char *data, size_t size, struct problem *problem)
{
	(void)problem;
	must(size > 0);
	hear(context, data, size);
	return ERR_OK;
}

static enum error read_form(const char *type, const char *data, size_t size, size_t piece,
                            struct heard *heard)
{
	static const struct form_calls calls = {begin, take};
	struct problem problem;
	struct form *form;
	enum error e = form_new(&form, type, &calls, heard, &problem);

	while (!e && size) {
		size_t now = piece < size ? piece : size;

		e = form_read(form, data, now, &problem);
		data += now;
		size -= now;
	}
	if (!e)
		e = form_finish(form, &problem);
	must(!e || memchr(problem.detail, '\0', sizeof problem.detail));
	form_free(form);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct heard once = {0}, pieces = {0};
	char type[256] = "multipart/form-data; boundary=b";
	const char *data = (const char *)input + 2;
	enum error e;

	if (size < 2)
		return 0;
	size -= 2;
	if (input[1] & 1) { /* the Content-Type too */
		size_t length = size < sizeof type ? strnlen(data, size) : strnlen(data, 255);

		memcpy(type, data, length);
		type[length] = '\0';
		data += length;
		size -= length;
	}
	e = read_form(type, data, size, size, &once);
	must(read_form(type, data, size, 1 + input[0] % 16, &pieces) == e);
	must(e || (once.size == pieces.size &&
	           (!once.size || !memcmp(once.text, pieces.text, once.size))));
	free(once.text);
	free(pieces.text);
	return 0;
}
