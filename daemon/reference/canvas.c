#include "reference/canvas.h"

#include <stdlib.h>

enum error canvas_init(struct canvas *c, const struct region *at, uint32_t bands)
{
	*c = (struct canvas){.at = *at, .bands = bands};
	c->value = calloc(canvas_samples(c), sizeof *c->value);
	c->slack = calloc(canvas_samples(c), sizeof *c->slack);
	return c->value && c->slack ? ERR_OK : ERR_MEMORY;
}

void canvas_fini(struct canvas *c)
{
	free(c->value);
	free(c->slack);
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
