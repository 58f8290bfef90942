/* The probe is the worker of the device that will be added next. It sends a message for each
 * device, and an empty one; then that device is one of them, or the probe is ended. */
#include "front/workers/discovery.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"

enum { AGAIN_MS = 5000, FOUND_MAX = 65 /* with the empty one */ };

static void (*report)(const struct message_device *found, bool wanted);
static struct worker *(*next_worker)(void), *probe;
static struct loop_timer again;
static bool probed, complete, found_gpu; /* ever; this time; a GPU */
static struct message_device found[FOUND_MAX];
static unsigned found_count;

const char *const device_types[] = {"device", "cpu", "gpu", "accelerator"};

void discovery_prepare(const struct worker *, struct start *start)
{
	start->unconfined = !config->confine_devices;
	start->cache_size = config->cache_size;
	snprintf(start->cache_dir, sizeof start->cache_dir, "%s", config->cache_dir);
	snprintf(start->state_dir, sizeof start->state_dir, "%s", config->state_dir);
	snprintf(start->kernel_dir, sizeof start->kernel_dir, "%s", config->kernel_dir);
}

bool discovery_fits(const char *pattern, const struct message_device *m)
{
	char index[32];
	const char *const texts[] = {device_types[m->type], index, m->name, m->platform_name};

	if (!strcmp(pattern, "auto")) /* all GPUs, or all devices if there is no GPU */
		return !found_gpu || m->type == DEVICE_GPU;
	snprintf(index, sizeof index, "%u:%u", m->platform, m->device);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!fnmatch(pattern, texts[i], FNM_CASEFOLD))
			return true;
	return false;
}

static void choose(void)
{
	bool any = false, fallback = false;

	probed = complete = true;
	for (unsigned i = 0; i < found_count; i++) {
		const struct message_device *m = &found[i];
		bool wanted = false;

		for (unsigned p = 0; p < config->device.count; p++)
			wanted |= discovery_fits(config->device.item[p], m);
		any |= wanted;
		log_info("%u:%u %s (%s, %s) is %s", m->platform, m->device, m->name,
		         device_types[m->type], m->platform_name, wanted ? "used" : "not used");
		report(m, wanted);
	}
	/* Without a GPU this is no error on a host that never had one, as Prometheus knows. */
	for (unsigned p = 0; p < config->device.count; p++)
		fallback |= !strcmp(config->device.item[p], "auto") && !found_gpu;
	if (found_count)
		metric_set(METRIC_CPU_FALLBACK, NULL, NULL, fallback);
	if (found_count && fallback)
		log_warning("no GPU was found, so device=auto uses all other devices "
		            "(set device=cpu if that is intended)");
	if (any)
		return;
	log_error("no OpenCL device %s; next discovery in %d s",
	          found_count ? "matches `device`" : "was found", AGAIN_MS / 1000);
	loop_timer_start(&again, AGAIN_MS);
}

void discovery_reload(void)
{
	if (complete)
		choose();
}

static void probe_message(struct worker *worker, const struct message *message)
{
	const struct message_device *m = &message->device;

	if (message->type != MSG_DEVICE || m->type > DEVICE_ACCELERATOR ||
	    found_count == FOUND_MAX) {
		worker_refuse(worker, message_name(message->type));
	} else if (m->type != DEVICE_NONE) {
		found[found_count] = *m;
		wire_text(found[found_count].name, sizeof m->name);
		wire_text(found[found_count].platform_name, sizeof m->platform_name);
		found_count++;
		found_gpu |= m->type == DEVICE_GPU;
	} else {
		choose();
		if (worker->owner->once)
			worker_stop(worker);
	}
}

static void probe_down(struct worker *, const char *reason)
{
	if (complete)
		return;
	log_error("device discovery failed: %s", reason);
	choose();
}

/* The probe may sleep: it starts a driver. */
static const struct worker_owner probe_worker = {.kind = "device",
                                                 .once = true,
                                                 .program = "convolved-device",
                                                 .prepare = discovery_prepare,
                                                 .message = probe_message,
                                                 .down = probe_down};

static void probe_start(void *)
{
	probe = next_worker();
	found_count = 0;
	found_gpu = complete = false;
	if (!probe || worker_start(probe, &probe_worker, probe->number))
		loop_timer_start(&again, AGAIN_MS);
}

bool discovery_done(void)
{
	return probed;
}

uint64_t discovery_next_try(void)
{
	return loop_timer_left(&again);
}

enum error discovery_init(void (*handler)(const struct message_device *found, bool wanted),
                          struct worker *(*next)(void))
{
	enum error e;

	report = handler;
	next_worker = next;
	e = loop_timer_init(&again, probe_start, NULL);
	if (!e)
		probe_start(NULL);
	return e;
}

void discovery_fini(void)
{
	if (probe)
		worker_fini(probe);
	loop_timer_fini(&again);
}
