/* Which devices the options of convolved-bench mean. */
#include "bench/bench.h"
#include "unit.h"

/* Two platforms: PoCL, without a GPU, and another with two, a processor and an accelerator. */
static const struct message_device list[] = {
    {.platform = 0, .device = 0, .type = DEVICE_CPU, .name = "pthread"},
    {.platform = 1, .device = 0, .type = DEVICE_CPU, .name = "Processor"},
    {.platform = 1, .device = 1, .type = DEVICE_GPU, .name = "Graphics A"},
    {.platform = 1, .device = 2, .type = DEVICE_GPU, .name = "Graphics B"},
    {.platform = 1, .device = 3, .type = DEVICE_ACCELERATOR, .name = "Board"},
};

enum { COUNT = sizeof list / sizeof *list };

TEST(test_choose)
{
	static const struct {
		struct bench_options options;
		const char *chosen; /* a 1 for each that is */
	} rows[] = {
	    /* GPUs by default; another platform's do not count. */
	    {{.platform = -1, .device_type = TYPE_DEFAULT}, "00110"},
	    {{.platform = 1, .device_type = TYPE_DEFAULT}, "00110"},
	    {{.platform = 0, .device_type = TYPE_DEFAULT}, "10000"},
	    {{.platform = 2, .device_type = TYPE_DEFAULT}, "00000"},
	    {{.platform = -1}, "11111"},
	    {{.platform = -1, .device_type = DEVICE_CPU}, "11000"},
	    {{.platform = -1, .device_type = DEVICE_ACCELERATOR}, "00001"},
	    {{.platform = 0, .device_type = DEVICE_ACCELERATOR}, "00000"},
	    /* Numbers count what is left. */
	    {{.platform = -1, .device = "1", .device_type = TYPE_DEFAULT}, "00010"},
	    {{.platform = -1, .device = "2", .device_type = TYPE_DEFAULT}, "00000"},
	    {{.platform = -1, .device = "2"}, "00100"},
	    {{.platform = -1, .device = "1", .device_type = DEVICE_CPU}, "01000"},
	    {{.platform = 1, .device = "1", .device_type = DEVICE_CPU}, "00000"},
	    {{.platform = 1, .device = "0", .device_type = DEVICE_CPU}, "01000"},
	    {{.platform = -1, .device = "graphics", .device_type = TYPE_DEFAULT}, "00110"},
	    {{.platform = -1, .device = "board", .device_type = TYPE_DEFAULT}, "00001"},
	    {{.platform = -1, .device = "pthread", .device_type = TYPE_DEFAULT}, "10000"},
	    {{.platform = -1, .device = "pthread", .device_type = DEVICE_GPU}, "00000"},
	    {{.platform = -1, .device = "", .device_type = DEVICE_GPU}, "00110"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool chosen[COUNT];
		size_t found = bench_options_choose(&rows[i].options, list, COUNT, chosen);

		for (size_t k = 0; k < COUNT; k++) {
			if (chosen[k] != (rows[i].chosen[k] == '1'))
				fail_msg("row %zu, device %zu", i, k);
			found -= chosen[k];
		}
		assert_int_equal(found, 0);
	}
}
