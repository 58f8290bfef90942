/* Any bytes of a connection, read in one piece and in many: findings and data are the same, in the
 * same request, and no byte beyond them is read. The first byte says how they are cut. */
#include "fuzz.h"
#include "http/grammar.h"

struct found {
	enum error error;
	enum grammar_state state;
	uint64_t requests, left;
	char *passed; /* data for a reader: pieces up to the one with the fault */
	size_t size;
	bool whole; /* and the requests before the fault */
};

static struct found read_all(const char *data, size_t size, size_t piece)
{
	struct grammar g = {0};
	struct problem problem;
	struct found found = {.passed = malloc(size + 1)};
	size_t sound = 0;

	for (size_t at = 0; at < size && !found.error;) {
		size_t now = piece < size - at ? piece : size - at;
		char *copy = copy_of(data + at, now);
		uint64_t before = g.requests;

		found.error = grammar_read(&g, copy, now, &sound, &problem);
		must(sound <= now);
		memcpy(found.passed + found.size, copy, sound);
		free(copy);
		found.size += sound;
		must(!found.error || memchr(problem.detail, '\0', sizeof problem.detail));
		found.whole = !found.error || g.requests > before;
		at += now;
	}
	found.state = g.state;
	found.requests = g.requests;
	found.left = g.left;
	grammar_fini(&g);
	return found;
}

static bool same(const struct found *a, const struct found *b)
{
	return a->size == b->size && !memcmp(a->passed, b->passed, a->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *data = (const char *)input + 1;
	struct found once, pieces;

	if (!size)
		return 0;
	size--;
	once = read_all(data, size, size ? size : 1);
	pieces = read_all(data, size, 1 + input[0] % 16);
	must(once.error == pieces.error && once.requests == pieces.requests &&
	     once.state == pieces.state && once.left == pieces.left &&
	     (once.error || same(&once, &pieces)));
	/* Whatever is passed on before a fault is valid by itself, without anything to take out. */
	if (once.whole && once.size) {
		struct found sound = read_all(once.passed, once.size, once.size);

		must(!sound.error && sound.requests == once.requests && same(&sound, &once) &&
		     (!once.error || sound.state == GRAMMAR_START));
		free(sound.passed);
	}
	free(once.passed);
	free(pieces.passed);
	return 0;
}
