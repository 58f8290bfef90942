/* A simulated device: finishes one tile after another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/file.h"
#include "front/workers/self_test.h"
#include "reference/reference.h"
#include "sim.h"

struct held {
	STAILQ_ENTRY(held) place;
	struct tile tile;
};

struct device_worker {
	struct process *p;
	STAILQ_HEAD(, held) held;
	bool busy;
	int test_out; /* memory of test tiles; -1: none */
};

static uint64_t wrong_until;
unsigned sim_devices;

bool sim_devices_are_wrong(void)
{
	return sim_now < wrong_until && !sim_calm;
}

void sim_devices_reset(void)
{
	wrong_until = 0;
}

static void serve(struct device_worker *d);

/* The expected pixels of test tiles are 0 (see reference_filter() below). */
static void write_test(const struct device_worker *d, const struct tile *tile)
{
	const unsigned char pixel = sim_devices_are_wrong() ? 9 : 0;

	if (d->test_out >= 0)
		must(file_write(d->test_out, &pixel, 1, tile->out));
}

static void finish(void *context, uint64_t number)
{
	struct device_worker *d = context;
	struct held *h = STAILQ_FIRST(&d->held);
	struct message done = {.type = MSG_TILE_DONE};

	(void)number;
	if (d->p->has_ended || d->p->is_hung || sim_may_fail(d->p) || d->p->is_hung)
		return;
	done.tile_done.job = h->tile.job;
	done.tile_done.index = h->tile.index;
	if (sim_fault(FAULT_DEVICE_WRONG))
		wrong_until = sim_now + sim_while(5 * SIM_S);
	if (sim_fault(FAULT_DEVICE_FAILS)) {
		done.tile_done.error = ERR_DEVICE;
	} else {
		done.tile_done.launches = done.tile_done.stack = 1;
		done.tile_done.launch[0].ns = 1000;
		done.tile_done.size = h->tile.form & TILE_ENCODE ? 500 : 0;
		done.tile_done.jpeg_flags = h->tile.form && sim_once_in(8);
	}
	if (h->tile.job == SELF_TEST_JOB)
		write_test(d, &h->tile);
	STAILQ_REMOVE_HEAD(&d->held, place);
	check_tile_back(d->p, h->tile.job, h->tile.index);
	free(h);
	d->busy = false;
	sim_send(d->p, &done);
	if (!d->p->has_ended)
		serve(d);
}

static void serve(struct device_worker *d)
{
	const struct held *h = STAILQ_FIRST(&d->held);
	struct message waits = {.type = MSG_TILE_WAITS};
	uint64_t time = sim_fault(FAULT_DEVICE_SLOW) ? sim_while(3 * SIM_S) : sim_while(3 * SIM_MS);

	sim_work(d->p, h != NULL);
	if (!h || d->busy)
		return;
	d->busy = true;
	if (sim_fault(FAULT_DEVICE_WAITS)) {
		waits.tile_waits.job = h->tile.job;
		waits.tile_waits.index = h->tile.index;
		waits.tile_waits.max_ms = PROGRAM_WAIT_MS;
		sim_send(d->p, &waits);
		time += sim_while(5 * SIM_S);
	}
	sim_after(time, finish, d, 0);
}

static void probe(struct process *p)
{
	for (unsigned i = 0; i <= sim_devices; i++) {
		struct message m = {.type = MSG_DEVICE, .device = {.device = i}};

		m.device.type = i == sim_devices   ? DEVICE_NONE
		                : sim_devices == 1 ? DEVICE_CPU
		                                   : DEVICE_GPU;
		snprintf(m.device.name, sizeof m.device.name, "simulated %u", i);
		snprintf(m.device.platform_name, sizeof m.device.platform_name, "simulation");
		sim_send(p, &m);
	}
}

static void message(struct process *p, const struct message *m, const int *fds)
{
	struct device_worker *d = p->state;
	struct held *h;

	if (p->is_probe) {
		probe(p);
		return;
	}
	switch ((enum message_type)m->type) {
	case MSG_ARENA:
		close(fds[0]);
		if (m->arena.arena == SELF_TEST_ARENA) {
			file_close(&d->test_out);
			d->test_out = fds[1];
		} else {
			close(fds[1]);
		}
		break;
	case MSG_ARENA_DROP:
		if (m->arena_drop.arena == SELF_TEST_ARENA)
			file_close(&d->test_out);
		break;
	case MSG_PLAN:
		close(fds[0]);
		break;
	case MSG_PLAN_DROP:
		break;
	case MSG_TILE:
		h = calloc(1, sizeof *h);
		must(h);
		h->tile = m->tile.tile;
		STAILQ_INSERT_TAIL(&d->held, h, place);
		serve(d);
		break;
	default:
		violated("a device got %s", message_name(m->type));
	}
}

static void tell_programs(void *context, uint64_t number)
{
	const struct device_worker *d = context;
	const struct message m = {.type = MSG_PROGRAMS, .programs = {.compiled = 3, .jpeg = 1}};

	(void)number;
	if (d->p->is_up)
		sim_send(d->p, &m);
}

static void prepare(struct process *p, struct message_ready *ready)
{
	struct device_worker *d = p->state = calloc(1, sizeof *d);

	must(d);
	d->p = p;
	d->test_out = -1;
	STAILQ_INIT(&d->held);
	snprintf(ready->name, sizeof ready->name, "simulated %u", p->number);
	snprintf(ready->driver, sizeof ready->driver, "simulation 1.0");
	ready->lanes = 1 + (uint32_t)sim_below(4);
	ready->small_max = (uint32_t)sim_below(2) * 16;
	ready->startup_ms = 1;
	ready->memory = 1 << 30;
	ready->jpeg_pixels = sim_once_in(2) ? 1 << 20 : 0;
	sim_after(sim_while(SIM_S), tell_programs, d, 0);
}

static void down(struct process *p)
{
	struct device_worker *d = p->state;
	struct held *h;

	if (!d)
		return;
	file_close(&d->test_out);
	while ((h = STAILQ_FIRST(&d->held))) {
		STAILQ_REMOVE_HEAD(&d->held, place);
		free(h);
	}
}

const struct program sim_device = {"convolved-device", prepare, message, down};

enum error __wrap_reference_filter(const struct chain *chain, const struct image *image,
                                   const void *in, struct reference *reference);

/* Right results are all 0: filters are not simulated. */
enum error __wrap_reference_filter(const struct chain *chain, const struct image *image,
                                   const void *in, struct reference *reference)
{
	const size_t samples = image_pixels(image) * image->bands;

	(void)chain, (void)in;
	*reference = (struct reference){
	    .window = {0, 0, image->width, image->height},
	    .bands = image->bands,
	    .type = image->type,
	    .pixels = calloc(samples, sizeof(double)),
	    .slack = calloc(samples, sizeof(float)),
	};
	return reference->pixels && reference->slack ? ERR_OK : ERR_MEMORY;
}
