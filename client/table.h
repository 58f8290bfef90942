/* A table of text: columns as wide as what is in them. */
#pragma once

#include <stdio.h>

struct table;

/* Headings end with NULL; one that starts with '>' heads a column of figures, which stand at its
 * right. */
struct table *table_new(const char *const *headings);
/* Sets the next cell, row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A time with three figures and a unit; a bare "-" for one that is not a number. */
void table_add_seconds(struct table *table, double seconds);
/* Prints the table and frees it. */
void table_print(struct table *table, FILE *file);
