/* Verification: which device filtered a tile, the result of the comparison, and the consequences.
 *
 * A client chose the input, and some inputs have no correct result in float32, so a mismatch alone
 * proves nothing against a device. So a doubtful tile runs again; only two different results of the
 * same kernels on the same device are proof. Otherwise the device must filter test tiles
 * (self_test.h).
 *
 * A codec worker has at most SLOTS_MAX tiles in order, and reports on a tile before it frees its
 * slot, so a tile's place here is its index modulo SLOTS_MAX. */
#include "front/workers/verified.h"

#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "front/base/metrics.h"
#include "front/workers/device_table.h"

static const uint64_t log_pause_ns = 1000000000u;

/* Returns the devices other than this one that are up and that the job may use. */
static uint64_t other_devices(const struct job *job, unsigned device)
{
	return devices_up_of(job->terms.devices) & ~(UINT64_C(1) << device);
}

void verified_expect(struct verified_tiles *tiles, const struct task *task,
                     struct message_tile_done *done)
{
	struct verified_tile *t = &tiles->tile[task->tile.index % SLOTS_MAX];
	bool again = t->out && t->tile.index == task->tile.index;
	struct kernel_set kernels = {0};

	for (unsigned i = 0; i < done->launches; i++)
		if (kernel_row(done->launch[i].kernel)->operations)
			kernel_set_add(&kernels, done->launch[i].kernel);
	if (!again)
		*t = (struct verified_tile){
		    .tile = task->tile, .device = task->device, .kernels = kernels};
	t->known = !done->error;
	t->out = false;
	t->run += again;
	t->repeated =
	    again && task->device == t->device && kernel_set_equals(&kernels, &t->kernels);
	t->others = t->run == 1 && other_devices(task->job, t->device);
	done->others = t->others;
}

/* Logs at most one line a second, since a client can cause any number of mismatches. */
static void log_mismatch(const struct message_verified *m, const char *device,
                         const struct kernel_set *kernels)
{
	static uint64_t logged;
	static unsigned silent;
	char names[256] = "";

	if (logged && loop_now() - logged < log_pause_ns) {
		silent++;
		return;
	}
	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernel_set_has(kernels, k))
			list_add(names, sizeof names, kernel_name(k));
	log_event(
	    LOG_LEVEL_WARNING, LOG_FIELDS(.job = m->job, .device = device, .error = "mismatch"),
	    "job %" PRIu64 ": tile %u by %s (%s) is doubtful: %" PRIu64 " of %" PRIu64
	    " samples are off by up to %g; the first at %u,%u band %u: %.9g is not %.9g +- %.3g "
	    "(%u such tiles since the last line)",
	    m->job, m->index, device, names, m->mismatches, m->samples, m->largest, m->x, m->y,
	    m->band, m->got, m->wanted, m->slack, silent);
	logged = loop_now();
	silent = 0;
}

bool verified_take(struct verified_tiles *tiles, struct job *job, const struct message_verified *m,
                   struct finding *finding)
{
	struct verified_tile *t = &tiles->tile[m->index % SLOTS_MAX];

	if (!t->known || t->out || t->tile.index != m->index || m->run != t->run || !m->samples ||
	    m->samples > (uint64_t)t->tile.width * t->tile.height * BANDS_MAX ||
	    m->mismatches > m->samples || !(m->largest >= 0))
		return false;
	*finding = (struct finding){.device = t->device,
	                            .kernels = t->kernels,
	                            .doubtful = m->run == 0 && m->mismatches,
	                            .differs = m->run == 1 && t->repeated && !m->same};
	if (m->run == 0) { /* repetitions do not count */
		const char *device = device_get(t->device)->label;

		metric_add(METRIC_VERIFIED_SAMPLES, device, NULL, (double)m->samples);
		for (enum kernel k = 0; k < KERNELS; k++)
			if (kernel_set_has(&t->kernels, k))
				metric_add(METRIC_VERIFY_MISMATCHES, kernel_name(k), device,
				           (double)m->mismatches);
		if (m->mismatches)
			log_mismatch(m, device, &t->kernels);
		job->verified.samples += m->samples;
		job->verified.mismatches += m->mismatches;
		job->verified.largest = fmax(job->verified.largest, m->largest);
	}
	if (m->mismatches && (m->run == 0 || t->others)) {
		t->out = true;
		finding->again = &t->tile;
		finding->prefer =
		    m->run == 0 ? UINT64_C(1) << t->device : other_devices(job, t->device);
	} else {
		t->known = false;
	}
	return true;
}
