#include "reference/apply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-pragmas" /* ivdep */
#endif

/* Large canvases come from the system, in huge pages if it has some, because pages of 4 KB would
 * cost as much as the computation in them. */
enum { LARGE = 8 << 20 };

static size_t bytes_of(const struct canvas *c)
{
	return 2 * canvas_samples(c) * sizeof *c->value;
}

bool canvas_init(struct canvas *c, const struct region *at, uint32_t bands)
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
	return c->value;
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

VECTORISED void rows_load(double *restrict to, const void *restrict from, enum pixel_type type,
                          size_t count)
{
	const uint8_t *bytes = from;
	const uint16_t *words = from;
	const float *floats = from;

	if (type == PIXEL_U8)
		for (size_t k = 0; k < count; k++)
			to[k] = bytes[k];
	else if (type == PIXEL_U16)
		for (size_t k = 0; k < count; k++)
			to[k] = words[k];
	else
		for (size_t k = 0; k < count; k++)
			to[k] = floats[k];
}

VECTORISED void rows_store(void *restrict to, const double *restrict from, enum pixel_type type,
                           size_t count)
{
	uint8_t *bytes = to;
	uint16_t *words = to;
	float *floats = to;

	if (type == PIXEL_U8)
		for (size_t k = 0; k < count; k++)
			bytes[k] = (uint8_t)(int)from[k];
	else if (type == PIXEL_U16)
		for (size_t k = 0; k < count; k++)
			words[k] = (uint16_t)(int)from[k];
	else
		for (size_t k = 0; k < count; k++)
			floats[k] = (float)from[k];
}

#define LANES       2
#define NAMED(name) name##_2
#include "reference/rows_sum.h"
#ifdef GENERATIONS
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define LANES       4
#define NAMED(name) name##_4
#include "reference/rows_sum.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define LANES       8
#define NAMED(name) name##_8
#include "reference/rows_sum.h"
#pragma GCC pop_options
#define CHOOSE(name)                                                                               \
	(__builtin_cpu_supports("x86-64-v4")   ? name##_8                                          \
	 : __builtin_cpu_supports("x86-64-v3") ? name##_4                                          \
	                                       : name##_2)
#else
#define CHOOSE(name) name##_2
#endif

void rows_sum(double *to, size_t count, const double *from, const ptrdiff_t *offset,
              const double *weight, size_t taps)
{
	CHOOSE(sum)(to, count, from, offset, weight, taps);
}

static bool is_even(const double *weight, size_t taps)
{
	for (size_t i = 0; i < taps / 2; i++)
		if (weight[i] != weight[taps - 1 - i])
			return false;
	return true;
}

void rows_sum_down(double *to, size_t to_pitch, size_t rows, const double *from, size_t pitch,
                   const double *weight, size_t taps)
{
	CHOOSE(sum_down)(to, to_pitch, rows, from, pitch, weight, taps, is_even(weight, taps));
}

void rows_sum_along(double *to, size_t count, const double *from, size_t step, const double *weight,
                    size_t taps)
{
	CHOOSE(sum_along)(to, count, from, step, weight, taps, is_even(weight, taps));
}

VECTORISED void rows_extreme(double *to, const double *a, const double *b, bool largest,
                             size_t count)
{
	if (largest)
#pragma GCC ivdep
		for (size_t k = 0; k < count; k++)
			to[k] = ((b[k] > a[k]) | (b[k] != b[k])) ? b[k] : a[k];
	else
#pragma GCC ivdep
		for (size_t k = 0; k < count; k++)
			to[k] = ((b[k] < a[k]) | (a[k] != a[k])) ? b[k] : a[k];
}

VECTORISED void rows_magnitude(double *restrict to, const double *restrict from, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		const double size = fabs(from[k]);

		to[k] = size < HUGE_VAL ? size : 0;
	}
}
