/* The frame of all unit tests: cmocka, with the headers that it wants before itself, a list of
 * tests that fills itself, and main(). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void unit_enlist(struct CMUnitTest test);

/* Begins a test, which comes into the list before main(). None of them looks at its state. */
#define TEST(name)                                                                                 \
	static void name(void **state);                                                            \
	static void __attribute__((constructor)) name##_enlist(void)                               \
	{                                                                                          \
		unit_enlist((struct CMUnitTest)cmocka_unit_test(name));                            \
	}                                                                                          \
	static void name(void **state __attribute__((unused)))

/* Runs the tests of the file in their order, in an empty directory, which goes in the end: for a
 * main() of its own. Returns its exit status. */
int unit_run(void);
