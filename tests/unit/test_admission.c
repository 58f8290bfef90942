/* Admission: what is known of how fast work gets done, and what is let in by it. */
#include <unistd.h>

#include "base/loop.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/jobs/shares.h"
#include "unit.h"

static struct config settings;
static struct problem problem;

static void begin(void)
{
	settings = (struct config){.max_jobs = 10, .max_wait = 3};
	config = &settings;
	admission_init();
}

/* The time that one more job takes follows from how fast those before it were done. */
TEST(test_drain_rate)
{
	struct share jobs = {0};
	double one;

	begin();
	assert_int_equal(admission_check("a", WORK_LIGHT, 0, &problem), ERR_OK);
	assert_true(admission_free() == 1);
	for (int i = 0; i < 9; i++)
		admission_began(WORK_LIGHT, 1000);
	assert_true(admission_predict(WORK_LIGHT, 1000) == 0); /* nothing is known yet */
	usleep(100000);
	admission_ended(WORK_LIGHT, 1000);
	/* At least a tenth of a second each, and eight before this one. */
	one = admission_predict(WORK_LIGHT, 1000) / 9;
	assert_true(one >= 0.1 && one < 2);
	assert_true(admission_free() >= 0 && admission_free() <= 1 - 8 * 0.1 / 3);
	assert_true(admission_predict(WORK_BATCH, 1000) == 0);
	/* Others take no part of max_jobs but their number. */
	assert_int_equal(admission_check("a", WORK_BATCH, 0, &problem), ERR_OK);
	assert_int_equal(share_force(&jobs, SHARE_JOBS, "b", 10), ERR_OK);
	assert_int_equal(admission_check("a", WORK_BATCH, 0, &problem), ERR_QUEUE_FULL);
	share_give_all(&jobs);
	/* A body that would take too long. */
	assert_int_equal(admission_check("a", WORK_LIGHT, 1000000, &problem), ERR_QUEUE_FULL);
	assert_in_range(admission_retry_after(), 1, 20);
	/* Alone, any is let in. */
	for (int i = 0; i < 8; i++)
		admission_ended(WORK_LIGHT, 1000);
	assert_int_equal(admission_check("a", WORK_LIGHT, 1000000, &problem), ERR_OK);
	assert_int_equal(admission_retry_after(), 1);
	assert_true(admission_free() == 1);
}

/* Time without a device says nothing about how fast work gets done, though jobs come meanwhile. */
TEST(test_stalled)
{
	uint64_t busy;

	begin();
	busy = -loop_now();
	admission_began(WORK_LIGHT, 1000);
	admission_stalled(true);
	busy += loop_now();
	for (int i = 0; i < 3; i++) {
		usleep(100000);
		admission_began(WORK_LIGHT, 1000);
	}
	busy -= loop_now();
	admission_stalled(false);
	usleep(100000);
	admission_ended(WORK_LIGHT, 1000);
	busy += loop_now();
	assert_true(admission_predict(WORK_LIGHT, 0) >= 3 * 0.09);
	assert_true(admission_predict(WORK_LIGHT, 0) <= 3e-9 * (double)busy);
}

/* Jobs that wait for a program say nothing about how fast work gets done. */
TEST(test_held)
{
	begin();
	for (int i = 0; i < 3; i++) {
		admission_began(WORK_LIGHT, 1000);
		admission_held(WORK_LIGHT, true);
	}
	usleep(300000);
	for (int i = 0; i < 3; i++)
		admission_held(WORK_LIGHT, false);
	admission_ended(WORK_LIGHT, 1000);
	assert_true(admission_predict(WORK_LIGHT, 1000) < 0.3);
	usleep(300000);
	for (int i = 0; i < 2; i++)
		admission_held(WORK_LIGHT, i == 0); /* busy until now */
	assert_true(admission_predict(WORK_LIGHT, 1000) > 0.1);
	for (int i = 0; i < 2; i++)
		admission_held(WORK_LIGHT, true);
	assert_true(admission_predict(WORK_LIGHT, 1000) == 0);
}

/* A job is of the class that its pixels and its work make it, and counts there alone. */
TEST(test_reckoned)
{
	const double light = work_cost(235000),
	             heavy = work_cost_known(235000, UINT64_C(4) * 11000 * 11000, 0);

	begin();
	assert_int_equal(work_class(false, light), WORK_LIGHT);
	assert_int_equal(work_class(false, work_cost_known(235000, 2 * 235000, 1e6)), WORK_LIGHT);
	assert_int_equal(work_class(false, heavy), WORK_HEAVY);
	assert_int_equal(work_class(false, work_cost_known(2400, 4800, 5e8)), WORK_HEAVY);
	assert_int_equal(work_class(false, work_cost(4 << 20)), WORK_HEAVY);
	assert_int_equal(work_class(true, light), WORK_BATCH);
	assert_true(work_cost_known(5000, 10, 0) >= work_cost(5000));
	admission_began(WORK_LIGHT, light);
	admission_changed(WORK_LIGHT, light, WORK_HEAVY, heavy);
	admission_changed(WORK_HEAVY, heavy, WORK_HEAVY, heavy + 1);
	admission_ended(WORK_HEAVY, heavy + 1);
	settings.max_jobs = 1;
	assert_int_equal(admission_check("a", WORK_LIGHT, 0, &problem), ERR_OK);
}
