/* Texts from malloc(). */
#pragma once

#include <stdarg.h>

/* Return a text made as printf() would; without memory the program ends. */
char *smprint(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *vsmprint(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
