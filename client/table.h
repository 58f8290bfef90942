/* A table of text whose columns are as wide as their contents. */
#pragma once

#include <stdio.h>

struct table;

/* The headings end with NULL; one that starts with '>' heads a right-aligned column. */
struct table *table_new(const char *const *headings);
/* Sets the next cell, row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets a time with three digits and a unit; a bare "-" if it is NAN. */
void table_add_seconds(struct table *table, double seconds);
/* Prints the table and frees it. */
void table_print(struct table *table, FILE *file);
