#include "reference/apply.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Large canvases come from the system, in huge pages if it has some: pages of 4 KB would cost as
 * much as what is computed in them. */
enum { LARGE = 8 << 20 };

static size_t bytes_of(const struct canvas *c)
{
	return 2 * canvas_samples(c) * sizeof *c->value;
}

enum error canvas_init(struct canvas *c, const struct region *at, uint32_t bands)
{
	*c = (struct canvas){.at = *at, .bands = bands};
	if (bytes_of(c) < LARGE) {
		c->value = calloc(1, bytes_of(c));
	} else {
		void *memory = mmap(NULL, bytes_of(c), PROT_READ | PROT_WRITE,
		                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory != MAP_FAILED) {
			madvise(memory, bytes_of(c), MADV_HUGEPAGE);
			c->value = memory;
		}
	}
	c->slack = c->value ? c->value + canvas_samples(c) : NULL;
	return c->value ? ERR_OK : ERR_MEMORY;
}

void canvas_fini(struct canvas *c)
{
	if (c->value && bytes_of(c) >= LARGE)
		munmap(c->value, bytes_of(c));
	else
		free(c->value);
	c->value = c->slack = NULL;
}

size_t canvas_samples(const struct canvas *c)
{
	return (size_t)c->at.width * c->at.height * c->bands;
}

size_t canvas_index(const struct canvas *c, int x, int y)
{
	return ((size_t)(y - c->at.y) * c->at.width + (size_t)(x - c->at.x)) * c->bands;
}
