/* Verification: who filtered a tile, and what was found in it. A codec worker has at most SLOTS_MAX
 * tiles, one after another, and reports on one before it frees its slot; so a tile's place here is
 * its index modulo that number. */
#include "front/verified.h"

#include <math.h>
#include <stdio.h>

#include "common/log.h"
#include "front/metrics.h"
#include "front/roster.h"

_Static_assert(KERNELS <= 64, "a bit for each kernel");

void verified_expect(struct verified_tiles *tiles, const struct task *task,
                     const struct message_tile_done *done)
{
	uint64_t kernels = 0;

	for (unsigned i = 0; i < done->launches; i++)
		if (kernel_row(done->launch[i].kernel)->operations)
			kernels |= UINT64_C(1) << done->launch[i].kernel;
	tiles->tile[task->tile.index % SLOTS_MAX].known = !done->error;
	tiles->tile[task->tile.index % SLOTS_MAX].index = task->tile.index;
	tiles->tile[task->tile.index % SLOTS_MAX].device = task->device;
	tiles->tile[task->tile.index % SLOTS_MAX].kernels = kernels;
}

static void log_mismatch(const struct message_verified *m, const char *device, uint64_t kernels)
{
	char names[256] = "";
	size_t used = 0;

	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernels >> k & 1 && used < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
			                         used ? ", " : "", kernel_name(k));
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(.job = m->job, .device = device, .error = "mismatch"),
	          "job %llu: tile %u by %s (%s): %llu of %llu samples are wrong, by up to %g; the "
	          "first at %u,%u band %u: %.9g is not %.9g +- %.3g",
	          (unsigned long long)m->job, m->index, device, names,
	          (unsigned long long)m->mismatches, (unsigned long long)m->samples, m->largest,
	          m->x, m->y, m->band, m->got, m->wanted, m->slack);
}

bool verified_take(struct verified_tiles *tiles, struct job *job, const struct message_verified *m,
                   unsigned *from)
{
	uint32_t i = m->index % SLOTS_MAX;
	uint64_t kernels = tiles->tile[i].kernels;
	const char *device;

	if (!tiles->tile[i].known || tiles->tile[i].index != m->index || !m->samples ||
	    m->samples > image_size(&job->image) || m->mismatches > m->samples ||
	    !(m->largest >= 0))
		return false;
	tiles->tile[i].known = false;
	*from = tiles->tile[i].device;
	device = device_get(*from)->label;
	metric_add(METRIC_VERIFIED_SAMPLES, device, NULL, (double)m->samples);
	for (enum kernel k = 0; k < KERNELS; k++)
		if (kernels >> k & 1)
			metric_add(METRIC_VERIFY_MISMATCHES, kernel_name(k), device,
			           (double)m->mismatches);
	if (m->mismatches)
		log_mismatch(m, device, kernels);
	job->verified.samples += m->samples;
	job->verified.mismatches += m->mismatches;
	job->verified.largest = fmax(job->verified.largest, m->largest);
	return true;
}
