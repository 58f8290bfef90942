/* The frame of all unit tests: cmocka, with the headers that it wants before itself, and a list of
 * tests that fills itself. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct CMUnitTest unit_tests[32];

static inline void unit_enlist(struct CMUnitTest test)
{
	static size_t count;

	unit_tests[count++] = test;
}

/* Begins a test, which comes into the list before main(). None of them looks at its state. */
#define TEST(name)                                                                                 \
	static void name(void **state);                                                            \
	static void __attribute__((constructor)) name##_enlist(void)                               \
	{                                                                                          \
		unit_enlist((struct CMUnitTest)cmocka_unit_test(name));                            \
	}                                                                                          \
	static void name(void **state __attribute__((unused)))

/* Runs the tests of the file in their order. Returns the exit status of main(). */
static inline int unit_run(void)
{
	return cmocka_run_group_tests(unit_tests, NULL, NULL);
}

#endif
