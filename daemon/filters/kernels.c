#include "filters/kernels.h"

#include <string.h>

enum {
	NONE = 0,
#define OPERATION(symbol, ...) symbol = 1 << OPERATION_##symbol,
#include "filters/operations.def"
	U8 = 1 << PIXEL_U8,
	INTEGERS = 1 << PIXEL_U8 | 1 << PIXEL_U16,
	ALL_TYPES = (1 << PIXEL_TYPES) - 1,
	ALL_BANDS = (1 << (BANDS_MAX + 1)) - 2,
	COLOR_BANDS = 1 << 3 | 1 << 4,
	ONE_BAND = 1 << 1,
	FOUR_BANDS = 1 << 4,
	IMAGE_BANDS = ONE_BAND | FOUR_BANDS, /* an image object has channels of one or four */
};

static const struct kernel_row rows[KERNELS + 1] = {
#define KERNEL(symbol, name, operations, origin, device, types, bands, radius, text, ...)          \
	{name, operations, KERNEL_##origin, KERNEL_FOR_##device, types, bands, radius, text},
#include "kernels.def"
#undef KERNEL
    {.name = "unknown"},
};

const struct kernel_row *kernel_row(enum kernel kernel)
{
	return &rows[kernel < KERNELS ? kernel : KERNELS];
}

const char *kernel_name(enum kernel kernel)
{
	return kernel_row(kernel)->name;
}

enum kernel kernel_parse(const char *name)
{
	enum kernel kernel = 0;

	while (kernel < KERNELS && strcmp(name, rows[kernel].name))
		kernel++;
	return kernel;
}

void kernel_set_add(struct kernel_set *set, enum kernel kernel)
{
	set->words[kernel / 64] |= UINT64_C(1) << kernel % 64;
}

bool kernel_set_has(const struct kernel_set *set, enum kernel kernel)
{
	return set->words[kernel / 64] >> kernel % 64 & 1;
}

bool kernel_set_equals(const struct kernel_set *a, const struct kernel_set *b)
{
	return !memcmp(a->words, b->words, sizeof a->words);
}
