/* The cost of each lane is measured: the time for which a job holds its codec worker once its image
 * is known, less the time of its filter's kernels. The client waits as long, and the codec worker
 * is occupied as long. The cost is kept as a ratio to a guess, by the image's size.
 *
 * The lanes hinder each other. A device decodes or encodes waiting images together, in stacks, and
 * a stack takes hardly longer than an image. If each lane has half of the jobs, there are just as
 * many stacks, and each job waits for the work of both lanes. So a single job in an unused lane
 * says little about that lane. Choices for images of similar size come in blocks of one lane, and
 * only the later half of a block is measured. From time to time a block uses the lane that is
 * expected to be slower, the less often and the shorter, the slower it is: at most about 1/LOOK of
 * the time goes into such blocks. */
#include "front/workers/jpeg_router.h"

#include <inttypes.h>
#include <math.h>
#include <sys/param.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/workers/device_table.h"

enum {
	SIZES = 34, /* logarithms to base 2 of numbers of pixels */
	LOOK = 64,
	ROUNDS = 4, /* choices in a block for each codec worker, at most */
};

enum lane { LANE_CODEC, LANE_DEVICE, LANES };

/* Measured on one core, and on a GPU of 2024. */
static const struct {
	double ns, ns_per_pixel;
} guesses[LANES][JPEG_SIDES] = {
    [LANE_CODEC] = {[JPEG_DECODE] = {3e5, 4}, [JPEG_ENCODE] = {3e5, 2.5}},
    [LANE_DEVICE] = {[JPEG_DECODE] = {5e5, 0.04}, [JPEG_ENCODE] = {4e5, 0.02}},
};

static struct known {
	/* running means of the ratio of measured times to guesses; 0: not measured */
	double ratio[LANES];
	enum lane lane;      /* the block's */
	unsigned size, left; /* choices in the block, and those that are left */
	unsigned blocks;     /* since the last one in the other lane */
} known[TILE_FORMS][SIZES];
static const double weight = 0.125;

/* A codec worker that reports a wrong JPEG may lie: the device gets JPEGs again after a while. */
static const uint64_t distrusted_ns = 600000000000u;

static int size_of(const struct image *image)
{
	int size = ilogb((double)image_pixels(image));

	return size < SIZES ? size : SIZES - 1;
}

static double guess(enum lane lane, enum tile_form form, const struct image *image)
{
	double ns = 0;

	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
		if (form >> side & 1)
			ns += guesses[lane][side].ns +
			      guesses[lane][side].ns_per_pixel * (double)image_pixels(image);
	return ns;
}

/* Predicts a job's time in a lane, from the nearest size that was measured. */
static double expect(enum lane lane, enum tile_form form, const struct image *image)
{
	const double guessed = guess(lane, form, image);
	int size = size_of(image);

	for (int away = 0; away < SIZES; away++)
		for (int other = size - away; other <= size + away; other += away ? 2 * away : 1)
			if (other >= 0 && other < SIZES && known[form][other].ratio[lane] > 0)
				return known[form][other].ratio[lane] * guessed;
	return guessed;
}

/* Returns the time of the filter's kernels in all runs of the job. */
static double filter_ns(const struct job *job)
{
	double ns = 0;

	for (unsigned i = 0; i < KERNELS; i++)
		if (i != KERNEL_JPEG_DECODE && i != KERNEL_JPEG_ENCODE)
			ns += (double)job->times.kernel[i];
	return ns;
}

void jpeg_router_learn(const struct job *job)
{
	struct known *k = &known[job->jpeg_form][size_of(&job->image)];
	enum lane lane = job->jpeg_by_device ? LANE_DEVICE : LANE_CODEC;
	double ns = (double)(loop_now() - job->times.routed) - filter_ns(job);
	double now = ns / guess(lane, job->jpeg_form, &job->image);

	if (job->times.routed && ns > 0)
		k->ratio[lane] += (k->ratio[lane] > 0 ? weight : 1) * (now - k->ratio[lane]);
}

static bool is_distrusted(const struct device *d)
{
	return d->jpeg_distrusted && loop_now() - d->jpeg_distrusted < distrusted_ns;
}

/* Returns the devices that the job may use and that take JPEGs of this size. */
static uint64_t devices_for(const struct job *job, uint64_t pixels)
{
	uint64_t devices = devices_up_of(job->terms.devices);
	const struct device *d;

	for (unsigned i = 0; (d = device_get(i)); i++)
		if (!d->programs.jpeg || d->ready.jpeg_pixels < MAX(pixels, 1) || is_distrusted(d))
			devices &= ~(UINT64_C(1) << i);
	return devices;
}

enum jpeg_reason jpeg_router_ask(const struct job *job, uint32_t *pixels_max)
{
	const struct message_job *options = &job->options;
	uint64_t devices = devices_for(job, 0);
	const struct device *d;

	*pixels_max = 0;
	if (job->terms.codec == JPEG_BY_CPU)
		return JPEG_REASON_REQUEST;
	if (options->has_target || options->verify || options->mask || job->gathering.kind ||
	    job->chain->chain->variant == VARIANT_REFERENCE)
		return JPEG_REASON_PIXELS;
	for (unsigned i = 0; (d = device_get(i)); i++)
		if (devices >> i & 1)
			*pixels_max = MAX(*pixels_max, d->ready.jpeg_pixels);
	return *pixels_max ? JPEG_REASON_NONE : JPEG_REASON_DEVICE;
}

static void begin_block(struct known *k, enum tile_form form, const struct image *image,
                        unsigned most)
{
	double codec = expect(LANE_CODEC, form, image), device = expect(LANE_DEVICE, form, image);
	double times = fmax(codec, device) / fmin(codec, device);
	enum lane faster = device < codec ? LANE_DEVICE : LANE_CODEC,
	          slower = faster == LANE_CODEC ? LANE_DEVICE : LANE_CODEC;

	if (k->lane == faster && ++k->blocks > (k->ratio[slower] > 0 ? LOOK : 1) * times) {
		k->lane = slower;
		k->size = (unsigned)fmax(most / times, 1);
	} else {
		k->blocks = k->lane == faster ? k->blocks : 0;
		k->lane = faster;
		k->size = most;
	}
	k->left = k->size;
}

enum jpeg_reason jpeg_router_choose(struct job *job, const struct image *image, unsigned workers,
                                    uint64_t *devices)
{
	struct known *k = &known[job->jpeg_form][size_of(image)];

	*devices = devices_for(job, image_pixels(image));
	if (!*devices)
		return JPEG_REASON_DEVICE;
	job->jpeg_by_device = job->terms.codec == JPEG_BY_GPU;
	if (!job->jpeg_by_device) {
		if (!k->left)
			begin_block(k, job->jpeg_form, image, ROUNDS * workers);
		if (k->left-- <= (k->size + 1) / 2)
			job->times.routed = loop_now() - (uint64_t)filter_ns(job);
		job->jpeg_by_device = k->lane == LANE_DEVICE;
	}
	return job->jpeg_by_device ? JPEG_REASON_NONE : JPEG_REASON_COST;
}

void jpeg_router_distrust(unsigned device)
{
	struct device *d = device_get(device);

	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "jpeg", 1);
	if (is_distrusted(d))
		return;
	d->jpeg_distrusted = loop_now();
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(.device = d->label, .error = "mismatch"),
	          "%s gave a JPEG that is not what libjpeg-turbo makes; it gets none for %" PRIu64
	          " s",
	          d->label, distrusted_ns / 1000000000);
}
