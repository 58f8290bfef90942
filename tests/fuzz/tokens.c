/* The file of tokens, and what clients show. The input is the file, and after a line of = alone the
 * headers. A client has the rights of a section of the file, whose digest is its token's. */
#include "file.h"
#include "quiet.h"

#include "../../daemon/front/api/tokens.c"

static void admit(const char *header)
{
	struct job_terms terms = {0};
	struct problem problem = {0};
	const struct token *t = current.token;
	const enum error e = tokens_admit(header, &terms, &problem);

	must(!e == !*problem.detail);
	if (e || !current.count)
		return;
	while (strcmp(t->name, terms.client))
		t++;
	must(t < current.token + current.count && terms.named && terms.share == t->share);
	must(terms.share >= 0.01 && terms.share <= 100 && terms.best < PRIORITIES);
	must(strlen(header) >= sizeof "Bearer" - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct memory_file file;
	struct config c = {0};
	char *text = strndup((const char *)input, size), *headers = strstr(text, "\n=\n");

	if (headers) {
		*headers = '\0';
		headers += 3;
	}
	fill_file(&file, text, strlen(text));
	c.tokens = file.path;
	if (tokens_read(&c)) {
		must(tokens_wanted());
		tokens_commit();
	}
	for (char *after; headers; headers = after) {
		after = strchr(headers, '\n');
		if (after)
			*after++ = '\0';
		admit(headers);
	}
	admit("Bearer token");
	tokens_fini();
	free(text);
	return 0;
}
