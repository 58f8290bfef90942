/* Shared by the programs that measure. */
#pragma once

#include <stdint.h>

/* Ends the program with a message as by printf(), and status 1. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns `from`; without memory, ends the program. */
void *must_have(void *from);

/* Seconds of time that only passes. */
double seconds_now(void);

/* Returns an option's number, which must be whole and from 1 to max. */
unsigned parse_number(char option, const char *text, unsigned max);
