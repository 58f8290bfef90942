/* Repetitions of a tile, which prove something about devices, whatever a codec worker says. */
#include "front/workers/device_table.h"
#include "front/workers/verified.h"
#include "unit.h"

/* Tile 5 of a job is back from a device, by a kernel. Returns what the codec worker hears. */
static bool run_of_tile(struct verified_tiles *tiles, struct job *job, unsigned device,
                        enum kernel kernel)
{
	struct task task = {
	    .job = job, .device = device, .tile = {.index = 5, .width = 25, .height = 1}};
	struct message_tile_done done = {.launches = 1, .launch = {{.kernel = kernel}}};

	verified_expect(tiles, &task, &done);
	return done.others;
}

static bool comparison(struct verified_tiles *tiles, struct job *job, uint32_t run, bool same,
                       uint64_t mismatches, struct finding *finding)
{
	struct message_verified m = {
	    .index = 5, .run = run, .same = same, .samples = 100, .mismatches = mismatches};

	return verified_take(tiles, job, &m, finding);
}

/* Repetitions prove their point, and a codec worker that lies gains little by them. */
TEST(test_verified)
{
	struct message_device found = {.type = DEVICE_CPU};
	struct verified_tiles tiles = {0};
	struct job job = {.image = {.width = 100, .height = 1, .bands = 1}};
	struct finding f;

	for (uint32_t i = 0; i < 2; i++) {
		found.device = i;
		device_table_add(&found)->worker.state = WORKER_UP;
	}
	assert_false(comparison(&tiles, &job, 0, true, 1, &f)); /* no tile has come back */

	/* Always the same: again by the same device, then by the other; nothing is proved. */
	assert_false(run_of_tile(&tiles, &job, 0, KERNEL_MATRIX));
	assert_false(comparison(&tiles, &job, 1, true, 1, &f));
	assert_false(comparison(&tiles, &job, 0, true, 101, &f));
	assert_true(comparison(&tiles, &job, 0, true, 3, &f));
	assert_true(f.doubtful && !f.differs && f.again->index == 5 && f.prefer == 1);
	assert_false(comparison(&tiles, &job, 0, true, 3, &f)); /* it is under way */
	assert_true(run_of_tile(&tiles, &job, 0, KERNEL_MATRIX));
	assert_true(comparison(&tiles, &job, 1, true, 3, &f));
	assert_true(!f.doubtful && !f.differs && f.again && f.prefer == 2);
	assert_false(run_of_tile(&tiles, &job, 1, KERNEL_MATRIX));
	assert_true(comparison(&tiles, &job, 2, false, 3, &f));
	assert_true(!f.doubtful && !f.differs && !f.again);
	assert_false(comparison(&tiles, &job, 2, false, 3, &f));
	assert_int_equal(job.verified.mismatches, 3); /* counts of the first run */

	/* Two results by one kernel of one device are a proof; by two kernels they are none. */
	for (int i = 0; i < 2; i++) {
		run_of_tile(&tiles, &job, 0, KERNEL_MATRIX);
		assert_true(comparison(&tiles, &job, 0, true, 3, &f));
		run_of_tile(&tiles, &job, 0, i ? KERNEL_MATRIX_WIDE : KERNEL_MATRIX);
		assert_true(comparison(&tiles, &job, 1, false, 0, &f));
		assert_true(f.differs == !i && !f.again && f.device == 0);
	}

	/* Every kernel is told from every other. */
	for (enum kernel k = 0; k < KERNELS; k++) {
		struct kernel_set set = {0}, next = {0};

		kernel_set_add(&set, k);
		kernel_set_add(&next, (k + 1) % KERNELS);
		assert_true(kernel_set_equals(&set, &set) && !kernel_set_equals(&set, &next));
		for (enum kernel other = 0; other < KERNELS; other++)
			assert_true(kernel_set_has(&set, other) == (other == k));
	}

	/* A tile that is as it should be is done with. */
	run_of_tile(&tiles, &job, 1, KERNEL_MATRIX);
	assert_true(comparison(&tiles, &job, 0, true, 0, &f));
	assert_true(!f.again && !f.doubtful && f.device == 1);
	assert_false(comparison(&tiles, &job, 0, true, 1, &f));
	device_table_clear();
}
