/* The decisions of scheduler, device_load and jpeg_router, with simulated devices. */
#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "chains.h"
#include "front/config/config.h"
#include "front/workers/device_load.h"
#include "front/workers/jpeg_router.h"
#include "front/workers/scheduler.h"
#include "../lib/simulated.h"

enum { JOBS = 4, TILES = 200 };

static struct job jobs[JOBS];
static struct task tasks[TILES];
static unsigned task_count;
static struct {
	unsigned filtered, failed;
	enum error error;         /* error of the last that failed */
	unsigned on[DEVICES_MAX]; /* filtered by each device */
	double end;               /* when the last was filtered */
} outcome[JOBS];

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	size_t job = (size_t)(task->job - jobs);

	if (done->error) {
		outcome[job].failed++;
		outcome[job].error = (enum error)done->error;
		return;
	}
	outcome[job].filtered++;
	outcome[job].on[task->device]++;
	outcome[job].end = simulated_time;
}

static void start(const double *ns_per_unit, unsigned count)
{
	static const struct config none;

	config = &none;
	assert_int_equal(loop_init(), ERR_OK);
	assert_int_equal(scheduler_init(), ERR_OK);
	assert_true(simulated_devices(ns_per_unit, count));
	memset(jobs, 0, sizeof jobs);
	memset(outcome, 0, sizeof outcome);
	task_count = 0;
	for (unsigned i = 0; i < JOBS; i++) {
		jobs[i] = (struct job){.id = i + 1, .references = 1};
		snprintf(jobs[i].terms.client, sizeof jobs[i].terms.client, "client %u", i);
	}
}

static void stop(void)
{
	for (unsigned i = 0; i < JOBS; i++)
		simulated_for_codecs->job_ended(&jobs[i]);
	assert_int_equal(scheduler_waiting(), 0);
	scheduler_fini();
	loop_fini();
}

static void add(unsigned job, unsigned count, double units)
{
	while (count--) {
		struct task *task = &tasks[task_count++];

		*task = (struct task){.job = &jobs[job],
		                      .devices = jobs[job].terms.devices,
		                      .item.cost = units,
		                      .units = units};
		simulated_for_codecs->task_ready(task);
	}
}

static void run(void)
{
	while (simulated_step())
		;
}

/* The work of an image is shared by the devices' speeds. */
TEST(test_shares)
{
	start((double[]){1, 1, 2}, 3);
	add(0, 100, 1e6);
	run();
	assert_int_equal(outcome[0].filtered, 100);
	assert_in_range(outcome[0].on[0], 38, 42);
	assert_in_range(outcome[0].on[1], 38, 42);
	assert_in_range(outcome[0].on[2], 18, 22);
	stop();
}

/* Whatever the number of tiles and however slow the other device: the image does not end later than
 * with the fast one alone. */
TEST(test_slow_device)
{
	static const double slow[] = {1.5, 3, 10, 50, 1000};

	for (unsigned count = 1; count <= 40; count++) {
		double alone;

		start((double[]){1}, 1);
		add(0, count, 1e6);
		run();
		alone = outcome[0].end;
		stop();
		for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
			start((double[]){slow[i], 1}, 2);
			add(0, count, 1e6);
			run();
			assert_int_equal(outcome[0].filtered, count);
			assert_true(outcome[0].end <= alone);
			stop();
		}
	}
}

/* A job that may use one device only waits for it while others pass, and is served when it is up.
 * One that ends before is told of its tiles. */
TEST(test_allowed)
{
	start((double[]){1, 1}, 2);
	jobs[0].terms.devices = jobs[3].terms.devices = 2;
	simulated_down(1);
	add(0, 10, 1e6);
	add(1, 10, 1e6);
	run();
	assert_int_equal(outcome[0].filtered, 0);
	assert_int_equal(outcome[1].on[0], 10);
	assert_int_equal(scheduler_waiting(), 10);
	add(3, 10, 1e6);
	simulated_for_codecs->job_ended(&jobs[3]);
	assert_int_equal(outcome[3].failed, 10);
	simulated_up(1);
	add(2, 10, 1e6);
	run();
	assert_int_equal(outcome[0].on[1], 10);
	assert_int_equal(outcome[2].filtered, 10);
	assert_int_equal(outcome[3].filtered, 0);
	stop();
}

/* A device that is being ended was up a moment ago, however short it was so. */
TEST(test_hope)
{
	struct device *d;

	start((double[]){1}, 1);
	d = device_get(0);
	d->worker.state = WORKER_DYING;
	d->last_up = loop_now() - UINT64_C(5000000000);
	assert_false(scheduler_has_hope(1));
	d->up_since = loop_now();
	assert_true(scheduler_has_hope(1));
	stop();
}

