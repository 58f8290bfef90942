#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct CMUnitTest unit_tests[32];

void unit_enlist(struct CMUnitTest test)
{
	static size_t count;

	unit_tests[count++] = test;
}

int unit_run(void)
{
	char directory[] = "/tmp/convolved-test-XXXXXX", removal[64];
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests(unit_tests, NULL, NULL);
	snprintf(removal, sizeof removal, "rm -r %s", directory);
	return failed || chdir("/") || system(removal);
}

__attribute__((weak)) int main(void)
{
	return unit_run();
}
