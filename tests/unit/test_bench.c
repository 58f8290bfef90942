/* Which devices the options of convolved-bench mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"

/* Two platforms: PoCL, without a GPU, and another with two, a processor and an accelerator. */
static const struct message_device list[] = {
    {.platform = 0, .device = 0, .type = DEVICE_CPU, .name = "pthread"},
    {.platform = 1, .device = 0, .type = DEVICE_CPU, .name = "Processor"},
    {.platform = 1, .device = 1, .type = DEVICE_GPU, .name = "Graphics A"},
    {.platform = 1, .device = 2, .type = DEVICE_GPU, .name = "Graphics B"},
    {.platform = 1, .device = 3, .type = DEVICE_ACCELERATOR, .name = "Board"},
};

enum { COUNT = sizeof list / sizeof *list };

/* Asserts that the options choose the devices of a string of 0 and 1. */
static void expect(struct bench_options options, const char *wanted)
{
	bool chosen[COUNT];
	size_t count = 0;
	char got[COUNT + 1] = "";
	size_t found = bench_options_choose(&options, list, COUNT, chosen);

	for (size_t i = 0; i < COUNT; i++) {
		got[i] = chosen[i] ? '1' : '0';
		count += chosen[i];
	}
	assert_string_equal(got, wanted);
	assert_int_equal(found, count);
}

static void test_by_default_gpus(void **state)
{
	(void)state;
	expect((struct bench_options){.platform = -1}, "00110");
	expect((struct bench_options){.platform = 1}, "00110");
	/* Another platform's GPUs do not count. */
	expect((struct bench_options){.platform = 0}, "10000");
	expect((struct bench_options){.platform = 2}, "00000");
}

static void test_types(void **state)
{
	struct bench_options o = {.platform = -1, .type_given = true};

	(void)state;
	expect(o, "11111");
	o.device_type = DEVICE_CPU;
	expect(o, "11000");
	o.device_type = DEVICE_ACCELERATOR;
	expect(o, "00001");
	o.platform = 0;
	expect(o, "00000");
}

static void test_numbers_count_what_is_left(void **state)
{
	struct bench_options o = {.platform = -1, .device = "1"};

	(void)state;
	expect(o, "00010");
	o.device = "2";
	expect(o, "00000");
	o.type_given = true;
	expect(o, "00100");
	o.device_type = DEVICE_CPU;
	o.device = "1";
	expect(o, "01000");
	o.platform = 1;
	expect(o, "00000");
	o.device = "0";
	expect(o, "01000");
}

static void test_names(void **state)
{
	struct bench_options o = {.platform = -1, .device = "graphics"};

	(void)state;
	expect(o, "00110");
	o.device = "board";
	expect(o, "00001");
	o.device = "pthread";
	expect(o, "10000");
	o.type_given = true;
	o.device_type = DEVICE_GPU;
	expect(o, "00000");
	o.device = "";
	expect(o, "00110");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_default_gpus),
	    cmocka_unit_test(test_types),
	    cmocka_unit_test(test_numbers_count_what_is_left),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
