/* Columns of text. */
#include "client/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct table {
	const char *const *headings;
	size_t columns, cells;
	char **cell; /* row by row */
	int *width;
};

struct table *table_new(const char *const *headings)
{
	struct table *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	t->headings = headings;
	while (headings[t->columns])
		t->columns++;
	t->width = calloc(t->columns, sizeof *t->width);
	if (!t->width)
		abort();
	for (size_t i = 0; i < t->columns; i++)
		table_add(t, "%s", headings[i] + (*headings[i] == '>'));
	return t;
}

/* Counts characters, not bytes, of a text in UTF-8. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void table_add(struct table *t, const char *format, ...)
{
	va_list args;
	int *width = &t->width[t->cells % t->columns];

	if (!(t->cells & (t->cells + 1))) /* full: 0, 1, 3, 7 … */
		t->cell = reallocarray(t->cell, 2 * t->cells + 1, sizeof *t->cell);
	va_start(args, format);
	if (!t->cell || vasprintf(&t->cell[t->cells], format, args) < 0)
		abort();
	va_end(args);
	utf8_flatten(t->cell[t->cells]); /* text of the service: untrusted */
	if (*width < width_of(t->cell[t->cells]))
		*width = width_of(t->cell[t->cells]);
	t->cells++;
}

void table_add_seconds(struct table *t, double seconds)
{
	static const char *const units[] = {"s", "ms", "us", "ns"};
	size_t unit = 0;

	if (!(seconds > 0)) {
		table_add(t, "%s", isnan(seconds) ? "-" : "0");
		return;
	}
	for (; seconds < 0.9995 && unit < 3; unit++)
		seconds *= 1000;
	table_add(t, "%.*f %s",
	          seconds < 9.995   ? 2
	          : seconds < 99.95 ? 1
	                            : 0,
	          seconds, units[unit]);
}

void table_print(struct table *t, FILE *file)
{
	for (size_t i = 0; i < t->cells; i++) {
		size_t column = i % t->columns;
		int blank = t->width[column] - width_of(t->cell[i]);
		bool right = *t->headings[column] == '>', last = column + 1 == t->columns;

		fprintf(file, "%*s%s%*s%s", right ? blank : 0, "", t->cell[i],
		        right || last ? 0 : blank, "", last ? "\n" : "  ");
		free(t->cell[i]);
	}
	free(t->cell);
	free(t->width);
	free(t);
}