/* No tile of an ended job begins, though its codec worker may still hand out some. */
TEST(test_ended)
{
	unsigned held;

	start((double[]){1}, 1);
	add(0, 10, 1e6);
	held = device_get(0)->held_count;
	assert_in_range(held, 1, 9);
	jobs[0].finished = true;
	add(0, 5, 1e6);
	run();
	assert_int_equal(outcome[0].filtered, held);
	assert_int_equal(outcome[0].failed, 15 - held);
	stop();
}

/* The tiles of a lost device are filtered by the other; one fails when it has failed twice. */
TEST(test_retries)
{
	start((double[]){1, 1}, 2);
	add(0, 20, 1e6);
	simulated_down(1);
	run();
	assert_int_equal(outcome[0].on[0], 20);
	simulated_up(1);
	add(1, 1, 1e6);
	for (unsigned i = 0; i < 2; i++)
		assert_true(simulated_finish(0, ERR_DEVICE) || simulated_finish(1, ERR_DEVICE));
	assert_int_equal(outcome[1].failed, 1);
	assert_int_equal(outcome[1].error, ERR_DEVICE);
	assert_false(simulated_step());
	stop();
}

/* Repetitions wait for the device that is meant, also where another one has its turn. */
TEST(test_preferred)
{
	start((double[]){1, 1}, 2);
	for (unsigned i = 0; i < 40; i++) {
		tasks[i] = (struct task){
		    .job = &jobs[0], .prefer = 1u << i % 2, .item.cost = 1e4, .units = 1e4};
		simulated_for_codecs->task_ready(&tasks[i]);
	}
	run();
	assert_int_equal(outcome[0].on[0], 20);
	assert_int_equal(outcome[0].on[1], 20);
	stop();
}

/* However many long tiles there are, a lane is left for short ones, which pass; and once one has
 * ended the next is taken. */
TEST(test_long_tiles)
{
	const struct device *d;

	start((double[]){1}, 1);
	d = device_get(0);
	add(0, 5, 1e8);
	assert_int_equal(d->held_count, d->window - 2);
	add(1, 1, 1e6);
	assert_int_equal(d->held_count, d->window - 1);
	assert_ptr_equal(d->held[d->held_count - 1]->job, &jobs[1]);
	assert_int_equal(scheduler_waiting(), 3);
	assert_true(simulated_finish(0, ERR_OK));
	assert_int_equal(d->held_count, d->window - 1);
	simulated_down(0);
	simulated_up(0);
	run();
	assert_int_equal(outcome[0].filtered, 5);
	assert_int_equal(outcome[1].filtered, 1);
	stop();
}

/* A tile takes a device about a millisecond. One that is too slow to matter does not make tiles
 * small for those that do the work. */
TEST(test_tile_size)
{
	static const struct {
		double ns_per_unit[2];
		unsigned count;
		double slowest;
	} cases[] = {
	    {{0.002}, 1, 0.002},      {{0.002, 0.001}, 2, 0.002}, {{0.001, 0.002}, 2, 0.002},
	    {{0.001, 0.5}, 2, 0.001}, {{0.5, 0.001}, 2, 0.001},
	};
	struct chain *chain = chain_of("gaussian=size=5");

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double samples;

		start(cases[i].ns_per_unit, cases[i].count);
		samples = (double)load_samples_max(chain);
		assert_in_range((uint64_t)(samples * cost_per_sample(chain) * cases[i].slowest),
		                999000, 1000000);
		stop();
	}
	free(chain);
}

static double cost(const char *filters, uint32_t width, uint32_t height)
{
	const struct image image = {.width = 1000, .height = 800, .bands = 3};
	struct chain *chain = chain_of(filters);
	const double units = cost_of_area(chain, &image, width, height);

	free(chain);
	return units;
}

/* Costs count halos: those of small results are most of them. */
TEST(test_cost)
{
	assert_true(cost("convolve=kernel=1 1 1 1 1", 100, 10) == 5.0 * 100 * 10);
	assert_true(cost("box=size=3,box=size=5", 100, 10) == 10.0 * 100 * 10 + 6.0 * 104 * 14);
	assert_true(cost("gaussian=size=601,gaussian=size=601", 1, 2400) > 1202.0 * 601 * 3000);
}

static struct image square(uint32_t side)
{
	return (struct image){.width = side, .height = side, .bands = 3, .type = PIXEL_U8};
}

