/* Progress, which the watchdog is told of. */
#include "front/notify.h"
#include "unit.h"

enum { TILE_LIMIT = 10, JOB_LIMIT = 100 };

static bool holds(struct progress *progress, const struct work *work, uint64_t now)
{
	return progress_note(progress, work, now, TILE_LIMIT, JOB_LIMIT);
}

TEST(test_progress)
{
	static const struct {
		struct work work;
		uint64_t waited;
		bool holds;
	} cases[] = {
	    {{.devices_up = 1}, 1000, true}, /* nothing to do */
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1}, TILE_LIMIT, true},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1}, TILE_LIMIT + 1, false},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1, .tiles_back = 1}, 1000, true},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1, .jobs_ended = 1}, 1000, false},
	    {{.devices_up = 0, .jobs = 1, .tiles_waiting = 1}, 1000, true}, /* no device */
	    {{.devices_up = 1, .jobs = 1}, JOB_LIMIT, true},                /* decoding */
	    {{.devices_up = 1, .jobs = 1}, JOB_LIMIT + 1, false},
	    {{.devices_up = 1, .jobs = 1, .tiles_back = 1}, 1000, true},
	    {{.devices_up = 1, .jobs = 1, .jobs_ended = 1}, 1000, true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct progress progress = {0};

		assert_true(holds(&progress, &(struct work){.devices_up = 1}, 5000));
		assert_int_equal(holds(&progress, &cases[i].work, 5000 + cases[i].waited),
		                 cases[i].holds);
	}
}

/* Only what is done between two notes counts, and once something is done it holds again. */
TEST(test_progress_again)
{
	struct work work = {.devices_up = 1, .jobs = 1, .tiles_waiting = 3, .tiles_back = 4};
	struct progress progress = {0};

	assert_true(holds(&progress, &work, 1000));
	assert_true(holds(&progress, &work, 1010));
	assert_false(holds(&progress, &work, 1011));
	assert_false(holds(&progress, &work, 1012));
	work.tiles_back++;
	assert_true(holds(&progress, &work, 1013));
	assert_true(holds(&progress, &work, 1023));
	assert_false(holds(&progress, &work, 1024));
}
