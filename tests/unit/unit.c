#include "unit.h"

static struct CMUnitTest unit_tests[32];

void unit_enlist(struct CMUnitTest test)
{
	static size_t count;

	unit_tests[count++] = test;
}

int unit_run(void)
{
	return cmocka_run_group_tests(unit_tests, NULL, NULL);
}

__attribute__((weak)) int main(void)
{
	return unit_run();
}