/* Which requests a device may be asked for, and which devices. */
TEST(test_jpeg_asked)
{
	struct chain chain = {.variant = VARIANT_ANY};
	struct shared_chain shared = {.chain = &chain};
	struct image image = square(1000), small = square(100);
	uint64_t devices;
	uint32_t pixels;

	start((double[]){1, 1, 1}, 3);
	jobs[0].chain = &shared;
	jobs[0].terms.codec = JPEG_BY_GPU;
	assert_int_equal(jpeg_router_ask(&jobs[0], &pixels), JPEG_REASON_DEVICE);
	device_get(0)->programs.jpeg = device_get(1)->programs.jpeg = 1;
	device_get(1)->ready.jpeg_pixels = 100000;
	device_get(2)->ready.jpeg_pixels = 9000000; /* its programs are not ready */
	assert_int_equal(jpeg_router_ask(&jobs[0], &pixels), JPEG_REASON_NONE);
	assert_int_equal(pixels, 100000);
	device_get(2)->programs.jpeg = 1;
	assert_int_equal(jpeg_router_ask(&jobs[0], &pixels), JPEG_REASON_NONE);
	assert_int_equal(pixels, 9000000);
	assert_int_equal(jpeg_router_choose(&jobs[0], &image, 1, &devices), JPEG_REASON_NONE);
	assert_int_equal(devices, 4);
	assert_int_equal(jpeg_router_choose(&jobs[0], &small, 1, &devices), JPEG_REASON_NONE);
	assert_int_equal(devices, 6);
	jobs[0].terms.devices = 3;
	assert_int_equal(jpeg_router_choose(&jobs[0], &image, 1, &devices), JPEG_REASON_DEVICE);
	assert_int_equal(jpeg_router_choose(&jobs[0], &small, 1, &devices), JPEG_REASON_NONE);
	assert_int_equal(devices, 2);
	chain.variant = VARIANT_REFERENCE;
	assert_int_equal(jpeg_router_ask(&jobs[0], &pixels), JPEG_REASON_PIXELS);
	chain.variant = VARIANT_ANY;
	jobs[0].terms.codec = JPEG_BY_CPU;
	assert_int_equal(jpeg_router_ask(&jobs[0], &pixels), JPEG_REASON_REQUEST);
	stop();
}

/* Returns how many of `choices` choices are the device, by this many codec workers; each takes this
 * long, if it is to be learned from. */
static unsigned chosen(uint32_t side, unsigned workers, unsigned choices, double codec_ns,
                       double device_ns)
{
	struct job *job = &jobs[0];
	unsigned device = 0;
	uint64_t devices;

	job->jpeg_form = TILE_JPEG;
	job->image = square(side);
	for (unsigned i = 0; i < choices; i++) {
		bool by = !jpeg_router_choose(job, &job->image, workers, &devices);

		device += by;
		if (job->times.routed && codec_ns > 0)
			job->times.routed = loop_now() - (uint64_t)(by ? device_ns : codec_ns);
		if (codec_ns > 0)
			jpeg_router_learn(job);
		job->times.routed = 0;
	}
	return device;
}

/* In blocks of one lane, by what was measured in their later halves; the other lane now and then,
 * and the less often and the shorter, the slower it is. */
TEST(test_jpeg_chosen)
{
	struct chain chain = {.variant = VARIANT_ANY};
	struct shared_chain shared = {.chain = &chain};

	start((double[]){1}, 1);
	jobs[0].chain = &shared;
	device_get(0)->programs.jpeg = 1;
	device_get(0)->ready.jpeg_pixels = UINT32_MAX;
	/* By the guesses: a device is 89 times as fast, and the other lane was not measured. */
	assert_int_equal(chosen(8192, 2, 800, 0, 0), 800 - 1);
	assert_int_equal(chosen(1024, 2, 8, 3e9, 2e9), 8);
	assert_in_range(chosen(1024, 2, 64, 3e9, 2e9), 40, 56);
	/* Then a block of 5 in about 96, as it takes 1.5 times as long. */
	assert_in_range(chosen(1024, 2, 8000, 3e9, 2e9), 8000 - 5 * 12, 8000 - 5 * 9);
	/* The other one has become faster. */
	chosen(1024, 2, 8 * 200, 1e9, 2e9);
	assert_in_range(chosen(1024, 2, 8000, 1e9, 2e9), 4 * 6, 4 * 9);
	/* A size that was not measured is expected as the nearest one is; guesses alone would
	 * favour the device. */
	assert_int_equal(chosen(512, 4, 16, 0, 0), 0);
	stop();
}
