/* The time of a job on either lane is expected to be its guess, corrected by what was measured for
 * the same sides of images of about that size (or of the nearest one measured). To stay up to date,
 * one choice in LOOK goes against the expectation, unless that would be much slower. */
#include "front/workers/jpeg_router.h"

#include <math.h>

#include "common/log.h"
#include "front/base/loop.h"
#include "front/base/metrics.h"
#include "front/workers/cost.h"
#include "front/workers/device_table.h"
#include "front/workers/load.h"

enum { SIZES = 34, LOOK = 64 };

/* By measurement on one core, and on a GPU of 2024. */
static const struct {
	double ns, ns_per_pixel;
} guesses[JPEG_LANES][JPEG_SIDES] = {
    [JPEG_LANE_CODEC] = {[JPEG_DECODE] = {6e4, 4}, [JPEG_ENCODE] = {4e4, 2.5}},
    [JPEG_LANE_DEVICE] = {[JPEG_DECODE] = {7e5, 0.04}, [JPEG_ENCODE] = {5e5, 0.02}},
};

/* Ratios of the measured time to the guess, by the size's logarithm to base 2; 0: not measured. */
static double ratio[JPEG_LANES][TILE_FORMS][SIZES];
static const double weight = 0.125, much_slower = 4;

/* A codec worker that says so may lie; so a device gets JPEGs again after a while. */
static const uint64_t distrusted_ns = 600000000000u;

static double pixels_of(const struct image *image)
{
	return (double)image->width * image->height;
}

static int size_of(const struct image *image)
{
	int size = ilogb(pixels_of(image));

	return size < SIZES ? size : SIZES - 1;
}

static double guess(enum jpeg_lane lane, enum tile_form form, const struct image *image)
{
	double ns = 0;

	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
		if (form >> side & 1)
			ns += guesses[lane][side].ns +
			      guesses[lane][side].ns_per_pixel * pixels_of(image);
	return ns;
}

void jpeg_router_learn(enum jpeg_lane lane, enum tile_form form, const struct image *image,
                       double ns)
{
	double *known = &ratio[lane][form][size_of(image)], now = ns / guess(lane, form, image);

	if (ns > 0)
		*known += (*known > 0 ? weight : 1) * (now - *known);
}

double jpeg_router_expect(enum jpeg_lane lane, enum tile_form form, const struct image *image)
{
	const double *known = ratio[lane][form], guessed = guess(lane, form, image);
	int size = size_of(image);

	for (int away = 0; away < SIZES; away++) {
		if (size >= away && known[size - away] > 0)
			return known[size - away] * guessed;
		if (size + away < SIZES && known[size + away] > 0)
			return known[size + away] * guessed;
	}
	return guessed;
}

static bool is_distrusted(const struct device *d)
{
	return d->jpeg_distrusted && loop_now() - d->jpeg_distrusted < distrusted_ns;
}

/* The devices that take JPEGs of so many pixels, of those that the job may use. */
static uint64_t devices_for(const struct job *job, double pixels)
{
	uint64_t devices = 0;

	for (unsigned i = 0; i < devices_count(); i++) {
		const struct device *d = device_get(i);

		if (device_state(d) == DEVICE_UP && d->programs.jpeg && d->jpeg_pixels >= pixels &&
		    d->jpeg_pixels && !is_distrusted(d))
			devices |= UINT64_C(1) << i;
	}
	return job->terms.devices ? devices & job->terms.devices : devices;
}

enum jpeg_reason jpeg_router_ask(const struct job *job, uint32_t *pixels_max)
{
	const struct message_job *options = &job->options;
	uint64_t devices = devices_for(job, 0);

	*pixels_max = 0;
	if (job->terms.codec == JPEG_BY_CPU)
		return JPEG_REASON_REQUEST;
	if (options->has_target || options->verify || job->gather ||
	    job->chain->chain->variant == VARIANT_REFERENCE)
		return JPEG_REASON_PIXELS;
	for (unsigned i = 0; i < devices_count(); i++)
		if (devices >> i & 1 && device_get(i)->jpeg_pixels > *pixels_max)
			*pixels_max = device_get(i)->jpeg_pixels;
	return *pixels_max ? JPEG_REASON_NONE : JPEG_REASON_DEVICE;
}

/* True if a device is expected to be done sooner, or if it is time to look how long the lane takes
 * that is expected to be slower. */
static bool favours_device(const struct image *image, enum tile_form form, double waiting,
                           uint64_t devices)
{
	static unsigned choices;
	double units = cost_of_jpeg(image, form), codec, device;
	unsigned soonest = load_soonest(devices_count(), units, devices);
	bool favours, look = ++choices % LOOK == 0;

	codec = jpeg_router_expect(JPEG_LANE_CODEC, form, image) * (1 + waiting);
	device = jpeg_router_expect(JPEG_LANE_DEVICE, form, image);
	if (soonest < devices_count())
		device += load_ns(soonest);
	favours = device < codec;
	if (look && fmax(codec, device) < much_slower * fmin(codec, device))
		return !favours;
	return favours;
}

enum jpeg_reason jpeg_router_choose(const struct job *job, const struct image *image,
                                    double waiting, uint64_t *devices)
{
	*devices = devices_for(job, pixels_of(image));
	if (!*devices)
		return JPEG_REASON_DEVICE;
	if (job->terms.codec == JPEG_BY_GPU ||
	    favours_device(image, job->jpeg_form, waiting, *devices))
		return JPEG_REASON_NONE;
	return JPEG_REASON_COST;
}

void jpeg_router_distrust(unsigned device)
{
	struct device *d = device_get(device);

	metric_add(METRIC_DEVICE_SUSPECTED, d->label, "jpeg", 1);
	if (is_distrusted(d))
		return;
	d->jpeg_distrusted = loop_now();
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(.device = d->label, .error = "mismatch"),
	          "%s gave a JPEG that is not what libjpeg-turbo makes; it gets none for %llu s",
	          d->label, (unsigned long long)(distrusted_ns / 1000000000));
}
