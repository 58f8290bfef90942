/* Any bytes of a connection, read in one piece and in many: what is found is the same, in the same
 * request, and no byte beyond them is read. The first byte says how they are cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/grammar.h"

struct found {
	enum error error;
	enum grammar_state state;
	uint64_t requests, left;
	size_t sound; /* bytes of the requests before the fault */
};

static struct found read_all(const char *data, size_t size, size_t piece)
{
	struct grammar g = {0};
	struct problem problem;
	struct found found = {0};
	size_t sound = 0, whole = 0; /* bytes up to the last one that ended a request */

	for (size_t at = 0; at < size && !found.error;) {
		size_t now = piece < size - at ? piece : size - at;
		/* A copy of its own, so that sanitizers see who reads beyond it. */
		char *copy = malloc(now);
		uint64_t before = g.requests;

		memcpy(copy, data + at, now);
		found.error = grammar_read(&g, copy, now, &sound, &problem);
		free(copy);
		if (sound > now || (!found.error && sound < now && g.state != GRAMMAR_OVER))
			abort();
		if (found.error && !memchr(problem.detail, '\0', sizeof problem.detail))
			abort();
		if (found.error && g.requests > before)
			whole = at + sound;
		at += now;
	}
	found.sound = whole;
	found.state = g.state;
	found.requests = g.requests;
	found.left = g.left;
	grammar_fini(&g);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *data = (const char *)input + 1;
	struct found once, pieces;

	if (!size)
		return 0;
	size--;
	once = read_all(data, size, size ? size : 1);
	pieces = read_all(data, size, 1 + input[0] % 16);
	if (once.error != pieces.error || once.requests != pieces.requests ||
	    once.state != pieces.state || once.left != pieces.left)
		abort();
	/* Whatever is passed on before a fault is valid, and complete, by itself. */
	if (once.error && once.sound) {
		struct found sound = read_all(data, once.sound, once.sound);

		if (sound.error || sound.requests != once.requests || sound.state != GRAMMAR_START)
			abort();
	}
	return 0;
}
